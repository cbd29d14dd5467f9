"""Recognition, model and voice on one loopback port, with fixed delays: what a benchmark knows the sum of. No faults.

The answers have the form of OpenAI's API, as those of `speech_server.py` and `chat_server.py`; nothing is checked.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from tests.fakes.chat_server import DONE, START, chunk
from tests.fakes.speech_server import encode, tone


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds from a request to the transcript, to the first token, and to the first audio; tokens a second then."""

    asr_s: float = 0.150
    first_token_s: float = 0.200
    tokens_per_s: float = 40.0
    tts_s: float = 0.100

    def until_piece_s(self, tokens: int) -> float:
        """Seconds until the model has written so many tokens."""
        return self.first_token_s + (tokens - 1) / self.tokens_per_s

    def sum_s(self, tokens: int) -> float:
        """Seconds that the three take one after the other, for a first piece that is complete with so many tokens."""
        return self.asr_s + self.until_piece_s(tokens) + self.tts_s


class SlowBackEnds:
    """The server, an asynchronous context manager. `answer`: the model's tokens; `question`: what is heard."""

    def __init__(self, answer: tuple[str, ...], question: str = "What time is it?", delays: Delays = Delays()) -> None:
        self._answer = [chunk({"content": token}) for token in answer]
        self._question = question
        self._delays = delays
        self._speech: dict[str, bytes] = {}
        self._port = 0

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=25 * 1024 * 1024)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        app.router.add_post("/v1/audio/speech", self._speak)
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    def config(self, vad: str = "") -> str:
        """A configuration that uses them. `vad`: lines for `[asr.vad]`."""
        base = f"http://127.0.0.1:{self._port}/v1"
        return (
            f'[asr]\nplatform = "openai"\nurl = "{base}/audio/transcriptions"\nmodel = "slow"\n\n'
            f'[tts]\nplatform = "openai"\nurl = "{base}/audio/speech"\nmodel = "slow"\nvoice = "alloy"\n\n'
            f'[llm]\nplatform = "openai_chat"\nurl = "{base}/chat/completions"\nmodel = "slow"\nhistory = 2\n\n'
            f"[asr.vad]\n{vad}\n"
        )

    async def _transcribe(self, request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(self._delays.asr_s)
        return web.json_response({"text": self._question})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        loop = asyncio.get_running_loop()
        due = loop.time() + self._delays.first_token_s
        response = await _begin(request, "text/event-stream")
        await response.write(START)
        for token in self._answer:
            await asyncio.sleep(due - loop.time())
            await response.write(token)
            due += 1 / self._delays.tokens_per_s
        await response.write(chunk({}, "stop") + DONE)
        await response.write_eof()
        return response

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        text = body["input"]
        if text not in self._speech:
            self._speech[text] = encode(tone(text), "wav")
        await asyncio.sleep(self._delays.tts_s)
        response = await _begin(request, "audio/wav")
        await response.write(self._speech[text])
        await response.write_eof()
        return response


async def _begin(request: web.Request, content_type: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": content_type})
    response.enable_chunked_encoding()
    await response.prepare(request)
    return response
