"""Exact decimals to floats, each rounded once, from the decimal, to nearest even (IEEE 754).

In: :class:`~numtok.numbers.decimals.Decimals`. Out: float64[n] or float32[n]. Clinger's fast path settles nearly all, up to 15 digits; that of Eisel and
Lemire (:mod:`numtok.numbers.long_floats`) most of those with up to 19; Arrow's correctly rounding parser reads the others from their text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.numbers.decimals import Decimals
from numtok.numbers.long_floats import settle_long
from numtok.numbers.to_text import to_text

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Clinger's fast path: w * 10**e is correctly rounded when w < 2**53 and |e| <= 22, as both are exact doubles.
_POWERS_OF_TEN = np.array([float(10**power) for power in range(23)])


def fast_float64(decimals: Decimals) -> tuple[Floats, Mask]:
    """(float64[n], bool[n]: which of them are not settled yet) by the fast paths."""
    count = len(decimals.exponent)
    values, unsettled = memory.empty(count, np.float64), memory.full(count, False, np.bool_)
    _to_float64(*decimals, _POWERS_OF_TEN, values, unsettled)
    if unsettled.any():
        settle_long(decimals, values, unsettled)
    return values, unsettled


def settled_float64(decimals: Decimals, fast: tuple[Floats, Mask]) -> Floats:
    """float64[n], read-only: :func:`fast_float64` with the rest filled in. In place: :func:`narrowed` does not look at doubles that were unsettled."""
    values, unsettled = fast
    _round(decimals, values, unsettled)
    values.flags.writeable = False
    return values


def narrowed(decimals: Decimals, fast: tuple[Floats, Mask]) -> npt.NDArray[np.float32]:
    """float32[n], read-only, rounded in one step, not through float64: what :func:`fast_float64` gave tells most of them."""
    doubles, unsettled = fast
    values, unsure = memory.empty(len(doubles), np.float32), memory.empty(len(doubles), np.bool_)
    with np.errstate(over="ignore", under="ignore"):
        _narrow(doubles, doubles.view(np.uint64), decimals.exponent, unsettled, values, unsure)
    _round(decimals, values, unsure)
    values.flags.writeable = False
    return values


def _round(decimals: Decimals, values: npt.NDArray[Any], unsettled: Mask) -> None:
    """Fill in the values that the fast path does not settle."""
    if unsettled.any():
        literals = to_text(decimals.take(np.flatnonzero(unsettled)))
        values[unsettled] = memory.from_arrow(literals.cast(pa.from_numpy_dtype(values.dtype)))


@kernel
def _to_float64(digits, offsets, exponent, negative, powers, values, unsettled):  # type: ignore[no-untyped-def]
    """Fill ``values`` (float64[n]), and mark in ``unsettled`` (bool[n]) which of them are not settled."""
    zero, one, eight, ten = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(10)
    safe = np.uint64(max(0, digits.size - 8))
    for i in range(np.uint64(exponent.size)):
        first, last = np.uint64(offsets[i]), np.uint64(offsets[i + one])
        count = last - first
        if count <= eight and first < safe:
            # Eight digits at once, whatever their count: those too many are shifted out, and zeros in front.
            word = np.uint64(digits[first])
            for k in range(one, eight):
                word |= np.uint64(digits[first + k]) << (eight * k)
            word <<= eight * (eight - count)
            word = word * ten + (word >> eight)  # bytes 0, 2, 4, 6: two digits each
            pairs, others = word & np.uint64(0x000000FF000000FF), (word >> np.uint64(16)) & np.uint64(0x000000FF000000FF)
            whole = (pairs * np.uint64(0x000F424000000064) + others * np.uint64(0x0000271000000001)) >> np.uint64(32)
        else:
            whole = zero
            for k in range(first, last):
                whole = whole * ten + np.uint64(digits[k])
                if whole > one << np.uint64(53):
                    unsettled[i] = True
                    break
        power = exponent[i]
        value = np.float64(whole)
        if -22 <= power <= 0:
            value /= powers[np.uint64(-power)]
        elif 0 < power <= 22:
            value *= powers[np.uint64(power)]
        elif whole != zero:
            unsettled[i] = True
        values[i] = -value if negative[i] else value


@kernel
def _narrow(doubles, bits, exponent, unsettled, values, unsure):  # type: ignore[no-untyped-def]
    """Fill ``values`` (float32[n]) from correctly rounded doubles, and mark in ``unsure`` where the decimal must decide.

    That is where the double is not settled, where it lies half-way between two float32 (it may have been rounded there, unless it is an integer
    as it was written, and has no more than 53 bits), and below float32's normal range.
    """
    for i in range(doubles.size):
        values[i] = np.float32(doubles[i])
        small = abs(doubles[i]) < 2.0**-125 and doubles[i] != 0.0
        halfway = (bits[i] & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)
        exact = exponent[i] == 0 and abs(doubles[i]) <= 2.0**53
        unsure[i] = unsettled[i] or small or (halfway and not exact)
