"""The running program with a Responses server behind it: a conversation over `/ws`, as its platform is configured."""

from __future__ import annotations

from pathlib import Path

import pytest

from echokit_py.device.board import Outcome
from echokit_py.device.client import Board
from tests.fakes.faults import Fault
from tests.fakes.responses_server import ResponsesServer, Stream, say
from tests.fakes.scripted_server import Answer, Script
from tests.fakes.speech_server import SpeechServer
from tests.server_process import ServerProcess

pytestmark = pytest.mark.models  # a server starts with its voice detector

CONFIG = """
timeouts = {{ first_byte_s = 2, turn_s = 20 }}
asr = {{ platform = "openai", url = "{asr}", model = "whisper-1" }}
tts = {{ platform = "openai", url = "{tts}", model = "tts-1" }}

[llm]
platform = "OpenAIResponses"
llm_responses_url = "{llm}"
api_key = "key"
model = "gpt-5-nano"
sys_prompts = [{{ role = "system", content = "Be brief." }}]
extra = {{ tools = [{{ type = "web_search_preview" }}] }}
"""


def searched(text: str) -> Answer:
    stream = Stream()
    stream.web_search("lunch")
    stream.message(text)
    return stream.completed()


async def test_a_conversation(tmp_path: Path) -> None:
    llm_script: list[Script] = [
        searched("It is noon."),
        Fault.CUT_FIRST,
        Fault.CUT_FIRST,
        Fault.CUT_FIRST,
        say("You are welcome."),
    ]
    async with SpeechServer() as speech, ResponsesServer(*llm_script) as llm:
        config = tmp_path / "config.toml"
        config.write_text(CONFIG.format(asr=speech.asr_url, tts=speech.tts_url, llm=llm.url))
        async with (
            ServerProcess(config) as server,
            Board(server.url, device_id="responses", realtime=False, limit_s=40) as board,
        ):
            first = await board.send_text("What time is it?")
            assert (first.outcome, first.answer) == (Outcome.ANSWERED, ("It is noon.",))
            failed = await board.send_text("Is it?")
            assert failed.outcome is Outcome.ANSWERED
            assert failed.answer[-1].startswith("Sorry, ")
            last = await board.send_text("Thanks!")
            assert last.answer == ("You are welcome.",)
        assert llm.faults == []
        body = llm.requests[-1].json
        assert body["instructions"] == "Be brief."
        assert body["tools"] == [{"type": "web_search_preview"}]
        assert body["store"] is False
        assert "previous_response_id" not in body
        # How much of the first answer is in it depends on how much of it had time to play.
        assert {item["type"] for item in body["input"]} == {"message"}
        assert body["input"][0]["content"].startswith("What time is it?")
        assert body["input"][-1]["content"].endswith("Thanks!")
