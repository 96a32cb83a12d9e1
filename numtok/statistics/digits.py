"""The digits of each number: how many, of what magnitude, and how often each value occurs. A number
is mantissa × 10**power with no zero at the mantissa's end; its *decade* is the power of ten of its
first digit, 3 for 1234. Mantissas have up to ``MANTISSA`` digits; what is longer is cut there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.numbers.numbers import Numbers
from numtok.representations import magnitudes
from numtok.statistics.histograms import LARGEST_DECADE, MOST_DIGITS, Histograms

Ints = npt.NDArray[np.int64]

MANTISSA = 18  # decimal digits, which int64 holds
LONG = MANTISSA + 1  # stands for every count of significant digits beyond
DECADES = 2 * LARGEST_DECADE + 1


class Values(NamedTuple):
    """m values, mantissa × 10**power, and how often each occurs; int64[m] each. Minus zero is zero,
    which has no digits and the decade 0.
    """

    shape: Ints  # digits (``LONG`` at most) × ``DECADES`` + decade + ``LARGEST_DECADE``
    mantissa: Ints
    power: Ints
    times: Ints

    def chosen(self, which: npt.NDArray[Any]) -> Values:
        """Some of them."""
        return Values(*(column[which] for column in self))

    def is_cut(self) -> npt.NDArray[np.bool_]:
        """bool[m]: of more digits than a mantissa holds."""
        return np.asarray(self.shape >= LONG * DECADES)

    def distinct(self) -> Values:
        """Equal ones as one."""
        names = list(self._fields)
        table = pa.table({name: pa.array(one) for name, one in zip(names, self, strict=True)})
        summed = table.group_by(names[:3], use_threads=False).aggregate([("times", "sum")])
        columns = [*(summed[name] for name in names[:3]), summed["times_sum"]]
        return Values(*(memory.from_arrow(column.combine_chunks()) for column in columns))


def count_digits(numbers: Numbers, histograms: Histograms) -> Values:
    """The value of each number, with its sign; the histograms are filled."""
    shape, mantissa, power = (memory.empty(len(numbers), np.int64) for _ in range(3))
    values = Values(shape, mantissa, power, memory.full(len(numbers), 1, np.int64))
    _count(numbers.columns, histograms, values)
    floats = numbers.to_float64()
    histograms.magnitude[:] = magnitudes.counted(floats)
    histograms.beyond[0] = np.count_nonzero(np.isinf(floats))
    histograms.beyond[1] = np.count_nonzero(floats == 0) - histograms.zeros.sum()
    return values.distinct()


@kernel
def _count(columns, histograms, values):  # type: ignore[no-untyped-def]
    digits, offsets = columns.digits, columns.digit_offsets
    for i in range(columns.exponent.size):
        first, last, end = offsets[i], offsets[i + 1], offsets[i + 1]
        while first < last and digits[first] == 0:
            first += 1
        while last > first and digits[last - 1] == 0:
            last -= 1
        if first == last:
            values.shape[i], values.mantissa[i], values.power[i] = LARGEST_DECADE, 0, 0
            histograms.significant[0] += 1
            histograms.integer[0] += 1
            histograms.fraction[0] += 1
            histograms.zeros[1 if columns.negative[i] else 0] += 1
            continue
        mantissa, kept = np.int64(0), min(last - first, MANTISSA)
        for k in range(first, first + kept):
            mantissa = mantissa * 10 + digits[k]
        decade, lowest = columns.exponent[i] + end - 1 - first, columns.exponent[i] + end - last
        power = lowest + (last - first - kept)
        while mantissa % 10 == 0:  # it was cut after a zero
            mantissa //= 10
            power += 1
        place = min(max(decade, -LARGEST_DECADE), LARGEST_DECADE) + LARGEST_DECADE
        values.shape[i] = min(last - first, LONG) * DECADES + place
        values.mantissa[i], values.power[i] = -mantissa if columns.negative[i] else mantissa, power
        histograms.significant[min(last - first, MOST_DIGITS)] += 1
        histograms.integer[min(max(decade + 1, 0), MOST_DIGITS)] += 1
        histograms.fraction[min(max(-lowest, 0), MOST_DIGITS)] += 1
        histograms.first[digits[first]] += 1
        if columns.negative[i]:
            histograms.negative[place] += 1
        else:
            histograms.positive[place] += 1
