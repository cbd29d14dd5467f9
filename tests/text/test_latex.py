from __future__ import annotations

import pytest

from echokit_py.text.latex import plain


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("\\frac{1}{2}x^2", "1/2 x²"),
        ("\\frac{a+b}{\\sqrt{c}}", "(a+b)/(√c)"),
        ("\\sqrt[3]{x + 1}", "√(x + 1)"),
        ("a \\times b \\cdot c \\leq \\infty", "a × b · c ≤ ∞"),
        ("\\alpha + \\Omega", "α + Ω"),
        ("x^{10} + y^{n} + z_{i} + 10^{-3}", "x¹⁰ + yⁿ + z i + 10⁻³"),
        ("e^{x+y}", "e x+y"),
        ("90^\\circ", "90°"),
        ("\\text{speed} = \\mathbf{v}", "speed = v"),
        ("\\sin x + \\log(y)", "sin x + log (y)"),
        ("\\left( a \\right)\\, b \\quad c", "( a ) b c"),
        ("\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}", "a = b , c = d"),
        ("\\unknowncommand{x}", "x"),
        ("50\\% of \\$5", "50% of $5"),
        ("\\sqrt{" * 12 + "x" + "}" * 12, "√(" * 7 + "√x" + ")" * 7),
        ("\\mathrm{a}" * 3 + "\\frac{" * 20, "a a a"),
    ],
)
def test_formulas_become_text(formula: str, expected: str) -> None:
    assert " ".join(plain(formula).split()) == expected
