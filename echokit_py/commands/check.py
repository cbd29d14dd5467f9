"""`echokit-py check`: is the configuration right, does each back end answer, which tools are there? Changes nothing."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from echokit_py import registry
from echokit_py.commands.check_tools import check_tools
from echokit_py.config.load import Loaded, read
from echokit_py.config.positions import locate
from echokit_py.config.settings import Settings
from echokit_py.config.source import read_text
from echokit_py.errors import BackendError, ConfigError, ConfigIssue, EchoKitError, ErrorKind, ModelError, Stage
from echokit_py.wiring import providers

# Loading a model of some gigabytes and one answer of it fit in; a back end that needs longer can't serve a voice.
PROBE_LIMIT_S = 120.0

# The key that a person has to look at for a kind of failure.
_KEYS = {ErrorKind.AUTH: "api_key", ErrorKind.REFUSED: "model"}


async def check(path: Path, *, offline: bool) -> int:
    """Print each fault as `file:line: key: message`, and what answered; return 1 when there was a fault."""
    try:
        loaded = read(path, plugins={kind: registry.platforms(kind) for kind in ("asr", "llm", "tts")})
    except ConfigError as error:
        _say(*error.issues)
        return 1
    _say(*(f"{warning} (warning)" for warning in loaded.warnings))
    _say(f"{path}: the configuration is valid")
    if offline:
        return 0
    faults = await probe(path, loaded)
    faults += await check_tools(path, loaded.settings.llm.mcp_server, locate(read_text(path)))
    _say(*faults)
    return 1 if faults else 0


async def probe(path: Path, loaded: Loaded) -> list[ConfigIssue]:
    """Try every back end at once; print a line for each that answers, return an issue for each that doesn't."""
    positions = locate(read_text(path))

    def issue(stage: Stage, error: EchoKitError) -> ConfigIssue:
        key = (str(stage), _key(loaded.settings, stage, error))
        return ConfigIssue(str(path), positions.line(key), ".".join(key), str(error))

    async def attempt(stage: Stage, provider: Any) -> ConfigIssue | None:
        try:
            async with asyncio.timeout(PROBE_LIMIT_S):
                await provider.start()
                found = await provider.probe()
        except EchoKitError as error:
            return issue(stage, error)
        except TimeoutError:
            return issue(stage, BackendError(stage, ErrorKind.TIMEOUT, f"no answer for {PROBE_LIMIT_S:g} s"))
        _say(f"{stage}: {found}")
        return None

    try:
        async with providers(loaded.settings) as built:
            stages = {stage: each for stage, each in built.by_stage().items() if stage is not Stage.VAD}
            results = await asyncio.gather(*(attempt(stage, each) for stage, each in stages.items()))
    except ModelError as error:
        return [ConfigIssue(str(path), 0, "platform", str(error))]
    return [result for result in results if result is not None]


def _key(settings: Settings, stage: Stage, error: EchoKitError) -> str:
    section = getattr(settings, stage)
    wanted = _KEYS.get(error.kind, "url") if isinstance(error, BackendError) else "model"
    for key in (wanted, "url", "model", "voice"):
        if hasattr(section, key):
            return key
    return "platform"


def _say(*lines: object) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
