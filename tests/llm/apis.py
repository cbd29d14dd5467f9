"""The two APIs with their clients and fakes side by side, and how a client is asked. Holds no tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from echokit_py.errors import BackendError
from echokit_py.http import HttpClient
from echokit_py.llm.base import Llm, LlmEvent, Message, Step, TextDelta, Tool
from echokit_py.llm.chat import OpenAiChat
from echokit_py.llm.responses import OpenAiResponses
from tests.fakes import chat_server, responses_server
from tests.fakes.scripted_server import Answer, Piece, ScriptedServer

HI: list[Message] = [{"role": "user", "content": "Hi"}]
LIGHT = Tool("set_light", "Switch a light.", {"type": "object", "properties": {"room": {"type": "string"}}})


def chat(http: HttpClient, server: ScriptedServer, api_key: str = "", model: str = "gpt", **extra: Any) -> OpenAiChat:
    return OpenAiChat(http, url=server.url, api_key=api_key, model=model, extra=extra)


def responses(http: HttpClient, server: ScriptedServer, api_key: str = "", **extra: Any) -> OpenAiResponses:
    return OpenAiResponses(
        http, url=server.url, api_key=api_key, model="gpt", instructions="You are helpful.", extra=extra
    )


async def ask(llm: Llm, *tools: Tool, messages: Sequence[Message] = HI) -> tuple[list[LlmEvent], BackendError | None]:
    """All events, and the error at the end if there was one."""
    events: list[LlmEvent] = []
    try:
        async for happened in llm.stream(messages, tools):
            events.append(happened)
    except BackendError as error:
        return events, error
    return events, None


def text_of(events: list[LlmEvent]) -> str:
    return "".join(happened.text for happened in events if isinstance(happened, TextDelta))


def step_of(events: list[LlmEvent]) -> Step:
    assert isinstance(events[-1], Step)
    return events[-1]


@dataclass(frozen=True, slots=True)
class Api:
    """One API. `says_hi`: a whole answer, not streamed; `ending`: how many pieces after a call make it certain."""

    name: str
    client: Callable[..., Llm]
    server: Callable[..., ScriptedServer]
    say: Callable[..., Answer]
    call: Callable[..., Answer]
    broken_off: Callable[..., Answer]
    error_event: Callable[[str], Piece]
    answer: Answer
    says_hi: bytes
    ending: int

    def __str__(self) -> str:
        return self.name


CHAT = Api(
    "chat",
    chat,
    chat_server.ChatServer,
    chat_server.say,
    chat_server.call,
    chat_server.broken_off,
    lambda message: chat_server.event({"error": {"message": message}}),
    chat_server.ANSWER,
    b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi!"}, "finish_reason": "stop"}]}',
    ending=2,
)
RESPONSES = Api(
    "responses",
    responses,
    responses_server.ResponsesServer,
    responses_server.say,
    responses_server.call,
    responses_server.broken_off,
    responses_server.error_event,
    responses_server.ANSWER,
    b'{"object": "response", "status": "completed", "output": [{"type": "message", "role": "assistant",'
    b' "content": [{"type": "output_text", "text": "Hi!"}]}]}',
    ending=1,
)
