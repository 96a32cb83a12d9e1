"""Measure how each representation would change a corpus's numbers. Each is tried on the examples of
every shape, which count for all numbers of their shape, and, where it scales, on the magnitudes.
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
from numtok.representations import (
    FoNE,
    QuantileBins,
    Representation,
    SingleToken,
    SpelledOut,
    XVal,
    magnitudes,
)
from numtok.representations.registry import REPRESENTATIONS, default_instances
from numtok.statistics.statistics import Statistics

COVERED = 0.99  # of the numbers, whose digits FoNE is given; a few long ones would widen it for all
MOST_FONE_DIGITS = 16  # before the point, and after it
# exponents of the grammar have up to 17 digits
_EXACT = Context(prec=40, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class Loss:
    """Losses of a representation on the numbers of a corpus. The first four counts add up to all
    numbers.
    """

    representation: Representation
    exact: int  # read back as the same decimal
    rounded: int  # read back as another one near to it
    clipped: int  # replaced by the largest that is held
    left_as_text: int
    vanishing: int  # of the rounded or exact ones, too near to zero, once scaled, for a model
    worst_error: float  # the largest relative error of those that are rounded
    tokens: float | None  # per number, those that stay text included; None if not counted
    bytes: float | None  # of its columns per number, as files hold them; None if that takes tokens

    @property
    def name(self) -> str:
        """With its options, as :func:`numtok.representations.parse` takes it."""
        return self.representation.spec()

    @property
    def numbers(self) -> int:
        """All of them."""
        return self.exact + self.rounded + self.clipped + self.left_as_text

    def to_json(self) -> dict[str, Any]:
        """Return the attributes by name, the representation with its options."""
        rest = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)[1:]}
        return {"name": self.name, "options": self.representation.to_dict(), **rest}


def candidates(statistics: Statistics) -> list[Representation]:
    """Return all registered representations with their variants, except those that need options of
    their own; xVal plain and with ``log``, FoNE, and the bins of quantiles, fitted to the numbers.
    """
    fitted: dict[str, list[Representation]] = {
        "xval": [fitted_xval(statistics), fitted_xval(statistics, log=True)],
        "fone": [fitted_fone(statistics)],
        "quantile_bins": fitted_bins(statistics),
    }
    kinds = REPRESENTATIONS.items()
    return [one for name, kind in kinds for one in fitted.get(name) or default_instances(kind)]


def fitted_xval(statistics: Statistics, log: bool = False) -> XVal:
    """Return xVal with the scale that ``numtok encode`` fits to these numbers."""
    return magnitudes.fitted_xval(statistics.counts["magnitudes"], log=log)


def fitted_fone(statistics: Statistics) -> FoNE:
    """Return FoNE with as many digits before and after the point as 99% of the numbers have."""

    def covering(counts: npt.NDArray[np.int64]) -> int:
        few = int(np.searchsorted(np.cumsum(counts), COVERED * counts.sum()))
        return min(few, MOST_FONE_DIGITS)

    counts = statistics.counts
    return FoNE(max(covering(counts["integer_digits"]), 1), covering(counts["fraction_digits"]))


def fitted_bins(statistics: Statistics) -> list[Representation]:
    """Return 64 hard bins, and the 32 soft ones that are advised for columns, with the quantiles of
    the examples, each of which stands for its shape.
    """
    values, weights = statistics.examples.numbers().to_float64(), statistics.examples.weights()
    kinds = QuantileBins(), QuantileBins(32, soft=True)
    return [kind.fit_to(values, weights) for kind in kinds]


def losses(
    statistics: Statistics, representations: Sequence[Representation] | None = None
) -> list[Loss]:
    """Return what each of the representations would lose; of the candidates if none are given. What has to
    be fitted to a corpus, and is not, is fitted to the examples.
    """
    chosen = candidates(statistics) if representations is None else representations
    examples = statistics.examples.numbers(), statistics.examples.weights()
    floats = examples[0].to_float64(), examples[1]
    chosen = [one.fit_to(*floats) if one.needs_fit else one for one in chosen]
    values, counts = magnitudes.lower_ends(statistics.counts["magnitudes"])
    scaled = Numbers.parse(values.tolist()), counts.astype(np.float64)
    return [_loss(representation, statistics, examples, scaled) for representation in chosen]


Weighted = tuple[Numbers, npt.NDArray[np.float64]]


def _loss(
    representation: Representation, statistics: Statistics, examples: Weighted, scaled: Weighted
) -> Loss:
    (numbers, weights), total = examples, statistics.numbers
    fits = representation.fits(numbers)
    takes = fits if representation.overflow == "text" else np.ones(len(numbers), np.bool_)
    clipped = takes & representation.clipped(numbers)
    held = takes & ~clipped
    exact, error = _read_back(representation, numbers.select(held))
    left, beyond = weights[~takes].sum(), weights[clipped].sum()
    if representation.has_scale:  # the examples are too few to tell where the scale cuts
        beyond = scaled[1][representation.clipped(scaled[0])].sum()
    near = 0.0
    if isinstance(representation, SingleToken):
        near = scaled[1][representation.near_zero(scaled[0])].sum()
    alone = statistics.examples.values.times if representation.exact_at_edges else weights
    kept = max(total - left - beyond, 0.0)
    good = kept * alone[held][exact].sum() / max(weights[held].sum(), 1e-300)
    exactly, rounded, over, text = _whole([good, kept - good, beyond, left], total)
    tokens = _tokens(representation, statistics, left / max(total, 1))
    size, vanishing = _bytes(representation, tokens), round(float(near))
    return Loss(representation, exactly, rounded, over, text, vanishing, error, tokens, size)


def _whole(parts: list[float], total: int) -> list[int]:
    """Return the parts rounded, so that they are the total: what is over goes to the largest."""
    whole = [round(float(part)) for part in parts]
    whole[int(np.argmax(parts))] += total - sum(whole)
    return whole


def _read_back(
    representation: Representation, numbers: Numbers
) -> tuple[npt.NDArray[np.bool_], float]:
    """Return bool[n], which come back as the same decimal, and the largest error of the others."""
    decoded = numbers
    if len(numbers) and isinstance(representation, SpelledOut):
        decoded = Numbers.parse(representation.decode(representation.encode(numbers)))
    elif len(numbers) and isinstance(representation, SingleToken):
        decoded = representation.decode(representation.encode(numbers))
    errors = list(map(_relative_error, numbers.to_decimal(), decoded.to_decimal()))
    exact = np.array([error is None for error in errors], np.bool_)
    return exact, max(filter(None, errors), default=0.0)


def _relative_error(was: Decimal, now: Decimal) -> float | None:
    """Return the relative error of a number; None if the two are the same."""
    if was == now:
        return None
    return float(_EXACT.divide(_EXACT.subtract(now, was).copy_abs(), was)) if was else math.inf


def _tokens(representation: Representation, statistics: Statistics, left: float) -> float | None:
    """Return the tokens per number. What stays text costs what it did before, and a sign that stays
    costs one token.
    """
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
    spelled = costs.spelled.get(representation.spec())
    return None if not costs.numbers or spelled is None else spelled / costs.numbers


def _bytes(representation: Any, tokens: float | None) -> float | None:
    """Return the bytes per number of the columns, in their compact form."""
    if any(field.name == "compact" for field in dataclasses.fields(representation)):
        representation = dataclasses.replace(representation, compact=True)
    columns = representation.columns().values()
    if tokens is None and any(column.per == "token" for column in columns):
        return None
    return float(
        sum(
            column.value_type.bit_width / 8 * math.prod(column.shape)
            * ((tokens or 0.0) if column.per == "token" else 1)
            for column in columns
        )
    )  # fmt: skip
