"""The voice of an answer in virtual time: how far it runs ahead, and what becomes of sentences that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any

import pytest

from echokit_py.config.settings import Timeouts
from echokit_py.errors import BackendError, ErrorKind, Stage
from echokit_py.session.journal import Mark, TurnRecord
from echokit_py.session.outbox import Outbox
from echokit_py.session.piece import Piece
from echokit_py.session.speaker import PACKETS_AT_ONCE, Speaker
from echokit_py.session.turn import Turn
from firmware_protocol.events import AudioChunk, EndAudio, ServerEvent, StartAudio
from firmware_protocol.link import LinkParameters
from tests.fakes.providers import scripted, silence, speech
from tests.fakes.virtual_time import InlineExecutor, run

LIMITS = Timeouts(first_byte_s=20, between_bytes_s=10)
SENTENCES = ("One is here.", "Two is here.", "Three is here.", "Four is here.", "Five is here.")

Step = float | Exception | bytes
"""What a voice does: wait so many seconds, fail, or give audio."""


def failure(kind: ErrorKind, retry_after: float | None = None) -> BackendError:
    return BackendError(Stage.TTS, kind, "no", retry_after=retry_after)


class Voice:
    """A voice with a script for each word that a text begins with: one list of steps for each try, the last again."""

    def __init__(self, **scripts: Sequence[Sequence[Step]]) -> None:
        self.scripts = scripts
        self.asked: list[tuple[float, str]] = []  # when, which
        self.running = self.most = 0

    async def synthesize(self, text: str) -> AsyncGenerator[bytes, None]:
        name = text.split(maxsplit=1)[0]
        self.asked.append((asyncio.get_running_loop().time() - 1000, name))
        self.running += 1
        self.most = max(self.most, self.running)
        tries = self.scripts.get(name.lower(), [[speech(1)]])
        try:
            for step in tries[min(self.names.count(name), len(tries)) - 1]:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, bytes):
                    yield step
                else:
                    await asyncio.sleep(step)
        finally:
            self.running -= 1

    @property
    def names(self) -> list[str]:
        return [name for _, name in self.asked]

    async def start(self) -> None: ...

    async def probe(self) -> str:
        return "scripted"

    async def close(self) -> None: ...


class Listener:
    """A turn, and a device that takes what it is sent at once, or plays it in its time."""

    def __init__(self, turn: Turn, speaker: Speaker, voice: Voice, pieces: list[Piece], plays: bool) -> None:
        self.turn, self.speaker, self.voice, self.plays = turn, speaker, voice, plays
        self.pieces = pieces
        self.error: BackendError | None = None
        self.events: list[tuple[float, ServerEvent]] = []
        self.on_audio = 0

    async def hear(self) -> None:
        """Let the speaker speak it all."""
        queue: asyncio.Queue[Piece | None] = asyncio.Queue()
        for piece in self.pieces:
            queue.put_nowait(piece)
        queue.put_nowait(None)
        taking = asyncio.create_task(self._take())
        try:
            await self.speaker.run(queue)
        except BackendError as error:
            self.error = error
        await asyncio.sleep(60)
        taking.cancel()
        assert self.voice.running == 0

    async def _take(self) -> None:
        while True:
            entry = await self.turn.outbox.get()
            self.events.append((asyncio.get_running_loop().time() - 1000, entry.event))
            if entry.on_sent is not None:
                entry.on_sent()
            await asyncio.sleep(entry.seconds if self.plays else 0)

    @property
    def sentences(self) -> list[tuple[str, float]]:
        """What was displayed, and how many seconds of audio came with it; audio stands nowhere else."""
        found: list[tuple[str, float]] = []
        inside = False
        for _, event in self.events:
            if isinstance(event, StartAudio):
                assert not inside
                inside = True
                found.append((event.text, 0.0))
            elif isinstance(event, AudioChunk):
                assert inside
                found[-1] = (found[-1][0], round(found[-1][1] + len(event.data) / 32_000, 3))
            elif isinstance(event, EndAudio):
                assert inside
                inside = False
        assert not inside
        return found

    @property
    def voiced(self) -> dict[str, bool]:
        """The first word of each sentence, and whether it was more than silence."""
        found: dict[str, bool] = {}
        name = ""
        for _, event in self.events:
            if isinstance(event, StartAudio):
                name = event.text.split()[0]
                found[name] = False
            elif isinstance(event, AudioChunk):
                found[name] = found[name] or any(event.data)
        return found

    def began(self, name: str) -> float:
        """When a sentence's audio began to be sent."""
        return next(at for at, event in self.events if isinstance(event, StartAudio) and event.text.startswith(name))


