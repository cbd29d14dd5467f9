"""Mutates streams of LLM servers, and says what is wrong with how one was read. Deterministic for a given `Random`.

What must hold for any bytes, cut anywhere: reading never raises; the pieces don't matter; a call is there only if it is
whole, was offered and nothing went wrong; what came before a cut is never taken for more than the uncut stream says.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Literal

from echokit_py.llm.message_rules import read_arguments
from echokit_py.llm.stream import ChatStream, Outcome, ResponsesStream
from echokit_py.text.unicode import is_utf8
from tests.beside import STREAMS, streams
from tests.fakes import chat_server, responses_server
from tests.fakes.scripted_server import Answer

Api = Literal["chat", "responses"]

MAX_BYTES = 200_000
BYTEWISE = 20_000  # what is longer isn't read byte by byte, which takes its time
TOOLS = ("set_light", "get_weather", "search", "add")

_TOKENS = [
    *(b"data: [DONE]\n\n", b"data: {}\n\n", b"event: error\n", b": ping\n\n", b"\r", b"\n\n", b"\r\n", b"\xef\xbb\xbf"),
    *(b'"index":1,', b'"id":"x",', b'"name":"search",', b'"arguments":"{}"', b"null", b"{}", b"[]", b'"', b"\\", b"{"),
    *(b"\\ud83d", b"\xf0\x9f", b"NaN", b"1e999", b"-1", b'"finish_reason":"stop"', b"<think>", b"</think>", b"\x00"),
    *(b"<tool_call>", b"[TOOL_CALLS]", b"<|channel|>", b'{"name": "search", "arguments": {}}', b'"error":{"code":500}'),
]
_VALUES: list[Any] = [
    None,
    "",
    "x",
    "{}",
    "}",
    '{"a":1}',
    0,
    1,
    -1,
    2.5,
    True,
    [],
    {},
    {"a": 1},
    "search",
    "stop",
    "error",
]


@dataclass(frozen=True, slots=True)
class Seed:
    """A stream as some server sends it, and the tools that were offered."""

    name: str
    api: Api
    body: bytes
    tools: tuple[str, ...]


def seeds() -> list[Seed]:
    """Streams of the fakes, and those of the corpus where it stands beside the checkout."""
    found = [
        Seed(f"{name} {n}", api, answer.body, TOOLS)
        for name, api, answers in _own()
        for n, answer in enumerate(answers)
    ]
    for entry in streams():
        body = (STREAMS / entry["file"]).read_bytes() if entry["api"] in ("chat", "responses") else b""
        names = [tool if isinstance(tool, str) else "" for tool in entry.get("tools", [])]
        names = [*names, *entry.get("tool_schemas", {}), *(one["name"] for one in entry["expect"].get("calls", []))]
        if 0 < len(body) < MAX_BYTES:
            found.append(Seed(entry["file"], entry["api"], body, tuple(dict.fromkeys(filter(None, names))) or TOOLS))
    return found


def _own() -> Iterator[tuple[str, Api, list[Answer]]]:
    calls = (("call_1", "set_light", '{"room": "hall", "on": true}'), ("call_2", "get_weather", '{"city": "Oslo"}'))
    chat, responses = chat_server, responses_server
    yield "chat", "chat", [chat.say("Hello. ", "Bye.", reasoning="Hm."), chat.call(*calls, text="Sure. ")]
    stream = responses_server.Stream()
    stream.reasoning("Look.", "E")
    stream.web_search("x")
    stream.mcp("search", "{}", "y")
    stream.call("call_1", "search", '{"q": "😀"}')
    stream.message("Done.")
    yield "responses", "responses", [responses.say("Hello. ", "Bye."), responses.call(*calls), stream.completed()]


def read(seed: Seed, body: bytes, sizes: Iterator[int] | None = None, *, clean: bool = True) -> Outcome:
    """What is understood of `body`, fed whole or in pieces of `sizes`."""
    stream = ChatStream(seed.tools) if seed.api == "chat" else ResponsesStream(seed.tools)
    start = 0
    while start < len(body):
        size = next(sizes) if sizes else len(body)
        stream.feed(body[start : start + size])
        start += size
    return stream.close(clean=clean)


def wrong(seed: Seed, body: bytes, chance: Random) -> Iterator[str]:
    """What is wrong with how `body` is read, each a sentence; nothing if all is well. An exception is wrong as well."""
    outcome = read(seed, body)
    yield from _wrong_outcome(seed, outcome)
    for sizes in ([1, 2, 3, 7, 40, 300, 4096], [1] if len(body) < BYTEWISE else [1, 4096]):
        again = read(seed, body, iter(partial(chance.choice, sizes), 0))
        if _said(again) != _said(outcome):
            yield f"cut in pieces it says something else: {_said(again)} instead of {_said(outcome)}"
    if outcome.error is None and not outcome.step.refused:
        whole = {(call.name, call.arguments) for call in outcome.step.calls}
        end = chance.randrange(len(body) + 1)
        for clean in (True, False):
            cut = read(seed, body[:end], clean=clean)
            yield from _wrong_outcome(seed, cut)
            if clean and seed.api == "responses" and body != seed.body:
                continue  # a mutated event may contradict the one before, and the last one counts
            if not {(call.name, call.arguments) for call in cut.step.calls} <= whole:
                yield f"cut at {end} (clean: {clean}) it calls {cut.step.calls}, whole {outcome.step.calls}"


def _said(outcome: Outcome) -> tuple[object, ...]:
    """What must not depend on the pieces. Ids that were minted differ each time."""
    step = outcome.step
    calls = tuple((call.name, call.arguments) for call in step.calls)
    return step.text, step.reasoning, step.finish_reason, calls, step.refused, str(outcome.error), outcome.call_text


def _wrong_outcome(seed: Seed, outcome: Outcome) -> Iterator[str]:
    step = outcome.step
    if outcome.error is not None and step.calls:
        yield "there are calls in spite of an error"
    if len({call.id for call in step.calls}) < len(step.calls) or not all(call.id for call in step.calls):
        yield "an id is missing or doubled"
    for call in step.calls:
        if call.name not in seed.tools:
            yield f"{call.name!r} was not offered"
        if read_arguments(call.arguments) is None:
            yield f"the arguments are no JSON object: {call.arguments[:200]!r}"
    texts = [step.text, step.reasoning, outcome.call_text, *(call.id for call in step.calls)]
    texts += [text for one in step.refused for text in (one.name, one.raw)]
    if not all(is_utf8(text) for text in texts):
        yield "a text holds half a character"


# Mutations


def mutate(seed: Seed, others: list[Seed], chance: Random) -> bytes:
    """The body of `seed` after one to six mutations."""
    body = seed.body
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
        body = chance.choice(_MUTATIONS)(body, chance)
        if chance.random() < 0.05:
            other = chance.choice([one for one in others if one.api == seed.api]).body
            body = body[: chance.randrange(len(body) + 1)] + other[chance.randrange(len(other)) :]
    return body[:MAX_BYTES]


def _truncate(body: bytes, chance: Random) -> bytes:
    return body[: chance.randrange(len(body) + 1)]


def _flip(body: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(body) + 1)
    return body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]


def _insert(body: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(body) + 1)
    return body[:at] + chance.choice(_TOKENS) + body[at:]


def _remove(body: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(body) + 1)
    return body[:at] + body[at + chance.choice([1, 2, 5, 30, 400]) :]


def _line_ends(body: bytes, chance: Random) -> bytes:
    return body.replace(b"\n", chance.choice([b"\r\n", b"\r", b"\n\n"]))


def _reorder(body: bytes, chance: Random) -> bytes:
    """Drop, double, move or join events."""
    events = body.split(b"\n\n")
    at, to = chance.randrange(len(events)), chance.randrange(len(events))
    match chance.randrange(4):
        case 0:
            del events[at]
        case 1:
            events.insert(to, events[at])
        case 2:
            events.insert(to, events.pop(at))
        case _:
            events[at : at + 2] = [b"\n".join(events[at : at + 2])]
    return b"\n\n".join(events)


def _restructure(body: bytes, chance: Random) -> bytes:
    """Change a member of one event's JSON, or repeat the event with such a change."""
    events = body.split(b"\n\n")
    at = chance.randrange(len(events))
    head, mark, data = events[at].partition(b"data: ")
    try:
        value = json.loads(data)
    except ValueError:
        return body
    value = _change(value, chance)
    changed = head + mark + json.dumps(value).encode()
    events[at : at + chance.randrange(2)] = [changed]
    return b"\n\n".join(events)


