"""The child process of the local language model by itself: what it is told, and when it leaves."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from echokit_py.llm import llama_child

CHILD = Path(llama_child.__file__)
OPTIONS: dict[str, Any] = {
    "model": "/no/such.gguf",
    "alias": "name",
    "context": 1234,
    "parallel": 3,
    "threads": 2,
    "api_key": "secret",
    "parent": 1,
    "verbose": False,
}


async def run(text: bytes) -> tuple[int, bytes]:
    """Exit status and standard output of a child that gets `text` as its whole input."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        str(CHILD),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(60):
        output, _ = await process.communicate(text)
    assert process.returncode is not None
    return process.returncode, output


async def test_a_child_whose_parent_died_before_it_was_ready_leaves() -> None:
    assert await run(json.dumps({**OPTIONS, "parent": 0}).encode() + b"\n") == (0, b"")


async def test_a_child_without_input_leaves() -> None:
    assert await run(b"") == (0, b"")


@pytest.mark.parametrize(("verbose", "verbosity"), [(False, 2), (True, 3)])
def test_the_options_reach_llama_cpp(verbose: bool, verbosity: int) -> None:
    pytest.importorskip("xllamacpp")
    params = llama_child.parameters({**OPTIONS, "verbose": verbose})
    assert params.model.path == "/no/such.gguf"
    assert params.model_alias == {"name"}
    assert (params.n_ctx, params.n_parallel) == (1234 * 3, 3)  # llama.cpp shares n_ctx out
    assert not params.kv_unified
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (2, 2)
    assert params.api_keys == ["secret"]
    assert params.verbosity == verbosity
    assert params.hostnames == ["127.0.0.1"]
    assert params.port == 0
    assert params.cache_ram_mib <= 64
    assert params.enable_reasoning == 0
    assert not params.ui
    assert not params.endpoint_slots
    assert params.slot_save_path == ""
