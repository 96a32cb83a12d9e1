"""The digits of each number: how many, of what magnitude, and a key by which equal values are
counted.

In: :class:`numtok.numbers.Numbers`. Out: :class:`Digits`, histograms of all of them, and
    :class:`Keys`, one for each. A number is mantissa × 10**power with no zero at the mantissa's
    end; its *decade* is the power of ten of its first digit, 3 for 1234. Mantissas have up to
    ``MANTISSA`` digits; what is longer is cut there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.numbers.decimals import Decimals
from numtok.numbers.numbers import Numbers

Ints = npt.NDArray[np.int64]

MANTISSA = 18  # decimal digits, which int64 holds
LONG = MANTISSA + 1  # stands for every count of significant digits beyond
MOST_DIGITS = 40  # of the histograms: the last bin is for as many or more
LARGEST_DECADE = 50  # the same, in both directions
# of magnitudes, from one power of two to the next: each is at most 1/32 wider than the one before
STEPS = 32
_SHIFT = 52 - 5  # bits of a double below its exponent and the first five bits of its mantissa
MAGNITUDES = 0x7FF << 5


class Digits(NamedTuple):
    """Histograms of n numbers, int64 each.

    Attributes:
        significant: [41], by digits from the first to the last that is not zero; 0 for zero.
        integer, fraction: [41], by digits before and after the point that the value needs.
        first: [10], by the first digit that is not zero; nothing at 0.
        positive, negative: [101], by decade, -50 (or less) to 50 (or more); zero is in neither.
        zeros: [2], zero and minus zero.
        magnitude: [65504], by the leading 16 bits of the double, its sign left out: 32 steps from
            one power of two to the next.
        beyond: [2], numbers other than zero that are infinite as float64, and zero as float64; in
            no bin of ``magnitude``.
    """

    significant: Ints
    integer: Ints
    fraction: Ints
    first: Ints
    positive: Ints
    negative: Ints
    zeros: Ints
    magnitude: Ints
    beyond: Ints

    @classmethod
    def none(cls) -> Digits:
        """Of no numbers."""
        sizes = {
            "first": 10,
            "positive": 2 * LARGEST_DECADE + 1,
            "negative": 2 * LARGEST_DECADE + 1,
            "zeros": 2,
            "magnitude": MAGNITUDES,
            "beyond": 2,
        }
        return cls(
            **{name: np.zeros(sizes.get(name, MOST_DIGITS + 1), np.int64) for name in cls._fields}
        )

    def __add__(self, other: Any) -> Digits:  # of tuples, it would join them
        return Digits(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Keys(NamedTuple):
    """n numbers as signed mantissa and power, int64[n] each; minus zero is zero.

    ``significant``: digits, int64[n], ``LONG`` where the mantissa is cut.
    """

    mantissa: Ints
    power: Ints
    significant: Ints


def count_digits(numbers: Numbers) -> tuple[Digits, Keys]:
    """Histograms of the numbers, and the key of each."""
    count = len(numbers)
    keys = Keys(
        memory.empty(count, np.int64), memory.empty(count, np.int64), memory.empty(count, np.int64)
    )
    digits = Digits.none()
    decimals = Decimals(numbers.digits, numbers.digit_offsets, numbers.exponent, numbers.negative)
    _count(decimals, numbers.to_float64().view(np.uint64), digits, keys)
    return digits, keys


def magnitude_centres(bins: Ints) -> npt.NDArray[np.float64]:
    """float64[n]: the middle of each bin of ``Digits.magnitude``."""
    return (bins.astype(np.uint64) << np.uint64(_SHIFT) | np.uint64(1 << (_SHIFT - 1))).view(
        np.float64
    )


def magnitude_bins(values: npt.NDArray[np.float64]) -> Ints:
    """int64[n]: the bin of each magnitude."""
    return (values.view(np.uint64) >> np.uint64(_SHIFT)).astype(np.int64)


@kernel
def _count(decimals, doubles, histograms, keys):  # type: ignore[no-untyped-def]
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
        bits = doubles[i] & np.uint64(0x7FFFFFFFFFFFFFFF)
        if bits >= np.uint64(0x7FF0000000000000):
            histograms.beyond[0] += 1
        elif bits == np.uint64(0):
            histograms.beyond[1] += 1
        else:
            histograms.magnitude[bits >> np.uint64(_SHIFT)] += 1
