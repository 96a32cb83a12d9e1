"""What each representation would make of a corpus's numbers: held, rounded, clipped, left as text;
its worst error, tokens and bytes.

In: :class:`~numtok.statistics.Statistics`. Out: a :class:`Loss` per representation. Nothing is
    known here about any of them: each is tried on the examples of every shape, which count for all
    numbers of their shape, and, where it scales, on the magnitudes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.numbers.numbers import Numbers
from numtok.representations import Representation, SingleToken, SpelledOut, magnitudes
from numtok.representations.columns import Column
from numtok.representations.parse import name_of
from numtok.statistics.candidates import candidates
from numtok.statistics.statistics import Statistics

# exponents of the grammar have up to 17 digits
_EXACT = Context(prec=40, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class Loss:
    """What becomes of the numbers in one representation. The first four counts are all numbers.

    Attributes:
        representation: that was tried.
        exact: numbers that read back as the same decimal.
        rounded: numbers that read back as another one near to it.
        clipped: numbers replaced by the largest that is held.
        left_as_text: numbers that stay ordinary text, as it cannot hold them.
        vanishing: of those that are rounded or exact, how many are so near to zero, once scaled,
            that a model can hardly tell.
        worst_error: the largest relative error of those that are rounded; 0 if none is.
        tokens: per number, those that stay text included; None if that was not counted.
        bytes, compact_bytes: of its own column per number, as a tensor and as files hold it; None if there is no such form.
    """

    representation: Representation
    exact: int
    rounded: int
    clipped: int
    left_as_text: int
    vanishing: int
    worst_error: float
    tokens: float | None
    bytes: float | None
    compact_bytes: float | None

    @property
    def name(self) -> str:
        """As ``--numbers`` takes it."""
        return name_of(self.representation)

    @property
    def numbers(self) -> int:
        """All of them."""
        return self.exact + self.rounded + self.clipped + self.left_as_text

    def to_json(self) -> dict[str, Any]:
        """The attributes by name, the representation with its options."""
        rest = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)[1:]}
        return {"name": self.name, "options": self.representation.to_dict(), **rest}


def losses(
    statistics: Statistics, representations: Sequence[Representation] | None = None
) -> list[Loss]:
    """What each of the representations would lose; of those that suit the numbers' size if none are
    given.
    """
    chosen = candidates(statistics) if representations is None else representations
    examples = statistics.examples.numbers(), statistics.examples.weights()
    values, counts = magnitudes.lower_ends(statistics.counts.magnitude)
    scaled = Numbers.parse(values.tolist()), counts.astype(np.float64)
    return [_loss(representation, statistics, examples, scaled) for representation in chosen]


Weighted = tuple[Numbers, npt.NDArray[np.float64]]


def _loss(
    representation: Representation, statistics: Statistics, examples: Weighted, scaled: Weighted
) -> Loss:
    numbers, weights = examples
    fits = representation.fits(numbers)
    takes = fits if representation.overflow == "text" else np.ones(len(numbers), np.bool_)
    clipped = takes & representation.clipped(numbers)
    held = takes & ~clipped
    exact, error = _read_back(representation, numbers.select(held))
    left, total = weights[~takes].sum(), statistics.numbers
    beyond = weights[clipped].sum()
    if representation.has_scale:  # the examples are too few to tell where the scale cuts
        beyond = scaled[1][representation.clipped(scaled[0])].sum()
    near = 0.0
    if isinstance(representation, SingleToken):
        near = scaled[1][representation.vanishing(scaled[0])].sum()
    good, inexact = weights[held][exact].sum(), weights[held][~exact].sum()
    kept = max(total - left - beyond, 0.0)
    good = kept * good / max(good + inexact, 1e-300)
    exact_ones, rounded, over, text = _whole([good, kept - good, beyond, left], total)
    tokens = _tokens(representation, statistics, left / max(total, 1))
    return Loss(
        representation,
        exact_ones,
        rounded,
        over,
        text,
        round(float(near)),
        error,
        tokens,
        _bytes(representation, tokens),
        _bytes(_compact(representation), tokens),
    )


def _whole(parts: list[float], total: int) -> list[int]:
    """The parts rounded, so that they are the total: what is over goes to the largest."""
    whole = [round(float(part)) for part in parts]
    whole[int(np.argmax(parts))] += total - sum(whole)
    return whole


def _read_back(
    representation: Representation, numbers: Numbers
) -> tuple[npt.NDArray[np.bool_], float]:
    """bool[n], which numbers come back as the same decimal, and the largest relative error of the
    others.
    """
    exact, worst = np.ones(len(numbers), np.bool_), 0.0
    if not len(numbers):
        return exact, worst
    if isinstance(representation, SpelledOut):
        found = Numbers.parse(representation.decode(representation.encode(numbers)))
    elif isinstance(representation, SingleToken):
        found = representation.decode(representation.encode(numbers))
    else:
        return exact, worst
    for place, (was, now) in enumerate(zip(numbers.to_decimal(), found.to_decimal(), strict=True)):
        if was != now:
            exact[place] = False
            error = (
                _EXACT.divide(_EXACT.subtract(now, was).copy_abs(), was)
                if was
                else Decimal("Infinity")
            )
            worst = max(worst, float(error))
    return exact, worst


def _tokens(representation: Representation, statistics: Statistics, left: float) -> float | None:
    """Per number; what stays text costs what it cost before, and a sign that stays there one token."""
    costs = statistics.tokens
    before = costs.before / costs.numbers if costs.numbers else None
    if representation.stays_text:
        return before
    length = representation.length if isinstance(representation, SpelledOut) else 1
    if length is not None:
        each = float(length)
        if not representation.carries_sign:
            each += statistics.negative / max(statistics.numbers, 1)
        return each if left == 0 else None if before is None else each * (1 - left) + before * left
    spelled = costs.spelled.get(name_of(representation))
    return None if not costs.numbers or spelled is None else spelled / costs.numbers


def _bytes(representation: Representation | None, tokens: float | None) -> float | None:
    if representation is None:
        return None
    columns = representation.columns().values()
    if tokens is None and any(column.per == "token" for column in columns):
        return None
    return float(
        sum(_size(column) * ((tokens or 0.0) if column.per == "token" else 1) for column in columns)
    )


def _size(column: Column) -> float:
    """Bytes of one value."""
    return float(column.value_type.bit_width / 8 * math.prod(column.shape))


def _compact(representation: Any) -> Representation | None:
    if not any(field.name == "compact" for field in dataclasses.fields(representation)):
        return None
    made: Representation = dataclasses.replace(representation, compact=True)
    return made
