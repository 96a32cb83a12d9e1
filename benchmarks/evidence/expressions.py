"""Arithmetic expressions of several operands, as in the xVal paper: random binary trees of sums,
differences and products.

In: a number of operands, and a range. Out: ``((1.32*2.1)+(1.42-3.2))=0.992``, with exact answers.
    xVal: A Continuous Numerical Tokenization for Scientific Language Models (Golkar et al. 2023),
    section 3.1: "random binary trees combining a fixed number of operands (2, 3, or 4) using the
    binary operators of addition, subtraction, and multiplication".
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

OPERATORS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": Decimal.__add__,
    "-": Decimal.__sub__,
    "*": Decimal.__mul__,
}
LARGEST = 500  # hundredths: operands lie within ±5
GAP = (200, 250)  # no operand of the training has a magnitude in between
BEYOND = (500, 600)  # magnitudes above those of the training
ANSWERS = {  # ranges of magnitudes: no answer of the training lies in the first range
    "answer gap": (Decimal(3), Decimal("3.5")),
    "answer beside": (Decimal("3.5"), Decimal(4)),
}
LARGEST_VALUE = 30  # the largest product of two operands, one of them in BEYOND


@dataclass(frozen=True)
class Expression:
    """An expression up to and with its ``=``, and its exact value."""

    text: str
    value: Decimal


def expressions(operands: int, count: int, seed: int, special: str = "seen") -> list[Expression]:
    """Return different expressions with values within ±30.

    The limit skips no expression of two operands, 3% of those of three and 8% of those of four. No
    value lies in the answer gap, unless ``special`` asks for it.

    Args:
        operands: operands of each expression.
        count: number of expressions.
        seed: seed of the drawing.
        special: ``"seen"``: operands as in training. ``"gap"`` or ``"beyond"``: one operand, in any
            position, lies in the gap or beyond the range. A key of :data:`ANSWERS`: the value lies
            in that range.
    """
    draw = random.Random(f"{operands} {seed} {special}")
    drawn: dict[str, Expression] = {}
    while len(drawn) < count:
        leaves = [_operand(draw, "seen") for _ in range(operands)]
        if special in ("gap", "beyond"):
            leaves[draw.randrange(operands)] = _operand(draw, special)
        expression = _tree(draw, leaves)
        answer_range = next((name for name in ANSWERS if is_in(expression.value, name)), "")
        wanted = answer_range == special if special in ANSWERS else answer_range != "answer gap"
        if wanted and abs(expression.value) <= LARGEST_VALUE:
            drawn[expression.text] = Expression(f"{expression.text}=", expression.value)
    return list(drawn.values())


def is_in(value: Decimal | float, name: str) -> bool:
    """Whether the magnitude of a value lies in a range of :data:`ANSWERS`."""
    low, high = ANSWERS[name]
    return low < abs(Decimal(value)) < high


def _operand(draw: random.Random, kind: str) -> Decimal:
    """Return an operand in hundredths, of either sign, from the range ``seen``, ``gap`` or
    ``beyond``.
    """
    if kind == "seen":
        size = draw.randrange(1, LARGEST + 1)
        while GAP[0] < size < GAP[1]:
            size = draw.randrange(1, LARGEST + 1)
    else:
        low, high = GAP if kind == "gap" else BEYOND
        size = draw.randrange(low + 1, high)
    return Decimal(size if draw.random() < 0.5 else -size).scaleb(-2)


def _tree(draw: random.Random, leaves: list[Decimal]) -> Expression:
    """Return the operands in order, combined by random operators in random brackets."""
    if len(leaves) == 1:
        return Expression(str(leaves[0]), leaves[0])
    cut = draw.randrange(1, len(leaves))
    left, right = _tree(draw, leaves[:cut]), _tree(draw, leaves[cut:])
    sign = draw.choice(list(OPERATORS))
    return Expression(f"({left.text}{sign}{right.text})", OPERATORS[sign](left.value, right.value))
