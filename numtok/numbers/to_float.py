"""Exact decimals to floats, each rounded once, from the decimal, to nearest even (IEEE 754).

In: :class:`~numtok.numbers.decimals.Decimals`. Out: float64[n] or float32[n]. Clinger's fast path
    settles nearly all, up to 15 digits; that of Eisel and Lemire
    (:mod:`numtok.numbers.long_floats`) most of those with up to 19; Arrow's correctly rounding
    parser reads the others from their text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel, merged_kernel
from numtok.numbers.decimals import Decimals
from numtok.numbers.long_floats import settle_long
from numtok.numbers.to_text import to_text

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Clinger's fast path: w * 10**e is correctly rounded when w < 2**53 and |e| <= 22, as both are
# exact doubles.
_POWERS_OF_TEN = np.array([float(10**power) for power in range(23)])
DOUBLE_OPEN, SINGLE_OPEN, LOST = 1, 2, 4  # bits in Fast.marks


class Fast(NamedTuple):
    """What the fast paths tell of n numbers, in one go: nearly all.

    Attributes:
        doubles: float64[n]. singles: float32[n], each rounded in one step, not through float64.
        places: int64[m], ascending, of those that something is to be said about.
        marks: uint8[m], bit flags: the decimal must decide what the double, or the single, is; or
            the single is infinite, or zero for another number.
    """

    doubles: Floats
    singles: npt.NDArray[np.float32]
    places: npt.NDArray[np.int64]
    marks: npt.NDArray[np.uint8]

    def marked(self, which: int) -> npt.NDArray[np.int64]:
        """The places with this mark."""
        return np.asarray(self.places[self.marks & which != 0])


def fast_floats(decimals: Decimals) -> Fast:
    """The floats, as far as the fast paths settle them."""
    count = len(decimals.exponent)
    doubles, singles = memory.empty(count, np.float64), memory.empty(count, np.float32)
    places, marks = memory.empty(count, np.int64), memory.empty(count, np.uint8)
    found = _to_floats(decimals, _POWERS_OF_TEN, doubles, singles, places, marks)
    fast = Fast(doubles, singles, places[:found].copy(), marks[:found].copy())
    if len(long := fast.marked(DOUBLE_OPEN)):
        few, of_few, unsettled = decimals.take(long), doubles[long], np.ones(len(long), np.bool_)
        settle_long(few, of_few, unsettled)
        narrow, unsure = np.empty(len(long), np.float32), np.empty(len(long), np.bool_)
        _narrow(of_few, few.exponent, unsettled, narrow, unsure)
        doubles[long], singles[long] = of_few, narrow
        open_still = unsettled * np.uint8(DOUBLE_OPEN) | unsure * np.uint8(SINGLE_OPEN)
        fast.marks[fast.marks & DOUBLE_OPEN != 0] = open_still | _lost(narrow, few) * np.uint8(LOST)
    return fast


def settled_float64(decimals: Decimals, fast: Fast) -> Floats:
    """float64[n], read-only: the doubles with the rest filled in, in place."""
    if len(which := fast.marked(DOUBLE_OPEN)):
        _round(decimals.take(which), fast.doubles, which)
        fast.marks[:] &= ~np.uint8(DOUBLE_OPEN)
    fast.doubles.flags.writeable = False
    return fast.doubles


def settled_float32(decimals: Decimals, fast: Fast) -> npt.NDArray[np.float32]:
    """float32[n], read-only: the singles with the rest filled in, in place, and marked as lost if
    they are.
    """
    if len(which := fast.marked(SINGLE_OPEN)):
        few, now_known = decimals.take(which), fast.marks & SINGLE_OPEN != 0
        _round(few, fast.singles, which)
        fast.marks[now_known] = fast.marks[now_known] & np.uint8(DOUBLE_OPEN) | _lost(
            fast.singles[which], few
        ) * np.uint8(LOST)
    fast.singles.flags.writeable = False
    return fast.singles


def _lost(singles: npt.NDArray[np.float32], decimals: Decimals) -> Mask:
    return np.asarray(np.isinf(singles) | ((singles == 0) & ~decimals.is_zero()))


def _round(few: Decimals, values: npt.NDArray[Any], which: npt.NDArray[np.int64]) -> None:
    """Fill in the values at those places from their decimals."""
    values[which] = memory.from_arrow(to_text(few).cast(pa.from_numpy_dtype(values.dtype)))


@kernel
def _to_floats(decimals, powers, doubles, singles, places, marks):  # type: ignore[no-untyped-def]
    """Fill the columns of :class:`Fast`; the number of places."""
    digits, offsets, exponent, negative = decimals
    zero, one, eight, ten = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(10)
    found = zero
    safe = np.uint64(max(0, digits.size - 8))
    for i in range(np.uint64(exponent.size)):
        first, last = np.uint64(offsets[i]), np.uint64(offsets[i + one])
        count = last - first
        unsettled = False
        if count <= eight and first < safe:
            # Eight digits at once, whatever their count: those too many are shifted out, and zeros
            # in front.
            word = np.uint64(digits[first])
            for k in range(one, eight):
                word |= np.uint64(digits[first + k]) << (eight * k)
            word <<= eight * (eight - count)
            word = word * ten + (word >> eight)  # bytes 0, 2, 4, 6: two digits each
            pairs, others = (
                word & np.uint64(0x000000FF000000FF),
                (word >> np.uint64(16)) & np.uint64(0x000000FF000000FF),
            )
            whole = (
                pairs * np.uint64(0x000F424000000064) + others * np.uint64(0x0000271000000001)
            ) >> np.uint64(32)
        else:
            whole = zero
            for k in range(first, last):
                whole = whole * ten + np.uint64(digits[k])
                if whole > one << np.uint64(53):
                    unsettled = True
                    break
        power = exponent[i]
        value = np.float64(whole)
        if power == 0 and whole <= one << np.uint64(
            24
        ):  # most numbers are such integers, which both hold
            doubles[i] = -value if negative[i] else value
            singles[i] = np.float32(doubles[i])
            continue
        if -22 <= power <= 0:
            value /= powers[np.uint64(-power)]
        elif 0 < power <= 22:
            value *= powers[np.uint64(power)]
        elif whole != zero:
            unsettled = True
        single = np.float32(value)
        doubles[i], singles[i] = (-value, -single) if negative[i] else (value, single)
        unsure = unsettled | _is_unsure(value, power)
        lost = (single == np.inf) | ((single == 0) & (whole != zero))
        if unsure | lost:
            places[found], marks[found] = (
                i,
                np.uint8(unsettled) | np.uint8(unsure) << 1 | np.uint8(lost) << 2,
            )
            found += one
    return np.int64(found)


@kernel
def _narrow(doubles, exponent, unsettled, values, unsure):  # type: ignore[no-untyped-def]
    """Fill ``values`` (float32[n]) from correctly rounded doubles, and mark in ``unsure`` where the
    decimal must decide: where the double is open too.
    """
    for i in range(doubles.size):
        values[i] = np.float32(doubles[i])
        unsure[i] = unsettled[i] | _is_unsure(abs(doubles[i]), exponent[i])


@merged_kernel
def _is_unsure(magnitude, power):  # type: ignore[no-untyped-def]
    """Whether a double does not tell which float32 is nearest to the decimal.

    That is where it lies half-way between two (it may have been rounded there, unless it is an
    integer as it was written, and has no more than 53 bits), and below float32's normal range.
    """
    small = (magnitude < 2.0**-125) & (magnitude != 0.0)
    halfway = (np.float64(magnitude).view(np.uint64) & np.uint64(0x1FFFFFFF)) == np.uint64(
        0x10000000
    )
    exact = (power == 0) & (magnitude <= 2.0**53)
    return small | (halfway & (not exact))
