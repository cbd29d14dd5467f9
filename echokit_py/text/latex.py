"""Turns LaTeX formulas into what can be read aloud. Pure; understands the everyday commands and drops the others."""

from __future__ import annotations

import re

_SYMBOLS = {
    "times": "×", "cdot": "·", "div": "÷", "pm": "±", "mp": "∓", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥",
    "ne": "≠", "neq": "≠", "approx": "≈", "sim": "~", "equiv": "≡", "infty": "∞", "sum": "∑", "prod": "∏", "int": "∫",
    "partial": "∂", "nabla": "∇", "in": "∈", "notin": "∉", "cup": "∪", "cap": "∩", "to": "→", "rightarrow": "→",
    "Rightarrow": "⇒", "implies": "⇒", "iff": "⇔", "circ": "°", "degree": "°", "percent": "%", "ldots": "…",
    "dots": "…", "cdots": "…", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε",
    "varepsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ",
    "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "varphi": "φ", "chi": "χ",
    "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Pi": "Π", "Sigma": "Σ",
    "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
# Commands that are words themselves.
_FUNCTIONS = frozenset(
    {"sin", "cos", "tan", "cot", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "log", "ln", "lg", "exp"}
    | {"lim", "max", "min", "sup", "inf", "det", "gcd", "mod"}
)
_SUPERSCRIPTS = str.maketrans("0123456789+-n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ")

_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[^{}]*\}")
_STYLED = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|mathbb|mathcal|operatorname|mbox|boxed|vec|hat|bar"
    r"|overline|underline)\s*\{([^{}]*)\}"
)
_FRACTION = re.compile(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\s*(?:\[[^\]]*\])?\s*\{([^{}]*)\}")
_POWER = re.compile(r"\^\s*(?:\{([0-9n+-]+)\}|([0-9n]))")
_SPACING = re.compile(r"\\(?:left|right|big|Big|bigg|Bigg|quad|qquad|displaystyle|limits)(?![A-Za-z])|\\[,;:!> ]|[&~]")
_COMMAND = re.compile(r"\\([A-Za-z]+)\*?")
_ESCAPED = re.compile(r"\\([%$#&_{}])")
_GROUPING = re.compile(r"[{}^_]")
# How deep fractions and roots are taken apart; what lies deeper loses its markup only.
_DEPTH = 8


def plain(formula: str) -> str:
    """Return `formula` (without its dollar signs) as text, for example `\\frac{1}{2}x^2` as `1/2 x²`."""
    text = _ENVIRONMENT.sub(" ", formula).replace("\\\\", ", ")
    for _ in range(_DEPTH):
        before = text
        text = _STYLED.sub(r" \1 ", text)
        text = _FRACTION.sub(lambda found: f"{_grouped(found[1])}/{_grouped(found[2])} ", text)
        text = _ROOT.sub(lambda found: f"√{_grouped(found[1])} ", text)
        if text == before:
            break
    text = _POWER.sub(lambda found: (found[1] or found[2]).translate(_SUPERSCRIPTS), text)
    text = _SPACING.sub(" ", text)
    text = _COMMAND.sub(_command, text)
    text = _ESCAPED.sub(r"\1", text)
    return _GROUPING.sub(" ", text).replace(" °", "°")


def _grouped(part: str) -> str:
    part = part.strip()
    return part if re.fullmatch(r"[\w.,\\^]*", part) else f"({part})"


def _command(found: re.Match[str]) -> str:
    name = found[1]
    return _SYMBOLS.get(name) or (f" {name} " if name in _FUNCTIONS else " ")