def _change(value: Any, chance: Random) -> Any:
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places:
        return chance.choice(_VALUES)
    holder, key = chance.choice(places)
    match chance.randrange(4):
        case 0 if isinstance(holder, dict):
            del holder[key]
        case 1 if isinstance(holder[key], str):
            cut = chance.randrange(len(holder[key]) + 1)
            holder[key] = chance.choice([holder[key][:cut], holder[key][cut:], holder[key] * 2])
        case 2 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        case _:
            holder[key] = copy.deepcopy(chance.choice(_VALUES))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys: Any = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


_MUTATIONS: list[Callable[[bytes, Random], bytes]] = [
    *(_truncate, _flip, _insert, _insert, _remove, _line_ends),
    *(_reorder, _reorder, _reorder, _restructure, _restructure, _restructure, _restructure, _restructure),
]


def amplify(body: bytes, size: int, chance: Random) -> Callable[[int], bytes]:
    """Return a function that makes the body `n` times as large, by repeating a part of its events.

    The cost of reading must grow no faster than the bytes, whichever event a server repeats.
    """
    events = body.split(b"\n\n")
    start = chance.randrange(len(events))
    part = b"\n\n".join(events[start : start + chance.choice([1, 1, 2, 3])]) + b"\n\n"
    head, tail = b"\n\n".join(events[:start]) + b"\n\n", b"\n\n".join(events[start:])
    times = max(1, size // len(part))
    return lambda n: head + part * (times * n) + tail
