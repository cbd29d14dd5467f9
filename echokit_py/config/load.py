"""Reads a configuration file into `Settings`; names every mistake in it with file, line, key and the nearest right key.

The way: text → TOML → environment variables filled in → the platform of each table chosen → each table validated by the
type of its platform → notices about what isn't used. Starts nothing, reaches no network.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from echokit_py.config.environment import Expansion, expand
from echokit_py.config.mistakes import describe, sentence
from echokit_py.config.notices import RECORD, notices
from echokit_py.config.paths import MISSING_HELLO, find_file, resolve_paths
from echokit_py.config.platforms import KINDS, MODES, Kind, choose, missing_table
from echokit_py.config.positions import KeyPath, Positions, dotted, locate
from echokit_py.config.settings import PluginSettings, Section, Settings
from echokit_py.config.source import Document, parse_toml, read_text
from echokit_py.errors import ConfigError, ConfigIssue

log = logging.getLogger(__name__)

_PLACEHOLDER = PluginSettings(
    platform="none"
)  # stands for a table with mistakes, so that the others are still looked at


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid configuration. `warnings` name what is accepted but not used, or odd; nothing is ignored silently."""

    settings: Settings
    warnings: tuple[ConfigIssue, ...]


def load(
    path: Path, *, environ: Mapping[str, str] = os.environ, plugins: Mapping[str, frozenset[str]] | None = None
) -> Settings:
    """Read the file and log its warnings.

    Args:
        path: the configuration file.
        environ: the variables that `${NAME}` in the file reads.
        plugins: the platforms that are installed, by kind ("asr", "tts", "llm"); `registry.platforms` knows them.

    Raises:
        ConfigError: the file can't be read, or has mistakes; it holds all of them, in the order of the file.
    """
    loaded = read(path, environ=environ, plugins=plugins)
    for warning in loaded.warnings:
        log.warning("%s", warning)
    return loaded.settings


def read(
    path: Path, *, environ: Mapping[str, str] = os.environ, plugins: Mapping[str, frozenset[str]] | None = None
) -> Loaded:
    """Like `load`, but return the warnings instead of logging them. Raises ConfigError."""
    return parse(read_text(path), str(path), folder=path.absolute().parent, environ=environ, plugins=plugins)


def parse(
    text: str,
    file: str,
    *,
    folder: Path = Path(),
    environ: Mapping[str, str] = os.environ,
    plugins: Mapping[str, frozenset[str]] | None = None,
) -> Loaded:
    """Read the text of a configuration.

    Args:
        text: the TOML text.
        file: how messages name it.
        folder: where the files that it names are looked for first.
        environ: the variables that `${NAME}` reads.
        plugins: as in `load`.

    Raises:
        ConfigError: as `load`.
    """
    document = parse_toml(text, file)
    report = _Report(file, locate(text), expand(document, environ))
    settings = _settings(report.expansion.document, plugins or {}, report)
    if settings is None:
        raise ConfigError(report.sorted(report.mistakes))
    for path, message in notices(settings, document):
        report.warn(path, message)
    for path, name in report.expansion.empty.items():
        report.warn(path, f"the environment variable {name} is set, but empty")
    if settings.hello_wav and find_file(settings.hello_wav, folder) is None:
        report.warn(("hello_wav",), MISSING_HELLO)
    return Loaded(resolve_paths(settings, folder), tuple(report.sorted(report.warnings)))


@dataclass(slots=True)
class _Report:
    """Collects what is found, with lines."""

    file: str
    positions: Positions
    expansion: Expansion
    mistakes: dict[KeyPath, str] = field(default_factory=dict)
    warnings: dict[KeyPath, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mistakes.update(self.expansion.mistakes)

    def mistake(self, path: KeyPath, message: str) -> None:
        self.mistakes.setdefault(path, message)  # a missing variable comes first and explains what follows from it

    def warn(self, path: KeyPath, message: str) -> None:
        self.warnings[path] = message

    def validation(self, error: ValidationError, model: type[BaseModel], table: str) -> None:
        for finding in error.errors(include_url=False):
            if finding["type"] == "default_factory_not_called":  # it only follows from another mistake
                continue
            path = ((table,) if table else ()) + finding["loc"]
            self.mistake(path, sentence(finding, model, table, show=path not in self.expansion.filled))

    def sorted(self, found: Mapping[KeyPath, str]) -> list[ConfigIssue]:
        issues = [
            ConfigIssue(self.file, self.positions.line(path), dotted(path), message) for path, message in found.items()
        ]
        return sorted(issues, key=lambda issue: issue.line)


def _settings(document: Document, plugins: Mapping[str, frozenset[str]], report: _Report) -> Settings | None:
    """Validate the whole document; None when there were mistakes, which are in the report."""
    sections = {kind: _section(kind, document[kind], plugins, report) for kind in KINDS if kind in document}
    _missing_tables(document, report)
    _record(document, report)
    top = {key: value for key, value in document.items() if key not in (*KINDS, *MODES, RECORD)}
    placeholders: dict[str, Section] = dict.fromkeys(KINDS, _PLACEHOLDER)
    try:
        settings = Settings.model_validate(
            placeholders | top | {kind: found for kind, found in sections.items() if found}
        )
    except ValidationError as error:
        report.validation(error, Settings, "")
        return None
    return None if report.mistakes else settings


def _section(kind: Kind, table: Any, plugins: Mapping[str, frozenset[str]], report: _Report) -> Section | None:
    """Validate one of the three tables by the type of its platform."""
    if not isinstance(table, dict):
        wrong = (
            "with one bracket on each side"
            if isinstance(table, list)
            else f"with its keys below it; found {describe(table)}"
        )
        report.mistake((kind,), f"must be a table: write [{kind}], {wrong}")
        return None
    try:
        platform, model = choose(kind, table, plugins.get(kind, frozenset()))
    except ValueError as error:
        report.mistake((kind, "platform"), str(error))
        return None
    try:
        return model.model_validate(table | {"platform": platform})
    except ValidationError as error:
        report.validation(error, model, kind)
        return None


def _missing_tables(document: Document, report: _Report) -> None:
    missing = [kind for kind in KINDS if kind not in document]
    modes = [mode for mode in MODES if mode in document]
    for mode in modes if missing else ():
        report.mistake((mode,), MODES[mode])
    for kind in missing if not modes else ():
        report.mistake((kind,), missing_table(kind))


def _record(document: Document, report: _Report) -> None:
    table = document.get(RECORD, {})
    if not isinstance(table, dict):
        report.mistake((RECORD,), "must be a table: write [record], with callback_url below it")
        return
    for key in _unknown(table, {"callback_url"}):
        report.mistake((RECORD, key), 'there is no such key here; there is only "callback_url"')


def _unknown(table: Mapping[str, Any], keys: set[str]) -> Iterable[str]:
    return (key for key in table if key not in keys)
