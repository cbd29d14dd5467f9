"""The choice of a language model."""

from __future__ import annotations

import itertools

import pytest

from echokit_py.models.catalogue import CATALOGUE
from echokit_py.models.choose import PACKAGED_LLM, advice, candidates, choose

GB = 1_000_000_000
MANY = 64


@pytest.mark.parametrize(
    ("memory", "cores", "best"),
    [
        (24 * GB, MANY, "qwen3-8b"),
        (8 * GB, MANY, "qwen3-4b"),
        (6 * GB, MANY, "qwen3-1.7b"),
        (4 * GB, MANY, "qwen3-0.6b"),
        (2 * GB, MANY, None),
        (24 * GB, 2, "qwen3-0.6b"),
        (24 * GB, 4, "qwen3-1.7b"),
        (24 * GB, 8, "qwen3-4b"),
        (0, 1, None),
    ],
)
def test_memory_and_cores_bound_the_model(memory: int, cores: int, best: str | None) -> None:
    assert next(iter(candidates(memory, cores)), None) == best
    assert choose(memory, cores, (), True) == (best or PACKAGED_LLM)
    assert choose(memory, cores, (), False) == PACKAGED_LLM


def test_a_model_that_is_here_wins_over_a_better_one_to_fetch() -> None:
    assert choose(24 * GB, MANY, ["qwen3-0.6b", "qwen3-1.7b"], True) == "qwen3-1.7b"


def test_a_model_that_is_here_but_does_not_fit_is_not_taken() -> None:
    assert choose(4 * GB, MANY, ["qwen3-8b"], False) == PACKAGED_LLM
    assert choose(4 * GB, MANY, ["qwen3-8b"], True) == "qwen3-0.6b"


@pytest.mark.parametrize("reachable", [True, False])
def test_every_choice_is_a_language_model_that_fits(reachable: bool) -> None:
    names = [name for name, model in CATALOGUE.items() if model.kind == "llm"]
    for memory, cores, count in itertools.product(range(0, 40 * GB, 2 * GB), (1, 4, 64), range(len(names))):
        choice = CATALOGUE[choose(memory, cores, names[:count], reachable)]
        assert choice.kind == "llm"
        assert choice.name == PACKAGED_LLM or choice.size < 0.6 * memory


def test_the_advice_names_the_ways_and_what_was_found() -> None:
    assert "\n" not in advice([])
    assert all(word in advice([]) for word in ("GGUF", "Ollama", "llama-server", "openai_chat"))
    found = advice([("Ollama", "http://127.0.0.1:11434/v1/chat/completions")])
    assert "Ollama (url = 'http://127.0.0.1:11434/v1/chat/completions')" in found
