"""Providers are found by entry point: the declared ones exist, are light to import, and others' are found alike."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

from echokit_py import registry

ROOT = Path(__file__).parents[1]
DECLARED: dict[str, dict[str, str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
TARGETS = [
    (group.removeprefix("echokit_py."), platform, target)
    for group, points in DECLARED.items()
    for platform, target in points.items()
]
HEAVY = ("onnxruntime", "faster_whisper", "ctranslate2", "piper", "xllamacpp", "mcp", "torch")


def test_every_kind_has_a_packaged_provider() -> None:
    assert {kind for kind, _, _ in TARGETS} == set(get_args(registry.Kind))


@pytest.mark.parametrize(("kind", "platform", "target"), TARGETS)
def test_the_declared_providers_exist(kind: str, platform: str, target: str) -> None:
    module, _, name = target.partition(":")
    assert module.startswith(f"echokit_py.{kind}.")
    assert callable(getattr(import_module(module), name)), platform


def test_importing_the_providers_loads_no_model_runtime() -> None:
    """Start-up stays light: what a configuration does not name is not loaded, and what it names not before start()."""
    modules = ", ".join(sorted({target.partition(":")[0] for _, _, target in TARGETS}))
    code = f"import sys, {modules}; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
    assert find_spec("onnxruntime") is not None  # else this test would prove nothing


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine has installed: two packages that bring a voice each, and one recogniser."""
    points = EntryPoints(
        [
            EntryPoint("openai", "echokit_py.tts.openai:build", "echokit_py.tts"),
            EntryPoint("parrot", "json:dumps", "echokit_py.tts"),
            EntryPoint("broken", "no_such_package_of_anybody:build", "echokit_py.tts"),
            EntryPoint("openai", "echokit_py.asr.openai:build", "echokit_py.asr"),
        ]
    )
    monkeypatch.setattr(registry, "entry_points", points.select)


@pytest.mark.usefixtures("installed")
def test_providers_of_other_packages_are_found_like_ours() -> None:
    assert registry.platforms("tts") == {"openai", "parrot", "broken"}
    assert registry.platforms("asr") == {"openai"}
    assert registry.platforms("llm") == frozenset()
    assert registry.find("tts", "parrot")("hi") == '"hi"'
    assert registry.find("tts", "openai") is not registry.find("asr", "openai")


@pytest.mark.usefixtures("installed")
def test_what_is_not_installed_is_named() -> None:
    with pytest.raises(LookupError, match="no installed package offers the asr platform 'parrot'"):
        registry.find("asr", "parrot")


@pytest.mark.usefixtures("installed")
def test_a_package_that_cannot_be_imported_says_so() -> None:
    """Not the same as an unknown platform: its own import error reaches the user."""
    with pytest.raises(ModuleNotFoundError, match="no_such_package_of_anybody"):
        registry.find("tts", "broken")
