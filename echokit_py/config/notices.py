"""What a file holds that is accepted and isn't used yet, or looks odd. Pure: paths and sentences; refuses nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from echokit_py.config.mistakes import NOT_USED
from echokit_py.config.platforms import MODES
from echokit_py.config.positions import KeyPath
from echokit_py.config.settings import OpenAiResponsesLlm, Settings

RECORD = "record"
"""The table of the Rust server's recording mode, which isn't part of `Settings` yet."""

_FETCHED_URL = re.compile(r"\{\{\s*https?://[^{}]*\}\}")

Notice = tuple[KeyPath, str]


def notices(settings: Settings, document: Mapping[str, Any]) -> Iterator[Notice]:
    """Everything about a valid file that its owner should know. `document` is the file as it was written."""
    yield from _unused_tables(document)
    yield from _unused_asr_keys(document["asr"])
    yield from _unused_llm_keys(settings)
    yield from _odd_responses_keys(settings)
    vad = settings.asr.vad
    if vad.neg_threshold is not None and vad.neg_threshold >= vad.threshold:
        yield (
            ("asr", "vad", "neg_threshold"),
            "should be below threshold; as it is, speech seems to end while it goes on",
        )


def _unused_tables(document: Mapping[str, Any]) -> Iterator[Notice]:
    for mode in MODES:
        if mode in document:
            yield (mode,), "isn't used, since [asr], [llm] and [tts] are there"
    if RECORD in document:
        yield (RECORD,), "recording isn't in this version yet, so that nothing is posted to callback_url"


def _unused_asr_keys(asr: Mapping[str, Any]) -> Iterator[Notice]:
    for key in sorted(NOT_USED):
        for path, table in ((("asr", key), asr), (("asr", "vad", key), asr.get("vad", {}))):
            if key in table:
                yield path, "isn't used: the end of speech is found inside this server, with [asr.vad]"


def _odd_responses_keys(settings: Settings) -> Iterator[Notice]:
    llm = settings.llm
    if not isinstance(llm, OpenAiResponsesLlm):
        return
    if llm.address != llm.url:
        yield ("llm", "url"), f"nothing answers there, so {llm.address} is used, which is Groq's address"
    for key in ("max_tokens", "max_completion_tokens"):
        if key in llm.extra:
            yield ("llm", "extra", key), 'is of another API; this one refuses it and calls it "max_output_tokens"'


def _unused_llm_keys(settings: Settings) -> Iterator[Notice]:
    llm = settings.llm
    if llm.prompts_url:
        yield ("llm", "prompts_url"), "prompts aren't fetched in this version yet; those in the file are used"
    for index, prompt in enumerate(llm.sys_prompts):
        if _FETCHED_URL.search(prompt.content):
            yield (
                ("llm", "sys_prompts", index, "content"),
                "{{ url }} isn't fetched in this version yet; put the text itself there",
            )
