"""Walks down the simpler forms of a conversation that a server refuses, and remembers which form it takes.

Pure but for `descend`, which asks; how the forms look is the history's.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import cast

from echokit_py.errors import BackendError, ErrorKind
from echokit_py.llm.base import LlmEvent, Message, ReasoningDelta
from echokit_py.llm.history import Form, History
from echokit_py.log import sanitize

log = logging.getLogger(__name__)

MAX_FORMS = 8  # tried for one request; History offers 7, and 5 of another kind
PATIENCE = 20  # requests in a form that worked, before the full one is tried again: servers get updated
FULL, TEXT = "as it is", "tool steps as text"

# Words of a 500 that is about what we sent: llama.cpp ("Failed to parse tool call arguments"), and templates that raise
# (vLLM, TGI, LM Studio: "roles must alternate", "Error rendering prompt with jinja template").
_ABOUT_MESSAGES = re.compile(r"\b(tool|message|template|jinja|roles?|arguments?|conversation|prompt)", re.IGNORECASE)
# Words of a 400 that no other form of the conversation helps against.
_NOT_ABOUT_MESSAGES = re.compile(
    r"model.{0,100}(not (found|exist|supported)|does ?n.t exist)|no such model", re.IGNORECASE
)


@dataclass(slots=True)
class Ladder:
    """What is known of the server of one conversation: the form that it took last, if not the full one."""

    name: str = FULL
    too_long: bool = False
    _left: int = 0

    def reset(self) -> None:
        """Begin at the top again."""
        self.name, self.too_long, self._left = FULL, False, 0

    def remember(self, form: Form, *, too_long: bool) -> None:
        """Begin with this form from now on, for a while."""
        self.name, self.too_long, self._left = form.name, too_long, PATIENCE

    def probing(self) -> bool:
        """Count a request that could begin with the known form; say whether it shall try the full one instead."""
        self._left -= 1
        return self._left < 0


class Descent:
    """The forms in which one request is made, until the server takes one."""

    def __init__(self, ladder: Ladder, history: History, note: str = "") -> None:
        self._ladder = ladder
        self._history = history
        self._note = note
        self._refused: list[list[Message]] = []
        self._too_long = False
        self._troubles = 0
        self._accepted = False
        known = self._known()
        self._told = (
            known is not None
        )  # whether the full form, once taken, tells more than that there is little to send
        self._probed = self._told and ladder.probing()  # then the known form comes second
        self.form = known if known is not None and not self._probed else next(history.forms(note))

    @property
    def messages(self) -> list[Message]:
        """The messages to send now."""
        return self.form.messages

    def next(self, error: BackendError) -> bool:
        """Go on to the next form; False when `error` is none that another form could help against, or none is left.

        A 500 that says nothing is left to the retries; from the second on they are made without tool messages.
        """
        if not _about_messages(error):
            self._trouble(error)
            return False
        self._refused.append(self.form.messages)
        self._too_long = error.kind is ErrorKind.CONTEXT
        if len(self._refused) >= MAX_FORMS:
            return False
        form = self._simpler()
        if form is None:
            return False
        self.form = form
        return True

    def accepted(self) -> None:
        """Note that the server took the form: it is remembered, and turns that didn't fit are forgotten."""
        if self._accepted:
            return
        self._accepted = True
        if self.form.name == FULL:
            if self._told:
                self._ladder.reset()
            return
        if not self._refused:
            return
        log.info("the LLM took the conversation in the form %r, %d were refused", self.form.name, len(self._refused))
        if self.form.turns < self._history.turns:
            self._history.keep_last(self.form.turns)
        if self.form.name != "fewer turns":  # those are gone for good, the next request may be as full as ever
            self._ladder.remember(self.form, too_long=self._too_long)

    def _known(self) -> Form | None:
        ladder = self._ladder
        if ladder.name == FULL:
            return None
        forms = self._history.forms(self._note, too_long=ladder.too_long)
        return next((form for form in forms if form.name == ladder.name), None)

    def _simpler(self) -> Form | None:
        if self._probed and (known := self._known()) is not None and self._fresh(known):
            self._probed = False
            return known
        return next((form for form in self._rest() if self._fresh(form)), None)

    def _rest(self) -> Iterator[Form]:
        """The forms below the current one."""
        forms = list(self._history.forms(self._note, too_long=self._too_long))
        names = [form.name for form in forms]
        first = names.index(self.form.name) if self.form.name in names else 0
        yield from forms[first:]

    def _fresh(self, form: Form) -> bool:
        return form.messages not in self._refused

    def _trouble(self, error: BackendError) -> None:
        if error.kind is ErrorKind.SERVER and error.status == 500 and self.form.name == FULL:
            self._troubles += 1
            forms = self._history.forms(self._note) if self._troubles > 1 else iter(())
            self.form = next((form for form in forms if form.name == TEXT), self.form)


def _about_messages(error: BackendError) -> bool:
    """Whether a server's refusal may be about the messages."""
    if error.kind is ErrorKind.CONTEXT:
        return True
    if error.kind is ErrorKind.REFUSED:
        return error.status in {400, 422, None} and _NOT_ABOUT_MESSAGES.search(str(error)) is None
    return error.kind is ErrorKind.SERVER and _ABOUT_MESSAGES.search(_said(error)) is not None


def _said(error: BackendError) -> str:
    return error.args[0] if error.status == 500 or error.status is None else ""


def first_request(ladder: Ladder, history: History, question: str) -> list[Message]:
    """The messages with which a turn's first request will begin, before the turn does. Changes nothing.

    Raises RuntimeError inside a turn, ValueError when `question` is blank.
    """
    return Descent(replace(ladder), history.ahead(question)).messages


async def descend(
    descent: Descent, ask: Callable[[list[Message]], AsyncIterator[LlmEvent]], in_time: Callable[[], bool]
) -> AsyncGenerator[LlmEvent, None]:
    """The events of the first form that the server takes. While nothing was said, a refusal leads to the next one.

    Args:
        descent: the forms; where a try left off, the next one begins.
        ask: makes a request; a generator, as `Llm.stream` promises.
        in_time: whether there is time for another form.

    Raises BackendError: that of the last form.
    """
    while True:
        said = False
        try:
            async with aclosing(cast("AsyncGenerator[LlmEvent, None]", ask(descent.messages))) as events:
                async for event in events:
                    descent.accepted()
                    said = said or not isinstance(event, ReasoningDelta)
                    yield event
            return
        except BackendError as error:
            name = descent.form.name
            if said or not in_time() or not descent.next(error):
                raise
            log.info("the LLM refused the conversation in the form %r: %s", name, sanitize(error))
