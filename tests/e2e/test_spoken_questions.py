"""A spoken question is answered by voice, with real VAD, ASR, LLM and TTS in the real program."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from echokit_py.audio.resample import to_mono_16k
from echokit_py.audio.wav import read_wav, write_wav
from echokit_py.device.board import Outcome
from echokit_py.device.client import BOARD_LINK, Board
from echokit_py.device.turn import Turn
from firmware_protocol.events import ASR, EndResponse, EndVad
from firmware_protocol.link import LinkParameters
from tests.beside import spoken_texts
from tests.e2e.conftest import Voices, load_recording
from tests.server_process import ServerProcess
from tests.words import error_rate, errors, words

# Several real turns each, on a machine that may be busy with other things.
pytestmark = [pytest.mark.models, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900)]

RECORDINGS = sorted(spoken_texts())
SUBMITTING = LinkParameters(opus=True, vowel=True)
PCM = LinkParameters(stream_asr=True)


# What Whisper tiny.en hears in these recordings, without any server in between, with as many words wrong: it is the
# recogniser's own. (Whisper base mishears the same words.)
MISHEARD = {"espeak_para.wav": 5, "espeak_weather.wav": 5, "joe_weather.wav": 2, "human_two_cities_12s.wav": 6}

# Of all answers' words together this many may be misunderstood. A single answer may be worse: the small model invents
# words, and the recogniser has its own errors. With more than half of the words wrong it is another text, or noise.
ANSWERS_LIMIT, ANSWER_LIMIT = 0.15, 0.5


@dataclass
class Tally:
    """Words said and words misunderstood."""

    said: int = 0
    wrong: int = 0

    def add(self, said: str, understood: str) -> None:
        """Count one text."""
        self.said += len(words(said))
        self.wrong += errors(said, understood)

    @property
    def rate(self) -> float:
        """The word error rate."""
        return self.wrong / max(1, self.said)


async def understand(turn: Turn, voices: Voices) -> tuple[str, str]:
    """The text of an answer, and what a recogniser hears in its audio."""
    assert turn.outcome is Outcome.ANSWERED, turn.detail
    assert turn.answer
    quiet = bytes(16_000)
    return " ".join(turn.answer), (await voices.asr.transcribe(quiet + turn.audio + quiet)).text


async def check_answer(turn: Turn, voices: Voices) -> tuple[str, str]:
    """The audio of an answer says its text. Returns the text and what was understood."""
    text, understood = await understand(turn, voices)
    assert error_rate(text, understood) <= ANSWER_LIMIT, f"answered {text!r}, understood {understood!r}"
    return text, understood


def check_question(turn: Turn, said: str, misheard: int = 0) -> None:
    """The question was understood: at most one word in ten is wrong, and no word of a short one."""
    limit = max(misheard, len(words(said)) // 10)
    assert errors(said, turn.asr) <= limit, f"said {said!r}, understood {turn.asr!r}"


@pytest.mark.parametrize("link", [BOARD_LINK, SUBMITTING, PCM], ids=["board", "submit", "pcm"])
async def test_a_question_of_our_own(server: ServerProcess, voices: Voices, link: LinkParameters) -> None:
    question = "What is the capital of France?"
    async with Board(server.url, device_id=f"own-{link.opus}", link=link, realtime=False) as board:
        turn = await board.say(await voices.say(question))
    check_question(turn, question)
    await check_answer(turn, voices)
    events = [event for _, event in turn.events]
    assert events.count(EndResponse()) == 1
    assert events.count(EndVad()) == (1 if link.stream_asr else 0)


@pytest.mark.skipif(not RECORDINGS, reason="the spoken sentences (shared/audio beside the checkout) are not here")
@pytest.mark.parametrize("link", [BOARD_LINK, SUBMITTING], ids=["board", "submit"])
async def test_every_recording(patient_server: ServerProcess, voices: Voices, link: LinkParameters) -> None:
    """The people who read make pauses of up to 1.1 s, so this server waits that long for more. Two talk at a time."""
    questions, answers, places = Tally(), Tally(), asyncio.Semaphore(2)

    async def ask(name: str, said: str) -> None:
        async with places, Board(patient_server.url, device_id=name, link=link, realtime=False) as board:
            turn = await board.say(load_recording(name))
        check_question(turn, said, MISHEARD.get(name, 0))
        questions.add(said, turn.asr)
        answers.add(*await check_answer(turn, voices))

    async with asyncio.TaskGroup() as group:
        for name, said in sorted(spoken_texts().items()):
            group.create_task(ask(name, said))
    assert questions.rate <= 0.10, questions
    assert answers.rate <= ANSWERS_LIMIT, answers


async def test_the_command_in_real_time(server: ServerProcess, voices: Voices, tmp_path: Path) -> None:
    question, out = tmp_path / "question.wav", tmp_path / "answer.wav"
    question.write_bytes(write_wav(await voices.say("When does the summer begin?")))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "echokit_py", "device", "--url", server.url),
        *("--wav", str(question), "--json", "--out", str(out)),
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 100)
    assert process.returncode == 0
    events = [json.loads(line) for line in printed.splitlines()]
    heard = [event["text"] for event in events if event["event"] == "ASR"]
    assert words(heard[-1]) == words("When does the summer begin?")
    answer = " ".join(event["text"] for event in events if event["event"] == "StartAudio")
    spoken = (await voices.asr.transcribe(to_mono_16k(read_wav(out.read_bytes())))).text
    assert error_rate(answer, spoken) <= ANSWER_LIMIT, f"answered {answer!r}, understood {spoken!r}"


async def test_a_long_utterance_has_interim_texts(server: ServerProcess, voices: Voices) -> None:
    text = (
        "Once upon a time there was an old lighthouse keeper who lived on a small island far away from the coast, "
        "and every evening he climbed the stairs, lit the lamp, and wrote a few lines in his book."
    )
    async with Board(server.url, device_id="long", realtime=True) as board:
        turn = await board.say(await voices.say(text))
    assert turn.outcome is Outcome.ANSWERED, turn.detail
    before = [event for _, event in turn.events[: [event for _, event in turn.events].index(EndVad())]]
    assert any(isinstance(event, ASR) for event in before)
    check_question(turn, text)


async def test_several_turns_and_the_history_over_a_reconnect(server: ServerProcess, voices: Voices) -> None:
    question = await voices.say("Tell me something about the sea.")
    async with Board(server.url, device_id="again", realtime=False) as board:
        first, second = await board.say(question), await board.send_text("And about mountains?")
    link = LinkParameters(opus=True, vowel=True, stream_asr=True, reconnect=True)
    async with Board(server.url, device_id="again", link=link, realtime=False) as board:
        third = await board.send_text("Which of the two is larger?")
    assert [turn.outcome for turn in (first, second, third)] == [Outcome.ANSWERED] * 3


# Nothing that makes a small model recite numbers: how those are spoken is a matter of taste.
EIGHT = (
    "Can you tell me something about flowers?",
    "Why is the sky blue?",
    "What do you know about music?",
    "What is the color of a banana?",
    "What do rabbits like to eat?",
    "What can I cook for dinner tonight?",
    "How do airplanes stay in the air?",
    "What should I wear in the winter?",
)


def nearest(texts: Sequence[str], text: str) -> int:
    """Which of `texts` has the fewest words other than `text`'s."""
    return min(range(len(texts)), key=lambda number: error_rate(texts[number], text))


