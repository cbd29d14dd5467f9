"""Finds providers by platform name, the packaged ones through the same entry points as anybody's. Imports them late."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Literal

Kind = Literal["vad", "asr", "llm", "tts"]
Build = Callable[..., Any]
"""`build(settings, *, http, models)` returns the provider; it loads nothing heavy before its `start()`."""


def platforms(kind: Kind) -> frozenset[str]:
    """The platform names that are installed for `kind`."""
    return frozenset(point.name for point in entry_points(group=f"echokit_py.{kind}"))


def find(kind: Kind, platform: str) -> Build:
    """The build function of a provider. Raises LookupError when no package on this machine offers it."""
    for point in entry_points(group=f"echokit_py.{kind}", name=platform):
        build: Build = point.load()
        return build
    raise LookupError(f"no installed package offers the {kind} platform {platform!r}")
