"""The sessions of all devices: bounded, the idle ones forgotten first."""

from __future__ import annotations

import pytest

from echokit_py.session import devices as module
from echokit_py.session.devices import Devices, TooManySessions
from echokit_py.session.outbox import Outbox
from firmware_protocol.link import LinkParameters
from tests.fakes.providers import scripted


async def test_the_oldest_idle_session_makes_room() -> None:
    with scripted() as made:
        devices = Devices(made.services, limit=2)
        first, second = devices.session("a"), devices.session("b")
        assert devices.session("a") is first
        await first.attach(Outbox(), LinkParameters())
        devices.session("c")
        assert (len(devices), devices.connected) == (2, 1)
        assert devices.session("a") is first
        await devices.session("c").attach(Outbox(), LinkParameters())
        with pytest.raises(TooManySessions):
            devices.session("b")
        await devices.close()
        assert (len(devices), first.connected, second.connected) == (0, False, False)


async def test_sessions_idle_for_long_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted() as made:
        devices = Devices(made.services)
        devices.session("a")
        devices.session("b")
        assert len(devices) == 2
        monkeypatch.setattr(module, "IDLE_LIMIT_S", -1)
        devices.session("c")
        assert len(devices) == 1
