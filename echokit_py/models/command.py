"""The command `echokit-py models`: shows, fetches and checks the models. The work is `store.py`'s."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from echokit_py.errors import ModelError
from echokit_py.models.catalogue import Model
from echokit_py.models.progress import megabytes
from echokit_py.models.store import ModelStore, State

DEFAULT_NAMES = ("silero-vad", "tiny.en", "en_US-joe-medium", "auto")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `echokit-py models`."""
    parser.add_argument(
        "action", nargs="?", choices=("list", "fetch", "check"), default="list", help="list (default), fetch, or check"
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to fetch (default: those of config.toml)")
    parser.add_argument("--dir", type=Path, default=None, help="the folder of the models")


async def run(args: argparse.Namespace) -> int:
    """Carry out the command; return the exit status: 1 when a model could not be had or is damaged."""
    store = ModelStore(args.dir)
    names: Sequence[str] = args.names
    match args.action:
        case "fetch":
            return await _fetch(store, names or DEFAULT_NAMES)
        case "check":
            return await _check(store, names)
        case _:
            return await _list(store, names)


async def _list(store: ModelStore, names: Sequence[str]) -> int:
    try:
        models = [store.model(name) for name in names] or store.models()
    except ModelError as error:
        return _complain(error)
    rows = [_row(model, await asyncio.to_thread(store.state, model)) for model in models]
    _say(_table([("NAME", "KIND", "LICENCE", "SIZE", "STATE", "PATH"), *rows]))
    _say(f"folder: {store.root}   fetch one: echokit-py models fetch NAME")
    return 0


async def _fetch(store: ModelStore, names: Sequence[str]) -> int:
    status = 0
    for name in names:
        try:
            real_name = await store.auto_llm() if name == "auto" else name
            path = await store.path(real_name)
        except ModelError as error:
            status = _complain(error)
        else:
            _say(f"{real_name}: {path}")
    return status


async def _check(store: ModelStore, names: Sequence[str]) -> int:
    """Hash the models that are here again; a damaged one is not removed, the next use fetches it."""
    status = 0
    try:
        models = [store.model(name) for name in names] or store.models()
    except ModelError as error:
        return _complain(error)
    for model in models:
        state = await asyncio.to_thread(store.state, model, rehash=True)
        if names or state.word != "missing":
            _say(f"{model.name}: {state.word}")
            status |= state.path is None
    return int(status)


def _row(model: Model, state: State) -> tuple[str, ...]:
    path = str(state.path) if state.path else "-"
    return model.name, model.kind, model.licence, megabytes(model.size), state.word, path


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _complain(error: ModelError) -> int:
    sys.stderr.write(f"{error}\n")
    return 1
