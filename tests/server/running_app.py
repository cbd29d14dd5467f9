"""Serves an application on a loopback port as `echokit-py serve` does.

aiohttp's TestServer won't do: it cancels a handler when its peer leaves, which a real server doesn't.
"""

from __future__ import annotations

from aiohttp import web


class RunningApp:
    """An application that is being served."""

    def __init__(self, runner: web.AppRunner) -> None:
        self._runner = runner

    @classmethod
    async def start(cls, application: web.Application) -> RunningApp:
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return cls(runner)

    @property
    def port(self) -> int:
        return int(self._runner.addresses[0][1])

    def make_url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def close(self) -> None:
        await self._runner.cleanup()
