"""A real model calls a tool: llama.cpp with the packaged SmolLM2, behind a session. Asserts on what the server did.

SmolLM2 calls tools only with a chat template that shows it how, and after examples: both are given here.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from echokit_py.config.settings import Timeouts
from echokit_py.errors import BackendError, ErrorKind, ModelError
from echokit_py.http import HttpClient
from echokit_py.llm.answer import Answer
from echokit_py.llm.base import Message
from echokit_py.llm.chat import OpenAiChat
from echokit_py.llm.llama_supervisor import LlamaServer, Options
from echokit_py.models.choose import PACKAGED_LLM
from echokit_py.models.store import ModelStore
from tests.fakes.talking import Bench, chat_client, sorry, spoken, talking

pytestmark = [pytest.mark.models, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[2]
PATIENT = Timeouts(first_byte_s=120, between_bytes_s=60, turn_s=200)  # of a busy machine with one core to spare
EXTRA = {"temperature": 0, "seed": 1, "max_tokens": 48}

# Tools as lines of JSON, calls between <tool_call> tags: the way of Hermes and Qwen 2.5.
TEMPLATE = r"""
{%- set begin, end = '<|im_start|>', '<|im_end|>\n' %}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content %}
{%- else %}
    {%- set system = 'You are a helpful assistant.' %}
{%- endif %}
{{- begin + 'system\n' + system }}
{%- if tools %}
    {{- '\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n' }}
    {{- 'You are provided with function signatures within <tools></tools> XML tags:\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\n</tools>\n\nFor each function call, return a json object with function name and arguments ' }}
    {{- 'within <tool_call></tool_call> XML tags:\n<tool_call>\n' }}
    {{- '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>' }}
{%- endif %}
{{- end }}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- begin + 'user\n<tool_response>\n' + message.content + '\n</tool_response>' + end }}
    {%- elif message.role == 'assistant' and message.tool_calls %}
        {{- begin + 'assistant' }}
        {%- if message.content %}
            {{- '\n' + message.content }}
        {%- endif %}
        {%- for call in message.tool_calls %}
            {{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- end }}
    {%- elif message.role != 'system' %}
        {{- begin + message.role + '\n' + message.content + end }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- begin + 'assistant\n' }}
{%- endif %}
"""

CHILD = """
import sys
sys.path.insert(0, {root!r})
from echokit_py.llm import llama_child

plain = llama_child.parameters

def parameters(options):
    made = plain(options)
    made.chat_template = {template!r}
    return made

llama_child.parameters = parameters
llama_child.main()
"""

CLOCK: dict[str, Any] = {"type": "object", "properties": {"tz": {"type": "string"}}, "required": ["tz"]}


def example(number: int, city: str, zone: str, time: str) -> list[Message]:
    function = {"name": "get_current_time", "arguments": json.dumps({"tz": zone})}
    return [
        {"role": "user", "content": f"What time is it in {city}?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"e{number}", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": f"e{number}", "content": time},
        {"role": "assistant", "content": f"It is {time} in {city}."},
    ]


EXAMPLES = (
    *example(1, "Berlin", "Europe/Berlin", "10:15"),
    *example(2, "New York", "America/New_York", "04:20"),
    *example(3, "Madrid", "Europe/Madrid", "11:31"),
)

MANGLED: list[Message] = [
    {"role": "user", "content": "What time is it in Rome?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "m1", "type": "function", "function": {"name": "get_current_time", "arguments": "{"}}],
    },
    {"role": "tool", "tool_call_id": "m1", "content": "16:42"},
]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[tuple[str, str]]:
    """The address and the key of llama.cpp's server with the template above."""
    try:
        path = await ModelStore().path(PACKAGED_LLM)
    except ModelError as error:
        pytest.skip(f"no model to test with: {error}")
    program = tmp_path / "child.py"
    program.write_text(CHILD.format(root=str(ROOT), template=TEMPLATE.strip()))
    options = Options(str(path), PACKAGED_LLM, context=2048, parallel=1, threads=2, api_key=secrets.token_urlsafe())
    running = LlamaServer(options, program=program)
    async with asyncio.timeout(100):
        await running.start()
    yield running.chat_url(), options.api_key
    await running.close()


@pytest.fixture
def fragments(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pieces of arguments, as they come."""
    seen: list[str] = []
    plain = Answer.fragment

    def fragment(self: Answer, index: int | None, call_id: str, name: str, arguments: str) -> None:
        seen.append(arguments)
        plain(self, index, call_id, name, arguments)

    monkeypatch.setattr(Answer, "fragment", fragment)
    return seen


async def test_a_streamed_call_runs_and_a_mangled_history_is_answered(
    server: tuple[str, str], fragments: list[str]
) -> None:
    url, key = server
    tools = Bench().offer("get_current_time", parameters=CLOCK)
    tools.results["get_current_time"] = ["12:05"]
    build = chat_client(url, key, **EXTRA)
    async with talking(build, tools, timeouts=PATIENT, system="", few_shot=EXAMPLES) as talk:
        heard = await talk.ask("What time is it in Paris?")
        assert [name for name, _ in tools.called][:1] == ["get_current_time"]
        assert isinstance(tools.called[0][1]["tz"], str)
        assert len([piece for piece in fragments if piece]) >= 8
        assert spoken(heard)
        assert not sorry(heard)
        roles = [message["role"] for message in talk.next_request()[len(EXAMPLES) :]]
        assert roles[:3] == ["user", "assistant", "tool"]

        talk.remember(MANGLED)
        heard = await talk.ask("What time is it in London?")
        assert spoken(heard)
        assert not sorry(heard)


async def test_what_the_server_says_to_such_a_history_as_it_stands(server: tuple[str, str]) -> None:
    """The test above would mean little if the server took it."""
    url, key = server
    http = HttpClient(connect_s=5)
    llm = OpenAiChat(http, url=url, api_key=key, model=PACKAGED_LLM, extra=EXTRA)
    with pytest.raises(BackendError, match="tool call arguments") as caught:
        async for _ in llm.stream([*MANGLED, {"role": "user", "content": "Hello?"}]):
            pass
    assert (caught.value.kind, caught.value.status) == (ErrorKind.SERVER, 500)
    await http.close()
