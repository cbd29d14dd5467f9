"""What every table of the configuration has in common: frozen, no unknown keys, secrets masked. Holds no option."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from echokit_py.config.redact import hide


class Section(BaseModel):
    """A table of the file: unknown keys are mistakes. `repr`, `str` and `model_dump` never show a secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), hide_input_in_errors=True)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, hide(value, name or "")

    @model_serializer(mode="wrap")
    def _masked(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        masked: dict[str, Any] = hide(handler(self))
        return masked