Story = Callable[[Listener], Coroutine[Any, Any, None]]


def tell(story: Story, voice: Voice, *texts: str | Piece, timeouts: Timeouts = LIMITS, plays: bool = False) -> Listener:
    """Run a story with a speaker in virtual time; nothing may be reported to the loop."""
    errors: list[dict[str, Any]] = []

    async def whole() -> Listener:
        turn = Turn(Outbox(), LinkParameters(), TurnRecord("board", "0001"), question="Count.")
        pieces = [text if isinstance(text, Piece) else Piece(text) for text in texts or SENTENCES]

        def on_audio() -> None:
            listener.on_audio += 1

        speaker = Speaker(turn, services, on_audio)
        listener = Listener(turn, speaker, voice, pieces, plays)
        await story(listener)
        return listener

    with scripted(timeouts, encoder=InlineExecutor()) as made:
        services = made.services
        object.__setattr__(services, "tts", voice)
        listener = run(whole(), errors.append)
    assert errors == []
    return listener


def hear(voice: Voice, *texts: str | Piece, timeouts: Timeouts = LIMITS, plays: bool = False) -> Listener:
    """Let a speaker speak it all."""
    return tell(lambda listener: listener.hear(), voice, *texts, timeouts=timeouts, plays=plays)


def test_sentences_are_spoken_in_order_and_noted() -> None:
    heard = hear(Voice())
    assert heard.sentences == [(text, 1.0) for text in SENTENCES]
    assert heard.error is None
    assert heard.on_audio == 5
    assert (heard.turn.record.question, heard.turn.record.answer) == ("Count.", " ".join(SENTENCES))
    assert {Mark.TTS_REQUEST, Mark.TTS_FIRST, Mark.AUDIO_QUEUED, Mark.AUDIO_SENT} <= heard.turn.record.marks.keys()


def test_two_are_synthesised_while_one_plays_and_no_more() -> None:
    long = [[speech(30)]]  # 5 s fit into the outbox, 15 s wait in the clip
    voice = Voice(one=long, two=[[2.0, speech(1)]], three=[[2.0, speech(1)]], four=[[speech(1)]])

    async def story(listener: Listener) -> None:
        hearing = asyncio.create_task(listener.hear())
        await asyncio.sleep(1)
        assert listener.voice.names == ["One", "Two", "Three"]
        assert listener.voice.most == 3
        await asyncio.sleep(20)
        assert listener.voice.names == ["One", "Two", "Three"]
        await hearing

    assert tell(story, voice, plays=True).sentences[1:] == [(text, 1.0) for text in SENTENCES[1:]]


def test_a_slow_first_byte_does_not_leave_the_listener_waiting_at_each_sentence() -> None:
    late: list[Step] = [1.5, speech(1)]
    voice = Voice(**{name: [late] for name in ("one", "two", "three", "four", "five")})
    heard = hear(voice, plays=True)
    # one after the other it would be 1.5 s for each
    assert [round(heard.began(name), 1) for name in ("One", "Two", "Three", "Four", "Five")] == [1.5, 3, 4, 5, 6]


def test_a_voice_that_is_hardly_fast_enough_is_not_asked_for_two_things_at_once() -> None:
    crawling: list[Step] = [0.2, speech(0.24)] * 10
    heard = hear(Voice(**{name: [crawling] for name in ("one", "two", "three", "four", "five")}), plays=True)
    assert heard.voice.most == 1
    assert [length for _, length in heard.sentences] == [2.4] * 5


def test_the_first_sentence_has_the_voice_to_itself() -> None:
    heard = hear(Voice(one=[[0.4, speech(0.3)]]))
    assert heard.voice.asked[:3] == [
        (0, "One"),
        (pytest.approx(0.4, abs=0.01), "Two"),
        (pytest.approx(0.4, abs=0.01), "Three"),
    ]


@pytest.mark.parametrize("kind", [ErrorKind.SERVER, ErrorKind.BAD_ANSWER, ErrorKind.CONNECT, ErrorKind.INTERNAL])
def test_a_sentence_that_failed_is_tried_once_more(kind: ErrorKind) -> None:
    heard = hear(Voice(two=[[failure(kind)], [speech(1)]]))
    assert heard.voice.names.count("Two") == 2
    assert heard.sentences == [(text, 1.0) for text in SENTENCES]


