"""One turn of a conversation as it is kept: the question, and the model's steps with their calls and results.

Only values and their readings as messages; which turns there are, and for how long, is `history.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count

from echokit_py.llm.base import Message
from echokit_py.llm.message_rules import CALL_NAME, read_arguments
from echokit_py.text.unicode import is_utf8

MAX_MESSAGE_CHARS = 16_000
"""Of a question, a step's text or reasoning, a result: about 4,000 tokens. A minute of speech has 1,000 characters, and
a result that is longer than this leaves a small model no room for anything else."""

MAX_ARGUMENTS_CHARS = 64_000
"""Arguments can't be cut without breaking them, so more is allowed; longer ones are kept as `{}`."""

MAX_ID_CHARS = 4_000
"""Gateways hide signatures of some kilobytes in a call's id (LiteLLM with Gemini), and want them back."""

BRIEF_CHARS = 500
"""Of a result in the shortest form: enough for a state or a temperature."""

NO_RESULT_YET = "No result yet."


@dataclass(slots=True)
class StoredCall:
    """A call with its result. `settled` says that the tool itself answered; until then `result` is our own sentence."""

    id: str
    name: str
    arguments: str
    result: str = NO_RESULT_YET
    settled: bool = False


@dataclass(slots=True)
class Unit:
    """One step of the model: what it said, and the calls it made in the same message."""

    text: str
    calls: list[StoredCall] = field(default_factory=list)
    reasoning: str = ""


@dataclass(slots=True)
class Turn:
    """A question and the steps that followed it. `size` (characters) is kept for turns that have ended."""

    user: str
    units: list[Unit] = field(default_factory=list)
    size: int = 0

    @property
    def answered(self) -> bool:
        """Whether anything followed the question."""
        return bool(self.units)

    @property
    def calls(self) -> list[StoredCall]:
        """All calls, in order."""
        return [call for unit in self.units for call in unit.calls]

    def measure(self) -> int:
        """Characters, all texts together."""
        texts = len(self.user) + sum(len(unit.text) + len(unit.reasoning) for unit in self.units)
        return texts + sum(len(call.id + call.name + call.arguments + call.result) for call in self.calls)


def append(messages: list[Message], message: Message) -> None:
    """Add a message; a question right after a question joins it, since templates refuse roles that don't alternate."""
    if message["role"] == "user" and messages and messages[-1]["role"] == "user":
        message = {"role": "user", "content": f"{messages.pop()['content']}\n{message['content']}"}
    messages.append(message)


def as_note(text: str) -> list[Message]:
    """A word of ours to the model as a message; none for ""."""
    return [{"role": "user", "content": f"[{clean(text)}]"}] if text else []


def fill(turn: Turn, result: str) -> None:
    """Let `result` stand for those that have not come."""
    for call in turn.calls:
        if not call.settled:
            call.result = str(result)


