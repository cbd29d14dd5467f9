"""The interface of a source of tools: what it offers, and a call of one. Knows no model and no session."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What a tool may be called (OpenAI's reference, `tools[].function.name`); to be used with `fullmatch`."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool offered to the model.

    Attributes:
        parameters: its JSON schema, as the model is told.
        filler: what is said to the user when a call takes longer than `filler_after_s`; "" for nothing.
        timeout_s: the time within which its source ends a call; 0.0 where it doesn't say.
        check: the schema that arguments have to fit where `parameters` doesn't say quite that; None where it does.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    filler: str = ""
    filler_after_s: float = 0.7
    timeout_s: float = 0.0
    check: Mapping[str, Any] | None = None

    @property
    def wanted(self) -> Mapping[str, Any]:
        """The schema that arguments have to fit."""
        return self.parameters if self.check is None else self.check


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to, in words for the model. `is_error`: it did not do what was asked."""

    text: str
    is_error: bool = False


class ToolSource(Protocol):
    """Where tools come from, shared by all devices."""

    def tools(self) -> Sequence[Tool]:
        """The tools offered now, each name (see `NAME`) once. Asked at the beginning of each turn.

        The very same object as before as long as nothing has changed: requests keep what they made of it.
        """
        ...

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool once; never twice for one call.

        Args:
            name: one of those offered.
            arguments: they fit the tool's schema, as far as that could be checked.

        Raises:
            TimeoutError: the tool did not answer within its time; what it did is not known.
            BackendError: it could not be reached. With the kind CONNECT the model is told that it did not run, with
                any other that the outcome is unknown.

        Cancelling cancels the tool, as far as it can be.
        """
        ...


class NoTools:
    """A source that offers nothing."""

    def tools(self) -> Sequence[Tool]:
        """None."""
        return ()

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Nothing can be called."""
        return ToolResult(f"there is no tool {name!r}", is_error=True)
