"""Exact decimals to floats, each rounded once, from the decimal, to nearest even (IEEE 754).

In: :class:`~numtok.numbers.decimals.Decimals`. Out: :class:`Floats`. Clinger's fast path (W. D.
Clinger, "How to read floating point numbers accurately", PLDI 1990) gives nearly all of them, up to
15 digits; Arrow's correctly rounding parser reads the others from their text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.bitmarks import EIGHT, ONE, ZERO, eight_bytes
from numtok.arrays.kernels import inlined_kernel, kernel
from numtok.numbers.decimals import Decimals, Runs, take
from numtok.numbers.to_text import to_text

# Clinger's fast path: w * 10**e is correctly rounded when w < 2**53 and |e| <= 22, as both are
# exact doubles.
_POWERS_OF_TEN = np.array([float(10**power) for power in range(23)])
_TEN = np.uint64(10)


class Floats(NamedTuple):
    """float64 and float32 values of n numbers, read-only. Each is rounded once, directly from the
    decimal digits.
    """

    doubles: npt.NDArray[np.float64]
    singles: npt.NDArray[np.float32]
    # bool[n], whether float32 holds it: not infinite, nor rounded to zero without being zero
    held: npt.NDArray[np.bool_]

    def take(self, runs: Runs) -> Floats:
        """Return the floats of the runs, as :func:`~numtok.numbers.decimals.take` does for one
        array.
        """
        return Floats(*(take(one, runs) for one in self)).read_only()

    def read_only(self) -> Floats:
        """Make the arrays read-only, and return the floats."""
        for one in self:
            one.flags.writeable = False
        return self


def to_floats(decimals: Decimals) -> Floats:
    """Return the floats of all numbers."""
    count = len(decimals.exponent)
    floats = Floats(*(memory.empty(count, kind) for kind in (np.float64, np.float32, np.bool_)))
    left = memory.empty(count, np.int64)
    left = left[: _to_floats(decimals, _POWERS_OF_TEN, floats, left)]
    if len(left):
        others = decimals.take(np.stack([left, left + 1], 1))
        texts = to_text(others)
        floats.doubles[left] = memory.from_arrow(texts.cast(pa.float64()))
        floats.singles[left] = singles = memory.from_arrow(texts.cast(pa.float32()))
        floats.held[left] = np.isfinite(singles) & ((singles != 0) | others.is_zero())
    return floats.read_only()


@kernel
def _to_floats(decimals, powers, out, left):  # type: ignore[no-untyped-def]
    """Fill in the floats of Clinger's fast path; ``left`` gets the indices of all other numbers.
    Returns their count.
    """
    digits, offsets, exponent = decimals.digits, decimals.digit_offsets, decimals.exponent
    negative, (doubles, singles, held) = decimals.negative, out
    count = ZERO
    for i in range(np.uint64(exponent.size)):
        whole, exact = _whole(digits, np.uint64(offsets[i]), np.uint64(offsets[i + ONE]))
        power = exponent[i] if whole != ZERO else np.int64(0)
        value = np.float64(whole)
        if exact and power == 0 and whole <= ONE << np.uint64(24):
            # Most numbers are such integers, which both hold.
            doubles[i] = -value if negative[i] else value
            singles[i], held[i] = np.float32(doubles[i]), True
            continue
        exact = exact and -22 <= power <= 22
        if exact and power < 0:
            value /= powers[np.uint64(-power)]
        elif exact:
            value *= powers[np.uint64(power)]
        doubles[i] = -value if negative[i] else value
        single = np.float32(doubles[i])
        singles[i] = single
        held[i] = np.isfinite(single) & ((single != 0) | (whole == ZERO))
        if not exact or _is_unsure(value, power):
            left[count] = i
            count += ONE
    return np.int64(count)


@inlined_kernel
def _whole(digits, first, last):  # type: ignore[no-untyped-def]
    """Return (the digits as an integer, whether they are at most 2**53)."""
    count, whole = last - first, ZERO
    if count <= EIGHT and first + EIGHT <= np.uint64(digits.size):
        # Eight digits at once, whatever their count: those too many are shifted out, and zeros in
        # front.
        word = eight_bytes(digits, first) << EIGHT * (EIGHT - count)
        word = word * _TEN + (word >> EIGHT)  # bytes 0, 2, 4, 6: two digits each
        pairs = word & np.uint64(0x000000FF000000FF)
        others = (word >> np.uint64(16)) & np.uint64(0x000000FF000000FF)
        whole = pairs * np.uint64(0x000F424000000064) + others * np.uint64(0x0000271000000001)
        return whole >> np.uint64(32), True
    for k in range(first, last):
        whole = whole * _TEN + np.uint64(digits[k])
        if whole > ONE << np.uint64(53):
            return whole, False
    return whole, True


@inlined_kernel
def _is_unsure(magnitude, power):  # type: ignore[no-untyped-def]
    """Whether a double does not tell which float32 is nearest to the decimal.

    That is where it lies half-way between two (it may have been rounded there, unless it is an
    integer as it was written, and has no more than 53 bits), and below float32's normal range.
    """
    small = (magnitude < 2.0**-125) & (magnitude != 0.0)
    rest = np.float64(magnitude).view(np.uint64) & np.uint64(0x1FFFFFFF)
    exact = (power == 0) & (magnitude <= 2.0**53)
    return small | ((rest == np.uint64(0x10000000)) & (not exact))
