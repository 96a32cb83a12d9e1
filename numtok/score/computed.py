"""Find two figures of which another one is the sum, difference, product, quotient, percentage or
percent change.

The operands are in order of size, so that for each first operand the second is looked up by
bisection: n figures take n log n, not n squared. Floats choose the pairs, fractions decide.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from numtok.score.figures import Found, Quantity, as_float, position

MOST_OPERANDS = 400  # different figures of the sources; of more, any figure is a sum of some two
# of floats: of a result, and of what it was subtracted from
_SLACK, _ROUNDING = 1e-9, 1e-12


class Operand(NamedTuple):
    """A figure that may be computed with, and its size, not 0, as a fraction and a float."""

    size: Fraction
    approximate: float
    quantity: Quantity


class Wanted(NamedTuple):
    """The figure looked for: its bounds, its size, the figure itself, and whether the answer says
    that something rose (1) or fell (-1) by it.
    """

    low: Fraction
    high: Fraction
    size: Fraction
    figure: Quantity
    direction: int = 0


# a rank, of which the smallest is the likeliest, and operands
Ranked = tuple[tuple[int, ...], Found]


class _Operation(NamedTuple):
    """An operation on two operands a and b.

    Attributes:
        how: the name.
        value: the result, of a and b.
        second: b, of a and the result, in floats.
        percent: whether the result is a percentage; None if it is what the operands are.
        fits: whether figures a, b may give the figure wanted.
        direction: 1 if it is for what rose alone, -1 if for what fell.
    """

    how: str
    value: Callable[[Fraction, Fraction], Fraction]
    second: Callable[[float, float], float]
    percent: bool | None
    fits: Callable[[Quantity, Quantity, Quantity], bool]
    direction: int = 0


def _alike(wanted: Quantity, a: Quantity, b: Quantity) -> bool:
    """Whether figures can be added: all per cent or none, and no year."""
    return wanted.percent == a.percent == b.percent and not (a.kind or b.kind)


def _years_or_alike(wanted: Quantity, a: Quantity, b: Quantity) -> bool:
    if a.kind or b.kind:
        return a.kind == b.kind and not wanted.percent
    percent = wanted.percent or (a.percent and wanted.answer.unit == "point")  # fell 6.7 points
    return percent == a.percent == b.percent


def _all_plain(_: Quantity, a: Quantity, b: Quantity) -> bool:
    return not (a.percent or b.percent or a.kind or b.kind)


def _product(wanted: Quantity, a: Quantity, b: Quantity) -> bool:
    money = bool(a.answer.currency) + bool(b.answer.currency)
    return _all_plain(wanted, a, b) and money < 2 and 1 not in (a.size, b.size)


def _part(_: Quantity, a: Quantity, b: Quantity) -> bool:
    return a.percent and not (b.percent or a.kind or b.kind)


def _quotient(_: Quantity, a: Quantity, b: Quantity) -> bool:
    return a.percent == b.percent and not (a.kind or b.kind) and b.size != 1


_OPERATIONS = (  # the result of each is positive
    _Operation("sum", lambda a, b: a + b, lambda a, x: x - a, None, _alike),
    _Operation("difference", lambda a, b: a - b, lambda a, x: a - x, None, _years_or_alike),
    _Operation(
        "percent change",
        lambda a, b: (b - a) / a * 100,
        lambda a, x: a + a * x / 100,
        True,
        _all_plain,
        1,
    ),
    _Operation(
        "percent change",
        lambda a, b: (a - b) / a * 100,
        lambda a, x: a - a * x / 100,
        True,
        _all_plain,
        -1,
    ),
    _Operation("percent of", lambda a, b: a / b * 100, lambda a, x: a / x * 100, True, _all_plain),
    _Operation("product", lambda a, b: a * b / 100, lambda a, x: x / a * 100, False, _part),
    _Operation("product", lambda a, b: a * b, lambda a, x: x / a, False, _product),
    _Operation("quotient", lambda a, b: a / b, lambda a, x: a / x, False, _quotient),
)


def computed_from(wanted: Sequence[Wanted], operands: Sequence[Operand]) -> Found:
    """Return how a figure comes from at most two operands, which are in order of size; the operands
    that stand closest together, in one source if that can be. ``wanted`` has the figure once for
    each scale that it may be meant in.
    """
    ranked = (one for figure in wanted if figure.size for one in _candidates(figure, operands))
    _, nearest = min(ranked, key=lambda one: one[0], default=((), ((), "")))
    return nearest


def _candidates(wanted: Wanted, operands: Sequence[Operand]) -> Iterator[Ranked]:
    """Yield all computations that give a figure."""
    keys = [one.approximate for one in operands]
    ends = as_float(wanted.low), as_float(wanted.high)
    operations = [
        one
        for one in _OPERATIONS
        if one.percent in (None, wanted.figure.percent) and one.direction * wanted.direction >= 0
    ]
    for first in operands:
        if _is_complement(wanted, first):
            yield (0,), ((first.quantity.place,), "complement")
        a = first.approximate
        for operation in operations:
            least, most = sorted([operation.second(a, ends[0]), operation.second(a, ends[1])])
            slack = _SLACK * (abs(least) + abs(most)) + _ROUNDING * a
            if most + slack <= 0:
                continue
            start = bisect.bisect_left(keys, least - slack)
            stop = bisect.bisect_right(keys, most + slack, start)
            for second in operands[start:stop]:
                if second is not first and _agrees(wanted, operation, first, second):
                    yield _ranked(operation, first.quantity, second.quantity)


def _is_complement(wanted: Wanted, one: Operand) -> bool:
    """Whether the figure is what a percentage leaves of 100%."""
    both = wanted.figure.percent and one.quantity.percent
    return both and abs(100 - one.size - wanted.size) * 2 <= wanted.figure.step


def _agrees(wanted: Wanted, operation: _Operation, a: Operand, b: Operand) -> bool:
    """Whether a and b give the figure. A quotient of one digit must be exact: nearly any two figures
    give it when it is rounded.
    """
    if not operation.fits(wanted.figure, a.quantity, b.quantity):
        return False
    if operation.how != "product" and (a.quantity.in_words or b.quantity.in_words):
        return False  # three months' rent; elsewhere words such as "two" give too much by chance
    value = operation.value(a.size, b.size)
    if value == wanted.size:
        return True
    if operation.how == "quotient" and wanted.size < 10 * wanted.figure.step:
        return False
    return value > 0 and wanted.low <= value <= wanted.high


def _ranked(operation: _Operation, a: Quantity, b: Quantity) -> Ranked:
    """Rank a computation: in one source, no product or quotient, of one unit, close together."""
    rank = (
        int(a.source != b.source),
        int(operation.how in ("product", "quotient")),
        int(a.answer.unit != b.answer.unit),
        abs(a.answer.start - b.answer.start),
        _OPERATIONS.index(operation),
    )
    places = [a.place, b.place]
    if operation.how in ("sum", "product"):
        places.sort(key=position)
    return rank, (tuple(places), operation.how)