def clean(text: str, limit: int = MAX_MESSAGE_CHARS) -> str:
    """Return `text` cut to `limit` characters, with lone surrogates (which no server takes) replaced by U+FFFD."""
    text = text[:limit]
    return text if is_utf8(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean_result(text: str, limit: int = MAX_MESSAGE_CHARS) -> str:
    """Return a tool's result, never empty; where it is cut to `limit` characters it says so."""
    if not text.strip():
        return "The tool answered with no text."
    mark = f"… (cut: {len(text)} characters in all)"
    return clean(text) if len(text) <= limit else clean(text, limit - len(mark)) + mark


def clean_name(name: str) -> str:
    """Return a name that every server takes."""
    return name if CALL_NAME.fullmatch(name) else re.sub("[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def clean_arguments(text: str) -> str:
    """Return arguments that strict JSON reads as an object: `text` itself wherever that is possible, else `{}`."""
    if len(text) > MAX_ARGUMENTS_CHARS:
        return "{}"
    if read_arguments(text) is not None:
        return text
    try:  # escaped lone surrogates are the one fault that can be mended without losing the rest
        mended = clean(json.dumps(json.loads(text), ensure_ascii=False), MAX_ARGUMENTS_CHARS)
    except (ValueError, RecursionError):
        return "{}"
    return mended if read_arguments(mended) is not None else "{}"


def unique_id(call_id: str, used: Collection[str]) -> str:
    """Return `call_id` itself where it can be kept, else a new one that is not in `used`."""
    if call_id.strip() and call_id not in used and len(call_id) <= MAX_ID_CHARS and is_utf8(call_id):
        return call_id
    return next(new for n in count(1) if (new := _short_id(n)) not in used)


def shorten_ids(messages: Sequence[Message]) -> None:
    """Rename all call ids in place to the only kind that Mistral's templates take."""
    calls = [call for message in messages for call in message.get("tool_calls", [])]
    short = {call["id"]: _short_id(n) for n, call in enumerate(calls, 1)}
    for call in calls:
        call["id"] = short[call["id"]]
    for message in messages:
        if message["role"] == "tool":
            message["tool_call_id"] = short[message["tool_call_id"]]


def _short_id(n: int) -> str:
    """Nine letters and digits."""
    return f"call{n:05d}"


def to_messages(turn: Turn, *, current: bool, reasoning: bool = False) -> list[Message]:
    """The turn as chat messages. A step without calls joins the one after it: no two assistant messages in a row.

    In the `current` turn the last word is never the model's: servers would take it for the start of the answer.
    """
    messages: list[Message] = [{"role": "user", "content": turn.user}]
    said = ""
    for unit in turn.units:
        said = _join(said, unit.text)
        if not unit.calls:
            continue
        step: Message = {"role": "assistant", "content": said or None}
        if reasoning and unit.reasoning:
            step["reasoning_content"] = unit.reasoning
        step["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in unit.calls
        ]
        messages.append(step)
        messages += [{"role": "tool", "tool_call_id": call.id, "content": call.result} for call in unit.calls]
        said = ""
    if said:
        messages.append(_said_so_far(said) if current else {"role": "assistant", "content": said})
    return messages


def to_text(turn: Turn, *, current: bool, brief: bool = False) -> list[Message]:
    """The turn without tool messages: the calls stand as notes under the question, in brackets.

    Under the question and not in the answer, since models take what stands there for a way to call tools, and imitate
    it. `current` leaves the last word to the user, as templates want it; `brief` cuts the results.
    """
    limit = BRIEF_CHARS if brief else MAX_MESSAGE_CHARS
    notes = [f"[Tool {call.name}({call.arguments}): {clean_result(call.result, limit)}]" for call in turn.calls]
    said = ""
    for unit in turn.units:
        said = _join(said, unit.text)
    messages: list[Message] = [{"role": "user", "content": "\n".join([turn.user, *notes])}]
    if said:
        messages.append(_said_so_far(said) if current else {"role": "assistant", "content": said})
    return messages


def _said_so_far(said: str) -> Message:
    return {"role": "user", "content": f"[You have already said: {said}]"}


def keep_heard(turn: Turn, heard: str | None) -> None:
    """Cut what the model said to what the user heard; None means all. Calls stay, empty steps go.

    `heard` may have passed through a filter for speech: only its letters and digits are counted. Where it goes on
    after the steps' texts (the user cut in while a step was still streamed), the rest becomes a step of its own.
    """
    if heard is not None:
        left = len(_letters(heard))
        rest = _beyond(turn, heard)
        for unit in turn.units:
            letters = len(_letters(unit.text))
            unit.text = unit.text if 0 < letters <= left else _prefix(unit.text, left)
            left = max(0, left - letters)
        turn.units.append(Unit(clean(rest)))
    turn.units = [unit for unit in turn.units if unit.text or unit.calls]


def _beyond(turn: Turn, heard: str) -> str:
    """What of `heard` comes after all texts of the turn's steps; "" unless it begins with them."""
    known = "".join(_letters(unit.text) for unit in turn.units)
    if not _letters(heard).casefold().startswith(known.casefold()):
        return ""
    return heard[len(_prefix(heard, len(known))) :].strip()


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _prefix(text: str, letters: int) -> str:
    """The start of `text` with that many letters and digits, and the punctuation that closes it."""
    if letters == 0:
        return ""
    for position, character in enumerate(text):
        if letters == 0 and (character.isspace() or character.isalnum()):
            return text[:position]
        letters -= character.isalnum()
    return text


def _join(before: str, after: str) -> str:
    return f"{before} {after}" if before and after else before or after


def parse(messages: Iterable[Message]) -> tuple[list[str], list[Turn]]:
    """Read messages of any origin: return what belongs to the system prompt, and the turns.

    What can't be kept is mended or left out: a call's arguments that aren't an object become `{}`, a call without a
    result says so, results without a call go. Ids are taken as they are, "" for a missing one.
    """
    before: list[str] = []
    turns: list[Turn] = []
    for message in messages:
        role, text = message.get("role"), _text(message.get("content")).strip()
        if role == "tool":
            _settle(turns, message.get("tool_call_id"), text)
        elif role == "assistant" and turns:
            turns[-1].units.append(Unit(clean(text), _calls(message)))
        elif role == "user" and text:
            turns.append(Turn(clean(text)))
        elif role in {"system", "developer"} and text:
            before.append(clean(text, len(text)))
        elif role == "assistant" and text:  # templates want the user to begin
            before.append(f"You opened the conversation with: {clean(text)}")
    for turn in turns:
        keep_heard(turn, None)
    return before, turns


def _settle(turns: Sequence[Turn], call_id: object, result: str) -> None:
    unit = turns[-1].units[-1] if turns and turns[-1].units else Unit("")
    for call in unit.calls:
        if call.id == call_id and not call.settled:
            call.result, call.settled = clean_result(result), True
            return


def _text(content: object) -> str:
    """A message's text, also when it comes as a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _calls(message: Message) -> list[StoredCall]:
    calls = message.get("tool_calls")
    stored: list[StoredCall] = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            name, arguments = str(function.get("name") or ""), str(function.get("arguments") or "")
            stored.append(StoredCall(str(call.get("id") or ""), clean_name(name), clean_arguments(arguments)))
    return stored