async def test_eight_devices_at_once(server: ServerProcess, voices: Voices) -> None:
    """Each device is heard, and gets the answer to its own question: of all questions, and of all answers that a single
    device gets to them, its own are nearest. (Answers need not be equal: the order of sums in a batch may tip a close
    choice between two words.)"""
    questions = [await voices.say(text) for text in EIGHT]

    async def ask(name: str, number: int, *, realtime: bool) -> Turn:
        async with Board(server.url, device_id=f"{name}-{number}", realtime=realtime) as board:
            return await board.say(questions[number])

    alone = [" ".join((await ask("alone", number, realtime=False)).answer) for number in range(8)]
    turns = await asyncio.gather(*(ask("together", number, realtime=True) for number in range(8)))
    texts = [" ".join(turn.answer) for turn in turns]
    for number, turn in enumerate(turns):
        _, understood = await understand(turn, voices)
        assert nearest(EIGHT, turn.asr) == number, turn.asr
        assert nearest(alone, texts[number]) == number, (alone, texts[number])
        assert nearest(texts, understood) == number, (texts, understood)


async def test_turns_are_shown(server: ServerProcess) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{server.base}/api/turns") as answer:
        turns = await answer.json()
    turns = [turn for turn in turns if turn["device"] != "killer"]  # whose model was killed, in another test
    assert turns
    assert all(turn["outcome"] in {"answered", "nothing said", "interrupted"} for turn in turns), turns
