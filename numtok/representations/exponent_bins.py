"""Exponent bins: one ``[NUM]`` per number, shown as the index of its magnitude's bin on a
logarithmic scale. A lossy baseline.

In: n numbers, their magnitudes; the sign stays in the text. Out: ``number_bin``, int16[n]: 0 for
    zero, and b for low * r**(b - 1) <= abs(x) < low * r**b, with r = (high / low)**(1 / bins); high
    itself is in the last bin. Inverse: the geometric centre of the bin, within a factor √r of the
    number: a relative error of at most √r - 1, 5.93% for 200 bins from 1e-4 to 1e6; zero is exact.
    The embedding of a number's exponent in An Empirical Investigation of Contextualized Number
    Prediction (Berg-Kirkpatrick and Spokoyny 2020), section 3, with finer bins than one per power.

Bin edges are the doubles nearest to the true edges, and a number is compared as a double with them:
the same bins on every machine.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.numbers.numbers import Numbers
from numtok.representations.base import Mask, SingleToken
from numtok.representations.columns import Column, numbers_from_floats

MAX_BINS = 2**15 - 1


@dataclass(frozen=True)
class ExponentBins(SingleToken):
    """The baseline of bins on a logarithmic scale: one bin per number, by its magnitude.

    Attributes:
        n: how many bins there are, besides that of zero.
        low, high: the range of magnitudes.
        overflow: for magnitudes outside the range, zero excepted (``"clip"``: the first or the last
            bin).

    Example:
        >>> import numtok
        >>> numbers = numtok.Numbers.parse(["0", "0.001", "-1000"])
        >>> numtok.ExponentBins().encode(numbers)["number_bin"].to_pylist()
        [0, 21, 141]
    """

    n: int = 200
    low: float = 1e-4
    high: float = 1e6
    overflow: str = "text"
    name = "exponent_bins"
    aliases = ("bins",)
    declared = (Column("number_bin", pa.int16(), np.int64, encoding="split"),)
    carries_sign = False
    positional = ("n",)
    limits: ClassVar[Mapping[str, tuple[int, int]]] = {"n": (1, MAX_BINS)}

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.low, self.high
        if not 0 < low < high < np.inf:
            raise self.refused(
                f"low={low}, high={high} must be positive and finite, low less than high"
            )
        if not np.all(np.diff(self.edges) > 0):
            raise self.refused(
                f"{self.n} bins from {low} to {high} are narrower than float64; take fewer"
            )

    @property
    def edges(self) -> npt.NDArray[np.float64]:
        """float64[n + 1], read-only: bin b is from ``edges[b - 1]`` to ``edges[b]``."""
        return _on_log_scale(self.n, self.low, self.high, 0)

    @property
    def centres(self) -> npt.NDArray[np.float64]:
        """float64[n + 1], read-only: what each bin stands for, 0 for bin 0."""
        return _on_log_scale(self.n, self.low, self.high, 1)

    @property
    def relative_error(self) -> float:
        """The largest there is: √r - 1."""
        return math.expm1((math.log(self.high) - math.log(self.low)) / (2 * self.n))

    @property
    def exact_digit_range(self) -> range:
        low, high = Decimal(repr(self.low)), Decimal(repr(self.high))
        above = low > Decimal(1).scaleb(low.adjusted())  # the power of ten that it begins with
        return range(low.adjusted() + above, high.adjusted())

    def fits(self, numbers: Numbers) -> Mask:
        magnitude = np.abs(numbers.to_float64())
        return ((magnitude >= self.low) & (magnitude <= self.high)) | numbers.is_zero()

    def nearest_in_range(self, numbers: Numbers) -> Numbers:
        magnitude = np.abs(numbers.to_float64())  # not the centre of the first or the last bin
        return numbers_from_floats(np.clip(magnitude, self.low, self.high), self.name)

    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        magnitude = np.clip(np.abs(numbers.to_float64()), self.low, np.nextafter(self.high, 0))
        bins = np.searchsorted(self.edges, magnitude, "right").astype(np.int16)
        bins[numbers.is_zero()] = 0
        return {"number_bin": memory.to_arrow(bins)}

    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        bins = columns["number_bin"].to_numpy(zero_copy_only=False)
        if len(bins) and not 0 <= bins.min() <= bins.max() <= self.n:
            wrong = bins[(bins < 0) | (bins > self.n)][0]
            raise self.refused(f"number_bin holds {wrong}, expected 0 to {self.n}")
        return numbers_from_floats(self.centres[bins], self.name)


@functools.lru_cache(maxsize=32)
def _on_log_scale(n: int, low: float, high: float, centres: int) -> npt.NDArray[np.float64]:
    """Return the edges, or 0 and the centres: low * (high / low)**(k / n) for k = 0 ..

    n, or for the halves between.
    """
    context = Context(prec=40)  # not a float power, which differs from machine to machine
    step = context.divide(context.ln(context.divide(Decimal(high), Decimal(low))), Decimal(2 * n))
    values = [
        float(context.multiply(Decimal(low), context.exp(context.multiply(step, 2 * k - centres))))
        for k in range(n + 1)
    ]
    values[0] = 0.0 if centres else low
    if not centres:
        values[-1] = high
    scale = np.array(values)
    scale.flags.writeable = False
    return scale
