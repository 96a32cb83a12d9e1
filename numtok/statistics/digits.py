"""The digits of each number: how many, of what magnitude, and a key by which equal values are
counted.

In: :class:`numtok.numbers.Numbers`. Out: histograms, and :class:`Keys`, one for each. A number is
    mantissa × 10**power with no zero at the mantissa's end; its *decade* is the power of ten of its
    first digit, 3 for 1234. Mantissas have up to ``MANTISSA`` digits; what is longer is cut there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.numbers.decimals import Decimals
from numtok.numbers.numbers import Numbers
from numtok.representations import magnitudes
from numtok.statistics.histograms import LARGEST_DECADE, MOST_DIGITS, Histograms

Ints = npt.NDArray[np.int64]

MANTISSA = 18  # decimal digits, which int64 holds
LONG = MANTISSA + 1  # stands for every count of significant digits beyond


class Keys(NamedTuple):
    """n numbers as signed mantissa and power, int64[n] each; minus zero is zero.

    ``significant``: digits, int64[n], ``LONG`` where the mantissa is cut.
    """

    mantissa: Ints
    power: Ints
    significant: Ints


def count_digits(numbers: Numbers, histograms: Histograms) -> Keys:
    """The key of each number; the histograms are filled."""
    keys = Keys(*(memory.empty(len(numbers), np.int64) for _ in Keys._fields))
    decimals = Decimals(numbers.digits, numbers.digit_offsets, numbers.exponent, numbers.negative)
    _count(decimals, histograms, keys)
    values = numbers.to_float64()
    histograms.magnitude[:] = magnitudes.counted(values)
    histograms.beyond[0] = np.count_nonzero(np.isinf(values))
    histograms.beyond[1] = np.count_nonzero(values == 0) - histograms.zeros.sum()
    return keys


@kernel
def _count(decimals, histograms, keys):  # type: ignore[no-untyped-def]
    digits, offsets = decimals.digits, decimals.offsets
    for i in range(decimals.exponent.size):
        first, last, end = offsets[i], offsets[i + 1], offsets[i + 1]
        while first < last and digits[first] == 0:
            first += 1
        while last > first and digits[last - 1] == 0:
            last -= 1
        if first == last:
            keys.mantissa[i] = keys.power[i] = keys.significant[i] = 0
            histograms.significant[0] += 1
            histograms.integer[0] += 1
            histograms.fraction[0] += 1
            histograms.zeros[1 if decimals.negative[i] else 0] += 1
            continue
        mantissa, kept = np.int64(0), min(last - first, MANTISSA)
        for k in range(first, first + kept):
            mantissa = mantissa * 10 + digits[k]
        decade, lowest = decimals.exponent[i] + end - 1 - first, decimals.exponent[i] + end - last
        power = lowest + (last - first - kept)
        while mantissa % 10 == 0:  # it was cut behind a zero
            mantissa //= 10
            power += 1
        keys.mantissa[i], keys.power[i] = -mantissa if decimals.negative[i] else mantissa, power
        keys.significant[i] = min(last - first, LONG)
        histograms.significant[min(last - first, MOST_DIGITS)] += 1
        histograms.integer[min(max(decade + 1, 0), MOST_DIGITS)] += 1
        histograms.fraction[min(max(-lowest, 0), MOST_DIGITS)] += 1
        histograms.first[digits[first]] += 1
        place = min(max(decade, -LARGEST_DECADE), LARGEST_DECADE) + LARGEST_DECADE
        if decimals.negative[i]:
            histograms.negative[place] += 1
        else:
            histograms.positive[place] += 1
