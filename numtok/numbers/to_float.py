"""Exact decimals to floats, each rounded once, from the decimal, to nearest even (IEEE 754).

In: :class:`~numtok.numbers.decimals.Decimals`. Out: :class:`Floats`. Clinger's fast path
settles nearly all, up to 15 digits; that of Eisel and Lemire (D. Lemire, "Number parsing at a
gigabyte per second", Software: Practice and Experience 51 (2021), section 5 and algorithm 1) most
of the others; Arrow's correctly rounding parser reads the rest from their text.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.bitmarks import EIGHT, ONE, ZERO, eight_bytes
from numtok.arrays.kernels import inlined_kernel, inner_kernel, kernel
from numtok.numbers.decimals import Decimals, Runs, runs_of, take
from numtok.numbers.to_text import to_text

# Clinger's fast path: w * 10**e is correctly rounded when w < 2**53 and |e| <= 22, as both are
# exact doubles.
_POWERS_OF_TEN = np.array([float(10**power) for power in range(23)])
LARGEST_POWER = 128  # of ten, up or down, that Eisel's and Lemire's takes
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_UNKNOWN = np.uint64(0xFFFFFFFFFFFFFFFF)  # bits of no finite double
_TEN, _MOST = np.uint64(10), np.uint64((2**64 - 10) // 10)  # ten times it, and a digit: 64 bits


@functools.cache
def powers_of_five() -> npt.NDArray[np.uint64]:
    """Return uint64[257, 2]: 5**q for q from -128 to 128 as the first 128 bits of its binary
    digits, high and low; rounded up where 5**-q has at most 64 bits.
    """
    table = np.empty((2 * LARGEST_POWER + 1, 2), np.uint64)
    for q in range(-LARGEST_POWER, LARGEST_POWER + 1):
        power = 5 ** abs(q)
        size = power.bit_length()
        if q >= 0:
            bits = power << 128 >> size
        elif q >= -27:
            bits = (1 << (size + 127)) // power + 1
        else:
            bits = ((1 << (2 * size + 128)) // power + 1) >> (size + 1)
        table[q + LARGEST_POWER] = bits >> 64, bits & (2**64 - 1)
    return table


class Floats(NamedTuple):
    """float64 and float32 values of n numbers, read-only. Each is rounded once, directly from the
    decimal digits.
    """

    doubles: npt.NDArray[np.float64]
    singles: npt.NDArray[np.float32]
    # bool[n], whether float32 holds it: not infinite, nor rounded to zero without being zero
    held: npt.NDArray[np.bool_]

    def take(self, runs: Runs, in_place: bool = False) -> Floats:
        """Return the floats of the runs, as :func:`~numtok.numbers.decimals.take` does for one
        array.
        """
        return Floats(*(take(one, runs, in_place) for one in self)).read_only()

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
    left = left[: _to_floats(decimals, _POWERS_OF_TEN, powers_of_five(), floats, left)]
    if len(left):
        others = decimals.take(runs_of(left, count))
        texts = to_text(others)
        floats.doubles[left] = memory.from_arrow(texts.cast(pa.float64()))
        floats.singles[left] = singles = memory.from_arrow(texts.cast(pa.float32()))
        floats.held[left] = np.isfinite(singles) & ((singles != 0) | others.is_zero())
    return floats.read_only()


@kernel
def _to_floats(decimals, powers, fives, out, left):  # type: ignore[no-untyped-def]
    """Fill in what can be told; the count of those in ``left`` of which something cannot."""
    digits, offsets, exponent = decimals.digits, decimals.digit_offsets, decimals.exponent
    negative, (doubles, singles, held) = decimals.negative, out
    found = ZERO
    for i in range(np.uint64(exponent.size)):
        whole, exact = _whole(digits, np.uint64(offsets[i]), np.uint64(offsets[i + ONE]))
        power = exponent[i] if whole != ZERO else np.int64(0)
        value = np.float64(whole)
        if exact and power == 0 and whole <= ONE << np.uint64(24):
            # Most numbers are such integers, which both hold.
            doubles[i] = -value if negative[i] else value
            singles[i], held[i] = np.float32(doubles[i]), True
            continue
        known = exact and -22 <= power <= 22
        if not known:
            nearest = _eisel_lemire(digits, offsets[i], offsets[i + 1], power, fives)
            known, value = nearest != _UNKNOWN, np.uint64(nearest).view(np.float64)
        elif power < 0:
            value /= powers[np.uint64(-power)]
        else:
            value *= powers[np.uint64(power)]
        doubles[i] = -value if negative[i] else value
        single = np.float32(doubles[i])
        singles[i] = single
        held[i] = np.isfinite(single) & ((single != 0) | (whole == ZERO))
        if not known or _is_unsure(value, power):
            left[found] = i
            found += ONE
    return np.int64(found)


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
        return whole >> _HALF, True
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


@inner_kernel
def _eisel_lemire(digits, first, last, power, fives):  # type: ignore[no-untyped-def]
    """Return the bits of the double nearest to the digits times that power of ten, or _UNKNOWN.

    Of more than 19 digits the first ones are taken, and the next larger number: if both have the
    same nearest double, so has what lies between (section 11).
    """
    whole, dropped, rest = ZERO, 0, False
    for k in range(first, last):
        if dropped or whole > _MOST:
            dropped += 1
            rest = rest or digits[k] != 0
        else:
            whole = whole * _TEN + np.uint64(digits[k])
    if abs(power) > LARGEST_POWER or abs(power + dropped) > LARGEST_POWER:
        return _UNKNOWN
    nearest = _nearest(whole, power + dropped, fives, 1 if rest else 0)
    if rest and nearest != _nearest(whole + ONE, power + dropped, fives, -1):
        return _UNKNOWN  # it lies between the two, and is neither
    return nearest


@inner_kernel
def _nearest(whole, power, fives, beside):  # type: ignore[no-untyped-def]
    """Return the bits of the double nearest to ``whole``, which is not 0, times that power of ten;
    _UNKNOWN if this does not tell, or if it is infinite or subnormal.

    ``beside``: 1 or -1 if what is meant is a little more, or less, which matters half-way between
    two doubles; 0 if it is this.
    """
    zeros = _leading_zeros(whole)
    whole <<= zeros
    high, low = _multiply(whole, fives[power + LARGEST_POWER, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # what is cut off may change the rounding
        more, _ = _multiply(whole, fives[power + LARGEST_POWER, 1])
        low += more
        if low < more:
            high += ONE
    if low == _UNKNOWN and (power < -27 or power > 55):
        return _UNKNOWN
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    mantissa = high >> shift  # 54 bits: one more than are kept
    # 217706 / 65536 is a little less than log2(10).
    binary = ((power * 217706) >> 16) + 63 + np.int64(top) - np.int64(zeros) + 1023
    if binary <= 0 or binary >= 0x7FE:
        return _UNKNOWN
    halfway = low <= ONE and -4 <= power <= 23 and mantissa & ONE and mantissa << shift == high
    if halfway and (beside < 0 or (beside == 0 and mantissa & np.uint64(3) == ONE)):
        mantissa &= ~ONE  # down, or to even
    mantissa = (mantissa + (mantissa & ONE)) >> ONE
    if mantissa >> np.uint64(53) != ZERO:
        mantissa >>= ONE
        binary += 1
    return np.uint64(binary) << np.uint64(52) | (mantissa & np.uint64((1 << 52) - 1))


@inlined_kernel
def _multiply(a, b):  # type: ignore[no-untyped-def]
    """Return (high, low) 64 bits of the product of two of 64 bits."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    low, high, first, second = a_low * b_low, a_high * b_high, a_high * b_low, a_low * b_high
    middle = (low >> _HALF) + (first & _LOW) + (second & _LOW)
    carried = (first >> _HALF) + (second >> _HALF) + (middle >> _HALF)
    return high + carried, (middle << _HALF) | (low & _LOW)


@inlined_kernel
def _leading_zeros(word):  # type: ignore[no-untyped-def]
    """Count the leading zero bits of a 64-bit word."""
    count, step = ZERO, _HALF
    while step != ZERO:
        if word >> (np.uint64(64) - step) == ZERO:
            word <<= step
            count += step
        step >>= ONE
    return count
