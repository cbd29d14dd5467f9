"""The sessions of all devices, by id: created at the first connection, forgotten when they have been idle for long."""

from __future__ import annotations

import asyncio
import time

from echokit_py.session.services import Services
from echokit_py.session.session import Session

# Ids come from whoever connects, so their number is bounded: a school's boards many times over. What an idle session
# holds is its history, some kilobytes.
SESSION_LIMIT = 2000
IDLE_LIMIT_S = 24 * 3600.0


class TooManySessions(Exception):
    """Every session that we may keep is connected right now."""


class Devices:
    """All sessions. Not connected ones go when they have been idle for IDLE_LIMIT_S, or, oldest first, for room."""

    def __init__(self, services: Services, limit: int = SESSION_LIMIT) -> None:
        self._services = services
        self._limit = limit
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def connected(self) -> int:
        """How many devices are connected."""
        return sum(session.connected for session in self._sessions.values())

    def session(self, device: str) -> Session:
        """The session of a device, a new one at its first connection. Raises TooManySessions."""
        session = self._sessions.get(device)
        if session is None:
            self._make_room()
            session = self._sessions[device] = Session(device, self._services)
        return session

    def _make_room(self) -> None:
        idle = sorted(
            (session for session in self._sessions.values() if not session.connected),
            key=lambda session: session.last_seen,
        )
        horizon = time.monotonic() - IDLE_LIMIT_S
        surplus = len(self._sessions) - self._limit + 1
        for number, session in enumerate(idle):
            if number < surplus or session.last_seen < horizon:
                del self._sessions[session.device]
        if len(self._sessions) >= self._limit:
            raise TooManySessions

    async def close(self) -> None:
        """End every session."""
        await asyncio.gather(*(session.close() for session in self._sessions.values()))
        self._sessions.clear()
