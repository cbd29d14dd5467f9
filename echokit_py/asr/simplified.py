"""Writes Chinese transcripts in simplified characters: a recogniser around any other. Recognises nothing itself.

Recognisers write the same Mandarin now in traditional, now in simplified characters, and a language model answers best
in what it is asked in. The Rust server converts always (its convert step knows no option). OpenCC's `t2s` changes
characters, no words; Japanese and Korean are left as they are.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from echokit_py.asr.base import Asr, Transcript
from echokit_py.config.settings import AsrSettings

_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA_OR_HANGUL = re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
# How back ends name Chinese: codes, and the names in Whisper's verbose_json.
_CHINESE = frozenset({"zh", "cmn", "yue", "chinese", "mandarin", "cantonese"})
# Who asks for these wants traditional characters.
_TRADITIONAL = frozenset({"hant", "tw", "hk", "mo"})


def wrap(asr: Asr, settings: AsrSettings) -> Asr:
    """Return `asr` with the conversion that `settings` want around it, `asr` itself where there is none to do.

    `to_simplified`: true, false, or None: as `lang` says (zh, but not zh-TW, zh-HK or zh-Hant); where that is open, as
    the recogniser or its text says.
    """
    language = _parts(str(getattr(settings, "lang", None) or (settings.model_extra or {}).get("lang", "")))
    if settings.to_simplified is None:
        wanted = bool(language[0] in _CHINESE and _TRADITIONAL.isdisjoint(language))
        detected = language[0] in ("", "auto")
    else:
        wanted = detected = settings.to_simplified
    return _Simplifying(asr, preload=wanted, by_language=detected and not wanted) if wanted or detected else asr


class _Simplifying:
    """`preload`: the conversion will be needed. `by_language`: only where the recogniser doesn't say another one."""

    def __init__(self, asr: Asr, *, preload: bool, by_language: bool) -> None:
        self._asr = asr
        self._preload = preload
        self._by_language = by_language

    async def start(self) -> None:
        if self._preload:
            await asyncio.to_thread(_converter)
        await self._asr.start()

    async def transcribe(self, pcm: bytes) -> Transcript:
        transcript = await self._asr.transcribe(pcm)
        if not is_chinese(transcript.text) or (self._by_language and not _may_be_chinese(transcript.language)):
            return transcript
        # Loading it takes 0.2 s, and a microsecond a character after that.
        return replace(transcript, text=await asyncio.to_thread(simplify, transcript.text))

    async def probe(self) -> str:
        return await self._asr.probe()

    async def close(self) -> None:
        await self._asr.close()


def is_chinese(text: str) -> bool:
    """Whether `text` has Chinese characters, and no Japanese or Korean ones beside them."""
    return bool(_HAN.search(text)) and not _KANA_OR_HANGUL.search(text)


def simplify(text: str) -> str:
    """Return `text` in simplified characters. Blocks, the first time for 0.2 s."""
    try:
        return _converter()(text)
    except UnicodeEncodeError:  # half a character, as broken JSON may bring; there is no telling what it was
        return text


@cache
def _converter() -> Callable[[str], str]:
    from opencc import OpenCC  # its dictionaries are 7 MB; most servers never need them

    convert: Callable[[str], str] = OpenCC("t2s").convert
    return convert


def _may_be_chinese(language: str | None) -> bool:
    return language is None or _parts(language)[0] in _CHINESE


def _parts(language: str) -> list[str]:
    return language.strip().lower().replace("_", "-").split("-")
