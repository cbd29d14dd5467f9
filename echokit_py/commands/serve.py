"""`echokit-py serve`: listen, load the models meanwhile, serve until told to stop. Parses no arguments."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack

from aiohttp import web

from echokit_py.config.settings import Settings
from echokit_py.errors import EchoKitError
from echokit_py.heap import settle
from echokit_py.server import app
from echokit_py.server.origins import Origins
from echokit_py.session import apologies
from echokit_py.session.apologies import Apology
from echokit_py.session.devices import Devices
from echokit_py.tts.base import Tts
from echokit_py.wiring import mcp_tools, providers, services, start

log = logging.getLogger(__name__)

_M_ARENA_MAX = -8  # malloc.h of glibc

# How long a thread that computes may keep the event loop waiting. With Python's 5 ms each stage of 50 talking devices
# took twice as long.
SWITCH_INTERVAL_S = 0.0005

# Running turns are cut off at a shutdown; this is for their clean-up.
SHUTDOWN_LIMIT_S = 5.0


async def serve(settings: Settings, stop: asyncio.Event | None = None) -> int:
    """Run the server until SIGINT, SIGTERM or `stop`; return the exit code.

    It listens before the models are loaded: a board that connects meanwhile waits some seconds instead of failing.
    """
    _limit_arenas()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    stop = stop or asyncio.Event()
    _stop_on_signals(stop)
    readiness = app.Readiness()
    async with AsyncExitStack() as stack:
        built = await stack.enter_async_context(providers(settings))
        tools = await stack.enter_async_context(mcp_tools(settings))
        shared = await stack.enter_async_context(services(settings, built, tools))
        devices = Devices(shared)
        servers = tools.statuses if tools is not None else tuple
        application = app.build(devices, shared.journal, readiness, Origins(settings.allowed_origins), servers)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_LIMIT_S)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        try:
            site = web.TCPSite(runner, settings.host or None, settings.port, backlog=1024)
            await site.start()
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            log.error("can't listen on %s: %s", settings.addr, reason)
            return 1
        _announce(runner)
        loading = asyncio.create_task(_load(readiness, start(built), stop), name="loading")
        stack.push_async_callback(_finish, loading)
        voicing = asyncio.create_task(_revoice(readiness, shared.apologies, built.tts), name="apologies")
        stack.push_async_callback(_finish, voicing)
        await stop.wait()
        log.info("stopping")
    return 1 if readiness.failure else 0


async def _load(readiness: app.Readiness, work: Coroutine[None, None, None], stop: asyncio.Event) -> None:
    try:
        await work
    except* EchoKitError as group:
        readiness.failure = "; ".join(str(error) for error in _leaves(group))
        log.error("the server can't start: %s", readiness.failure)
        stop.set()
    except* Exception:  # a fault of ours, or of a provider from another package
        readiness.failure = "a fault of this server while its models were loaded"
        log.exception("the server can't start: %s", readiness.failure)
        stop.set()
    else:
        settle()
        readiness.ready.set()
        log.info("ready")


def _leaves(group: BaseExceptionGroup[EchoKitError]) -> list[EchoKitError]:
    found: list[EchoKitError] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


async def _revoice(readiness: app.Readiness, known: dict[str, Apology], tts: Tts) -> None:
    await readiness.ready.wait()
    try:
        await apologies.revoice(known, tts)
    except Exception:  # a fault in a provider: the packaged audio stays, and the log says so now, not at the end
        log.exception("apologies keep their packaged voice")


async def _finish(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


def _limit_arenas() -> None:
    """Let glibc keep two heaps instead of eight a core: models are run by many threads, and each heap keeps what its
    busiest moment took. Saves 45 MB of 870 with the packaged models."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def _stop_on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)


def _announce(runner: web.AppRunner) -> None:
    """Log the addresses that boards can be set to."""
    for address in runner.addresses:
        host, port = address[0], address[1]
        hosts = _lan_addresses() if host in {"0.0.0.0", "::"} else [host]
        for each in hosts:
            shown = f"[{each}]" if ":" in each else each
            log.info("listening; boards connect to ws://%s:%d/ws/", shown, port)


def _lan_addresses() -> list[str]:
    """This machine's addresses as its network sees it. Asking the kernel for a route sends nothing."""
    found = []
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((target, 9))
                found.append(probe.getsockname()[0])
            except OSError:
                continue
    return found or ["127.0.0.1"]
