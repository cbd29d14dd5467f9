"""The shape of the project: import directions, budgets of size, and documents that must not drift from the code."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from echokit_py.session.apologies import SENTENCES, load
from echokit_py.session.turns import diagram

ROOT = Path(__file__).parents[1]
MODULES = sorted([*(ROOT / "echokit_py").rglob("*.py"), *(ROOT / "firmware_protocol").rglob("*.py")])

MODULE_LINES = 500
FUNCTION_LINES = 60


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_imports_point_down() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_stay_small_and_say_what_they_do(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") <= MODULE_LINES
    for function in functions(tree):
        assert function.end_lineno is not None
        assert function.end_lineno - function.lineno < FUNCTION_LINES, function.name
    assert ast.get_docstring(tree) or not tree.body, "a module says in its first line what it does"


def test_the_readme_shows_the_turn_table_as_it_is() -> None:
    assert f"```mermaid\n{diagram()}```" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_apologies_have_their_audio() -> None:
    found = load()
    assert found.keys() == SENTENCES.keys()
    for name, apology in found.items():
        assert len(apology.pcm) > 2 * 32_000, f"{name}: two seconds at least"
