"""The error of the simulated board: what no real board would get through. One sentence for the person who reads it."""

from __future__ import annotations

from echokit_py.errors import EchoKitError


class DeviceError(EchoKitError):
    """The connection can't be made, or the server sent what a board doesn't take."""
