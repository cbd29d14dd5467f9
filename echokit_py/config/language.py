"""The language that the configuration says is spoken, as a code. Detects nothing."""

from __future__ import annotations

from echokit_py.config.settings import AsrSettings


def language_code(tag: str) -> str:
    """The language of a tag, in lower case: "zh_CN" and "zh-Hant" are "zh". "" for "auto" and for no tag."""
    code = tag.strip().lower().replace("_", "-").split("-")[0]
    return "" if code == "auto" else code


def spoken_language(asr: AsrSettings) -> str:
    """The code of the language that users speak (ISO 639, mostly two letters); "" when that is left to be detected."""
    return language_code(str(getattr(asr, "lang", None) or (asr.model_extra or {}).get("lang", "")))
