"""Arithmetic expressions of several operands, as the xVal paper has them: random binary trees of
sums, differences and products.

In: a number of operands, and between what they lie. Out: ``((1.32*2.1)+(1.42-3.2))=0.992``, answers
    exact. xVal: A Continuous Numerical Tokenization for Scientific Language Models (Golkar et al.
    2023), section 3.1: "random binary trees combining a fixed number of operands (2, 3, or 4) using
    the binary operators of addition, subtraction, and multiplication".
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
GAP = (200, 250)  # no operand of the training data has a magnitude in between
BEYOND = (500, 600)
ANSWERS = {  # magnitudes that lie in between: the training has none of the first, and all others
    "answer gap": (Decimal(3), Decimal("3.5")),
    "answer beside": (Decimal("3.5"), Decimal(4)),
}
WITHIN = 30  # all values are: the largest product of two operands, one of which lies beyond


@dataclass(frozen=True)
class Expression:
    """An expression up to its ``=``, and its exact value."""

    text: str
    value: Decimal


def expressions(operands: int, count: int, seed: int, special: str = "seen") -> list[Expression]:
    """Different ones, whose values lie within ±30, which leaves out none of two operands, and 3%
    and 8% of those of three and four; and, of answers that the training may have, not in the gap.

    Args:
        operands: in each.
        count: how many.
        seed: of the drawing.
        special: ``"seen"``: as in training; ``"gap"`` or ``"beyond"``: one operand, anywhere,
            lies in the gap or beyond the range; of :data:`ANSWERS`: the value lies there.
    """
    draw = random.Random(f"{operands} {seed} {special}")
    found: dict[str, Expression] = {}
    while len(found) < count:
        leaves = [_operand(draw, "seen") for _ in range(operands)]
        if special in ("gap", "beyond"):
            leaves[draw.randrange(operands)] = _operand(draw, special)
        one = _tree(draw, leaves)
        where = next((name for name in ANSWERS if is_in(one.value, name)), "")
        wanted = where == special if special in ANSWERS else where != "answer gap"
        if wanted and abs(one.value) <= WITHIN:
            found[one.text] = Expression(f"{one.text}=", one.value)
    return list(found.values())


def is_in(value: Decimal | float, name: str) -> bool:
    """Whether a value lies in one of :data:`ANSWERS`."""
    low, high = ANSWERS[name]
    return low < abs(Decimal(value)) < high


def _operand(draw: random.Random, where: str) -> Decimal:
    """In hundredths, of either sign."""
    if where == "seen":
        size = draw.randrange(1, LARGEST + 1)
        while GAP[0] < size < GAP[1]:
            size = draw.randrange(1, LARGEST + 1)
    else:
        low, high = GAP if where == "gap" else BEYOND
        size = draw.randrange(low + 1, high)
    return Decimal(size if draw.random() < 0.5 else -size).scaleb(-2)


def _tree(draw: random.Random, leaves: list[Decimal]) -> Expression:
    """The leaves in their order, in brackets drawn at random."""
    if len(leaves) == 1:
        return Expression(str(leaves[0]), leaves[0])
    cut = draw.randrange(1, len(leaves))
    left, right = _tree(draw, leaves[:cut]), _tree(draw, leaves[cut:])
    sign = draw.choice(list(OPERATORS))
    return Expression(f"({left.text}{sign}{right.text})", OPERATORS[sign](left.value, right.value))
