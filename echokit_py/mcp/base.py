"""What the parts of this package say to each other: states, failures of calls. Decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from echokit_py.errors import EchoKitError


class State(StrEnum):
    """How a server is. Stable: health and tests name these."""

    CONNECTING = "connecting"  # for the first time, or after it was connected
    CONNECTED = "connected"
    DOWN = "down"  # the last try failed; another follows
    CLOSED = "closed"  # by us


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How a server is now.

    Attributes:
        name: of the configuration.
        since: when that began, in seconds of the Unix epoch.
        last_error: why it was last lost or not reached, "" when it never was.
        tools: how many it lists; those left out count too.
    """

    name: str
    state: State
    since: float
    last_error: str = ""
    tools: int = 0


class Unanswered(EchoKitError):
    """A call whose answer will not come. `not_run`: the server provably did not run it."""

    def __init__(self, message: str, *, not_run: bool) -> None:
        super().__init__(message)
        self.not_run = not_run


class Refused(EchoKitError):
    """A call that the server answered with an error of the protocol: an unknown tool, arguments it doesn't take."""
