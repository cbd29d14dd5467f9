"""Agrees with a server on a revision of the protocol, 2026-07-28 or one of those before. Opens and closes nothing."""

from __future__ import annotations

from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError


async def shake_hands(session: ClientSession, *, handshake_only: bool) -> None:
    """Ask for 2026-07-28 (`server/discover`); where that isn't known, greet as the revisions until 2025-11-25 do.

    A server that leaves the question unanswered costs 10 s (the SDK's limit), which `handshake_only` spares; it is for
    servers that are known to be of the older kind.

    Raises:
        MCPError: the server refuses both, or the connection ended.
        RuntimeError: it speaks revisions that we don't.
    """
    if not handshake_only and await _discovered(session):
        return
    try:
        await session.initialize()
    except MCPError as error:
        # A server that took its time over the first question, and by now is bound to the newer kind.
        if error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
        await session.discover()


async def _discovered(session: ClientSession) -> bool:
    try:
        await session.discover()
    except MCPError as error:
        if error.code == CONNECTION_CLOSED and error.message == "Connection closed":
            raise
        return False
    except (ValidationError, RuntimeError):  # an answer that says nothing, or names older revisions only
        return False
    return True
