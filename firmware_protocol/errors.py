"""The error of the device protocol. Says what is wrong with a peer's data, not what to do about it."""

from __future__ import annotations


class ProtocolError(ValueError):
    """Data that isn't the device protocol, or a value that the protocol has no room for.

    The message is one sentence and never quotes a peer's data at length, so that it can be logged as it is.
    """