@pytest.mark.parametrize("steps", [[failure(ErrorKind.SERVER)], []])
def test_a_sentence_that_failed_twice_is_shown_and_the_rest_goes_on(steps: list[Step]) -> None:
    heard = hear(Voice(two=[steps]))
    assert heard.voice.names.count("Two") == 2
    assert [text for text, _ in heard.sentences] == list(SENTENCES)
    assert heard.voiced == {"One": True, "Two": False, "Three": True, "Four": True, "Five": True}
    assert 0.9 < dict(heard.sentences)["Two is here."] < 1.1  # long enough to be read
    assert heard.error is None
    assert heard.turn.playout.heard(1e9) == " ".join(SENTENCES)


def test_the_first_sentence_is_shown_when_the_second_sounds() -> None:
    heard = hear(Voice(one=[[failure(ErrorKind.SERVER)]]), "One " + "and more " * 30 + "is here.", "Two is here.")
    assert heard.voiced == {"One": False, "Two": True}
    assert 5.5 < heard.sentences[0][1] < 6.5
    assert heard.error is None


def test_those_that_failed_are_shown_in_their_order() -> None:
    no = [[failure(ErrorKind.REFUSED)]]
    heard = hear(Voice(one=no, two=no, three=no))
    assert [text for text, _ in heard.sentences] == list(SENTENCES)
    assert heard.voiced == {"One": False, "Two": False, "Three": False, "Four": True, "Five": True}


@pytest.mark.parametrize("kind", [ErrorKind.REFUSED, ErrorKind.CONTEXT])
def test_what_is_refused_is_not_asked_for_again(kind: ErrorKind) -> None:
    heard = hear(Voice(two=[[failure(kind)]]))
    assert heard.voice.names.count("Two") == 1
    assert heard.voiced["Two"] is False
    assert heard.voiced["Three"] is True


def test_a_fault_in_a_voice_costs_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    heard = hear(Voice(one=[[speech(3), 2.0, speech(1)]], two=[[ZeroDivisionError()]]))
    assert heard.voiced == {"One": True, "Two": False, "Three": True, "Four": True, "Five": True}
    assert dict(heard.sentences)["One is here."] == 4
    assert "ZeroDivisionError" in caplog.text


def test_a_refused_key_ends_it_at_once() -> None:
    heard = hear(Voice(two=[[failure(ErrorKind.AUTH)]]))
    assert heard.error is not None
    assert heard.error.kind is ErrorKind.AUTH
    assert list(heard.voiced) == ["One"]


def test_a_voice_that_always_fails_has_failed_and_shows_nothing() -> None:
    kinds = (ErrorKind.SERVER, ErrorKind.REFUSED, ErrorKind.BAD_ANSWER, ErrorKind.SERVER, ErrorKind.SERVER)
    names = ("one", "two", "three", "four", "five")
    heard = hear(Voice(**{name: [[failure(kind)]] for name, kind in zip(names, kinds, strict=True)}))
    assert heard.sentences == []
    assert heard.error is not None
    assert heard.error.kind is ErrorKind.SERVER


def test_a_sentence_that_broke_off_is_not_begun_again() -> None:
    heard = hear(Voice(two=[[speech(0.5), failure(ErrorKind.BROKEN_OFF)]]))
    assert heard.voice.names == ["One", "Two", "Three", "Four", "Five"]
    assert heard.sentences == [(text, 0.5 if text.startswith("Two") else 1.0) for text in SENTENCES]
    assert heard.error is None


def test_sentences_that_all_broke_off_are_a_failure() -> None:
    heard = hear(Voice(one=[[speech(0.5), failure(ErrorKind.BROKEN_OFF)]]), "One is here.")
    assert heard.sentences == [("One is here.", 0.5)]
    assert heard.error is not None


def test_a_retry_shares_the_time_of_the_first_try() -> None:
    voice = Voice(two=[[15.0, failure(ErrorKind.SERVER)], [100.0]])
    heard = hear(voice)
    assert heard.voice.names.count("Two") == 2
    assert heard.voiced["Two"] is False
    assert heard.began("Three") == pytest.approx(20, abs=0.1)


def test_time_that_ran_out_is_not_tried_again() -> None:
    heard = hear(Voice(two=[[100.0]]))
    assert heard.voice.names.count("Two") == 1
    assert heard.voiced == {"One": True, "Two": False, "Three": True, "Four": True, "Five": True}


