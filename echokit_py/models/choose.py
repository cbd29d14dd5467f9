"""Chooses the language model of `model = "auto"` by memory, cores and what can be had. Pure: loads nothing.

A Qwen3 instruct model that fits is the choice; where none is here and the hub is out of reach, the packaged SmolLM2
is: small enough to prove the chain, not clever.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from echokit_py.models.catalogue import CATALOGUE

PACKAGED_LLM = "smollm2-135m"

# The server shares the machine with others, and memory that is free at start may be wanted later.
_SHARE = 0.6
# Beside the weights: 4096 tokens of context (Qwen3: 115–147 kB a token), llama.cpp's buffers, and the rest of this
# server with speech recognition and synthesis.
_BESIDE_WEIGHTS = 600_000_000 + 300_000_000 + 700_000_000

# Ascending, with the physical cores from which a spoken answer doesn't keep people waiting without a GPU.
_QWEN3: tuple[tuple[str, int], ...] = (("qwen3-0.6b", 1), ("qwen3-1.7b", 4), ("qwen3-4b", 8), ("qwen3-8b", 16))


def candidates(memory_bytes: int, cores: int) -> tuple[str, ...]:
    """The Qwen3 models that this machine carries, best first. `memory_bytes`: available; `cores`: physical."""
    budget = memory_bytes * _SHARE - _BESIDE_WEIGHTS
    return tuple(
        name for name, least_cores in reversed(_QWEN3) if CATALOGUE[name].size <= budget and least_cores <= cores
    )


def choose(memory_bytes: int, cores: int, present: Collection[str], hub_reachable: bool) -> str:
    """Return a catalogue name. A model that is `present` wins over a better one that would have to be fetched:

    free memory differs from start to start, and no start may surprise with gigabytes of download.
    """
    fitting = candidates(memory_bytes, cores)
    for name in fitting:
        if name in present:
            return name
    return fitting[0] if fitting and hub_reachable else PACKAGED_LLM


def advice(found: Sequence[tuple[str, str]]) -> str:
    """One line on how to use a better model than the packaged one. `found`: name and URL of servers on this machine."""
    line = (
        f"the packaged model {PACKAGED_LLM} answers: it proves the chain and is not clever. For a better one set "
        'model in [llm] to a GGUF file, or platform = "openai_chat" and the url of Ollama, llama-server or any '
        "OpenAI-compatible server"
    )
    if not found:
        return line
    return line + "; found on this machine: " + ", ".join(f"{name} (url = {url!r})" for name, url in found)
