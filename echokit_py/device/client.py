"""The simulated board's connection: the shell that moves bytes and time for `board.py`, on the websockets library.

Like the board it keeps at most 32 events, takes none while a sentence plays, and sends no pings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from websockets.exceptions import ConnectionClosed

from echokit_py.audio.pcm import seconds
from echokit_py.device.board import Effect, Firmware, Outcome, Pause, State, TurnOver
from echokit_py.device.clock import Clock, MonotonicClock
from echokit_py.device.connection import open_connection
from echokit_py.device.errors import DeviceError
from echokit_py.device.microphone import microphone
from echokit_py.device.turn import Turn, TurnRecorder
from echokit_py.log import sanitize
from firmware_protocol.codec import decode_event, encode_command
from firmware_protocol.errors import ProtocolError
from firmware_protocol.events import Command, ServerEvent, StartChat, Submit, Text
from firmware_protocol.link import LinkParameters

BOARD_LINK = LinkParameters(opus=True, vowel=True, stream_asr=True)
"""What firmware 0.3.2 asks for."""

QUEUE_EVENTS = 32  # the firmware's
OnEvent = Callable[[float, ServerEvent], None]
"""Called with the seconds since connecting and the event, when the board takes it."""

Conversation = Turn
"""What `converse` returns: the only turn of its connection."""

_Event = TypeVar("_Event", bound=ServerEvent)


class Board:
    """A connection of a board, used as `async with Board(…) as board`; turns are taken one after another.

    Attributes:
        device_id: its id.
    """

    def __init__(
        self,
        url: str,
        *,
        device_id: str,
        link: LinkParameters = BOARD_LINK,
        realtime: bool = True,
        limit_s: float = 120.0,
        on_event: OnEvent | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`url`: what is set up on a board (`ws://HOST:PORT/ws/`); the id and the flags of `link` are appended.

        `realtime`: speaking and playing take as long as for a board; else the recording is sent at once and playing
        takes no time. `limit_s`: the most that a turn may take, in seconds.
        """
        self.device_id = device_id
        self._url = url
        self._link = link
        self._realtime = realtime
        self._limit_s = limit_s
        self._on_event = on_event
        self._clock = clock or MonotonicClock()
        self._firmware = Firmware(link, plays=realtime)
        self._recorder = TurnRecorder(link)
        self._queue: asyncio.Queue[str | bytes | None] = asyncio.Queue(QUEUE_EVENTS)
        self._over = asyncio.Event()
        self._outcome = Outcome.TIMED_OUT
        self._news = asyncio.Event()  # pulsed at each event

    @property
    def state(self) -> State:
        """What the board's display shows."""
        return self._firmware.state

    @property
    def hello(self) -> bytes:
        """The wake sound as far as it has come: s16le, mono, 16 kHz."""
        return self._recorder.hello

    async def __aenter__(self) -> Self:
        """Connect. Raises DeviceError with one sentence that says why not."""
        self._connection = await open_connection(self._url, self.device_id, self._link)
        self._connected_at = self._clock.now()
        self._reader = asyncio.create_task(self._read())
        self._taker = asyncio.create_task(self._take_events())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _cancel(self._reader, self._taker)
        await self._connection.close()

    async def say(self, pcm: bytes) -> Turn:
        """Speak `pcm` (s16le, mono, 16 kHz) and wait for the end of the turn.

        Raises DeviceError when the server sends what a board doesn't take. A connection that closes is an outcome.
        """
        self._firmware.start_chat()
        return await self._run_turn(self._speak(pcm))

    async def send_text(self, text: str) -> Turn:
        """Send a typed question and wait for the end of the turn. Raises as `say`."""
        self._firmware.ask()
        return await self._run_turn(self._type(text))

    async def send_command(self, command: Command) -> None:
        """Send a command, whatever the state is. Raises DeviceError when the connection is closed."""
        await self._send(encode_command(command))

    async def send_audio(self, pcm: bytes) -> None:
        """Send a binary message, whatever the state is. Raises DeviceError when the connection is closed."""
        await self._send(pcm)

    async def wait_for(self, kind: type[_Event], count: int = 1) -> _Event:
        """Return the `count`-th event of this class since the last turn ended, once the board has taken it.

        Raises DeviceError when the connection closes first or the limit of a turn passes.
        """
        timer = asyncio.create_task(self._clock.sleep_until(self._clock.now() + self._limit_s))
        try:
            while len(taken := self._recorder.taken(kind)) < count:
                if timer.done() or self._taker.done():
                    raise DeviceError(f"no {kind.__name__} came")
                news = asyncio.create_task(self._news.wait())
                ends: set[asyncio.Task[Any]] = {news, timer, self._taker}
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                await _cancel(news)
            return taken[count - 1]
        finally:
            await _cancel(timer)

    def drop(self) -> None:
        """Cut the connection without a word, as a board does that loses its power."""
        self._connection.transport.abort()

    async def _run_turn(self, speaking: Coroutine[Any, Any, None]) -> Turn:
        self._over.clear()
        speaker = asyncio.create_task(speaking)
        over = asyncio.create_task(self._over.wait())
        timer = asyncio.create_task(self._clock.sleep_until(self._clock.now() + self._limit_s))
        ends: set[asyncio.Task[Any]] = {over, timer, self._taker}
        try:
            await asyncio.wait({*ends, speaker}, return_when=asyncio.FIRST_COMPLETED)
            if speaker.done():
                speaker.result()
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _cancel(speaker, over, timer)
        return self._finish_turn()

    def _finish_turn(self) -> Turn:
        at = self._elapsed()
        if self._over.is_set():
            return self._recorder.finish(self._outcome, at, _DETAILS.get(self._outcome, ""))
        self._firmware.abandon()
        if self._taker.done():
            self._taker.result()
            return self._recorder.finish(Outcome.CLOSED, at, self._close_detail())
        return self._recorder.finish(Outcome.TIMED_OUT, at, f"the turn had not ended after {self._limit_s:g} s")

    def _close_detail(self) -> str:
        code, reason = self._connection.close_code, self._connection.close_reason
        return f"the connection closed ({code}{' ' * bool(reason)}{sanitize(reason or '')})"

    async def _speak(self, pcm: bytes) -> None:
        with suppress(ConnectionClosed):  # the turn then ends as CLOSED, once what came before has been taken
            await self._connection.send(encode_command(StartChat()))
            await self._send_recording(pcm)

    async def _send_recording(self, pcm: bytes) -> None:
        began = self._clock.now()
        for frame in microphone(pcm, endless=self._link.stream_asr, realtime=self._realtime):
            await self._clock.sleep_until(began + frame.due_s)
            if not self._firmware.sending:
                return
            await self._connection.send(frame.data)
            if frame.ends_speech:
                self._recorder.speech_ended(self._elapsed())
            if frame.paced and (effect := self._firmware.sent(seconds(frame.data))) is not None:
                await self._apply(effect)
                return
        self._firmware.submit()
        await self._connection.send(encode_command(Submit()))

    async def _type(self, text: str) -> None:
        with suppress(ConnectionClosed):
            await self._connection.send(encode_command(Text(text)))
            self._recorder.speech_ended(self._elapsed())

    async def _send(self, message: str | bytes) -> None:
        try:
            await self._connection.send(message)
        except ConnectionClosed as error:
            raise DeviceError(self._close_detail()) from error

    async def _read(self) -> None:
        """Move messages from the socket to the queue; when that is full, the server is left to wait."""
        with suppress(ConnectionClosed):
            async for message in self._connection:
                await self._queue.put(message)
        await self._queue.put(None)

    async def _take_events(self) -> None:
        """Take event after event, none while a sentence plays, until the connection ends. Raises DeviceError."""
        while (message := await self._queue.get()) is not None:
            event = _decode(message)
            self._recorder.take(self._elapsed(), event)
            if self._on_event is not None:
                self._on_event(self._elapsed(), event)
            self._news.set()
            self._news.clear()
            await self._apply(self._firmware.take(event, self._clock.now()))
            await asyncio.sleep(0)  # decoding a full queue would hold the loop up

    async def _apply(self, effect: Effect | None) -> None:
        match effect:
            case Pause(until):
                await self._clock.sleep_until(until)
            case TurnOver(outcome):
                self._outcome = outcome
                self._over.set()

    def _elapsed(self) -> float:
        return self._clock.now() - self._connected_at


_DETAILS = {Outcome.GAVE_UP: "10 s of audio went out without an ASR event; the board gave up"}


async def converse(
    url: str,
    *,
    device_id: str,
    pcm: bytes | None = None,
    text: str | None = None,
    link: LinkParameters = BOARD_LINK,
    realtime: bool = True,
    limit_s: float = 120.0,
    on_event: OnEvent | None = None,
) -> Conversation:
    """Connect, ask one question (`pcm`: s16le, mono, 16 kHz, or `text`), take the answer, close. See `Board`.

    Raises DeviceError when there is no connection or the server sends what a board doesn't take.
    """
    if (pcm is None) == (text is None):
        raise ValueError("converse takes pcm or text")
    board = Board(url, device_id=device_id, link=link, realtime=realtime, limit_s=limit_s, on_event=on_event)
    async with board:
        return await board.send_text(text) if text is not None else await board.say(pcm or b"")


def _decode(message: str | bytes) -> ServerEvent:
    if isinstance(message, str):
        raise DeviceError("the server sent a text message; events are binary")
    try:
        return decode_event(message)
    except ProtocolError as error:
        raise DeviceError(f"the server sent {len(message)} bytes that a board refuses: {error}") from error


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