def test_two_in_a_row_that_are_waited_for_in_vain_are_enough() -> None:
    heard = hear(Voice(two=[[100.0]], three=[[100.0]]))
    assert heard.error is not None
    assert heard.error.kind is ErrorKind.TIMEOUT
    assert list(heard.voiced) == ["One", "Two"]
    assert heard.began("Two") < 21  # they were waited for at the same time


@pytest.mark.parametrize(("after", "tries"), [(3.0, 2), (30.0, 1)])
def test_a_service_that_asks_for_patience_gets_it_while_there_is_time(after: float, tries: int) -> None:
    heard = hear(Voice(two=[[failure(ErrorKind.RATE_LIMIT, after)], [speech(1)]]))
    asked = [at for at, name in heard.voice.asked if name == "Two"]
    assert len(asked) == tries
    assert asked[-1] - asked[0] == pytest.approx(after if tries == 2 else 0, abs=0.01)
    assert heard.voiced["Two"] is (tries == 2)


def test_a_filler_that_fails_is_not_shown() -> None:
    heard = hear(Voice(one=[[failure(ErrorKind.SERVER)]]), Piece("One moment.", kept=False), "Two is here.")
    assert [text for text, _ in heard.sentences] == ["Two is here."]
    assert heard.error is None


def test_a_filler_is_spoken_and_not_kept() -> None:
    heard = hear(Voice(), Piece("One moment.", kept=False), "Two is here.")
    assert [text for text, _ in heard.sentences] == ["One moment.", "Two is here."]
    assert heard.turn.playout.heard(1e9) == "Two is here."
    assert heard.turn.record.answer == "Two is here."


class Ahead:
    """Speech whose synthesis was begun earlier."""

    def __init__(self, *steps: Step) -> None:
        self.steps, self.closed = steps, False

    async def audio(self) -> AsyncGenerator[bytes, None]:
        try:
            for step in self.steps:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, bytes):
                    yield step
                else:
                    await asyncio.sleep(step)
        finally:
            self.closed = True


def test_audio_that_was_made_ahead_is_used() -> None:
    ahead = Ahead(speech(0.5), 1.0, speech(0.5))
    heard = hear(Voice(), Piece("One is here.", audio=ahead.audio()), "Two is here.")
    assert heard.voice.names == ["Two"]
    assert heard.sentences == [("One is here.", 1.0), ("Two is here.", 1.0)]
    assert heard.began("One") == pytest.approx(0, abs=0.01)
    assert ahead.closed


def test_audio_that_failed_ahead_is_made_again() -> None:
    ahead = Ahead(failure(ErrorKind.SERVER))
    heard = hear(Voice(), Piece("One is here.", audio=ahead.audio()))
    assert heard.voice.names == ["One"]
    assert heard.voiced == {"One": True}


def test_audio_ahead_that_hangs_has_its_time_too() -> None:
    ahead = Ahead(speech(0.5), 100.0)
    heard = hear(Voice(), Piece("One is here.", audio=ahead.audio()), "Two is here.")
    assert heard.sentences == [("One is here.", 0.5), ("Two is here.", 1.0)]
    assert ahead.closed


def test_the_first_packet_comes_alone_and_the_rest_in_ever_larger_pieces() -> None:
    sizes = [
        len(event.data) for _, event in hear(Voice(one=[[speech(6)]]), SENTENCES[0]).events if hasattr(event, "data")
    ]
    packet = 3840
    assert sizes[:4] == [packet, 2 * packet, 4 * packet, PACKETS_AT_ONCE * packet]
    assert max(sizes) == PACKETS_AT_ONCE * packet
    assert sum(sizes) == 6 * 32_000


def test_everything_ends_with_a_cancelled_speaker() -> None:
    voice = Voice(two=[[100.0]], three=[[100.0]])

    async def story(listener: Listener) -> None:
        hearing = asyncio.create_task(listener.hear())
        await asyncio.sleep(1)
        assert voice.running == 2
        hearing.cancel()
        await asyncio.wait([hearing])
        assert voice.running == 0
        left = {task for task in asyncio.all_tasks() if task.get_name().startswith("synthesis")}
        assert not left

    tell(story, voice)


def test_an_apology_is_spoken_as_it_was_made() -> None:
    async def story(listener: Listener) -> None:
        listener.plays = True
        taking = asyncio.create_task(listener._take())
        await listener.speaker.say("Sorry.", silence(40))
        await asyncio.sleep(60)
        taking.cancel()

    heard = tell(story, Voice())
    assert heard.sentences == [("Sorry.", 40.0)]
    assert heard.turn.record.answer == ""
