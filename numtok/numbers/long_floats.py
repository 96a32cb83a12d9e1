"""Decimals to float64 by the algorithm of Eisel and Lemire: one or two multiplications of 64 bits.

Source: D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51
    (2021), section 5 and algorithm 1. In: decimals that the fast path for short ones leaves. Out:
    their doubles, rounded once to nearest even; what the algorithm cannot tell, or what is infinite
    or subnormal, is left. Of more than 19 digits the first ones are taken, and the next larger
    number: if both have the same nearest double, so has what lies between (section 11).
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from numtok.arrays.kernels import inline_kernel, inner_kernel, kernel
from numtok.numbers.decimals import Decimals

LARGEST_POWER = 128  # of ten, up or down; what lies beyond is left
_ZERO, _ONE, _HALF, _LOW = np.uint64(0), np.uint64(1), np.uint64(32), np.uint64(0xFFFFFFFF)
_TEN, _FULL = np.uint64(10), np.uint64(0xFFFFFFFFFFFFFFFF)
_MOST = np.uint64((2**64 - 10) // 10)  # ten times it, and a digit, are still 64 bits


@functools.cache
def powers_of_five() -> npt.NDArray[np.uint64]:
    """uint64[257, 2]: 5**q for q from -128 to 128 as the first 128 bits of its binary digits, high
    and low; rounded up where 5**-q has at most 64 bits.
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


def settle_long(
    decimals: Decimals, values: npt.NDArray[np.float64], unsettled: npt.NDArray[np.bool_]
) -> None:
    """Fill in the values that can be told, and take their marks in ``unsettled`` away."""
    _settle(*decimals, powers_of_five(), values.view(np.uint64), unsettled)


@inline_kernel
def _multiply(a, b):  # type: ignore[no-untyped-def]
    """(high, low) 64 bits of the product of two of 64 bits."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    low, high, first, second = a_low * b_low, a_high * b_high, a_high * b_low, a_low * b_high
    middle = (low >> _HALF) + (first & _LOW) + (second & _LOW)
    return high + (first >> _HALF) + (second >> _HALF) + (middle >> _HALF), (middle << _HALF) | (
        low & _LOW
    )


@inline_kernel
def _leading_zeros(word):  # type: ignore[no-untyped-def]
    """How many of the 64 bits are zero before the first that is set."""
    count, step = _ZERO, _HALF
    while step != _ZERO:
        if word >> (np.uint64(64) - step) == _ZERO:
            word <<= step
            count += step
        step >>= _ONE
    return count


@kernel
def _settle(digits, offsets, exponent, negative, fives, bits, unsettled):  # type: ignore[no-untyped-def]
    """``bits``: the float64[n] that are filled in, as uint64[n]."""
    for i in range(unsettled.size):
        if not unsettled[i] or abs(exponent[i]) > LARGEST_POWER:
            continue
        whole, dropped, rest = (
            _ZERO,
            0,
            False,
        )  # the first digits, how many follow, and whether one of these is not zero
        for k in range(offsets[i], offsets[i + 1]):
            if dropped or whole > _MOST:
                dropped += 1
                rest = rest or digits[k] != 0
            else:
                whole = whole * _TEN + np.uint64(digits[k])
        power = exponent[i] + dropped
        if whole == _ZERO or abs(power) > LARGEST_POWER:
            continue
        nearest = _nearest(whole, power, fives, 1 if rest else 0)
        if nearest == _FULL or (
            rest and _nearest(whole + _ONE, power, fives, -1) != nearest
        ):  # it lies between the two, and is neither
            continue
        bits[i] = nearest | np.uint64(negative[i]) << np.uint64(63)
        unsettled[i] = False


@inner_kernel
def _nearest(whole, power, fives, beside):  # type: ignore[no-untyped-def]
    """The bits of the double nearest to ``whole`` times that power of ten; all of them set if this
    does not tell.

    ``beside``: 1 or -1 if what is meant is a little more, or less, which matters half-way between
    two doubles; 0 if it is this.
    """
    zeros = _leading_zeros(whole)
    whole <<= zeros
    high, low = _multiply(whole, fives[power + LARGEST_POWER, 0])
    if high & np.uint64(0x1FF) == np.uint64(
        0x1FF
    ):  # the bits that are cut off may change the rounding
        more, _ = _multiply(whole, fives[power + LARGEST_POWER, 1])
        low += more
        if low < more:
            high += _ONE
    if low == _FULL and (power < -27 or power > 55):
        return _FULL
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    mantissa = high >> shift  # 54 bits: one more than are kept
    binary = (
        ((power * 217706) >> 16) + 63 + np.int64(top) - np.int64(zeros) + 1023
    )  # 217706 / 65536 is a little less than log2(10)
    if binary <= 0 or binary >= 0x7FE:
        return _FULL
    halfway = low <= _ONE and -4 <= power <= 23 and mantissa & _ONE and mantissa << shift == high
    if halfway and (beside < 0 or (beside == 0 and mantissa & np.uint64(3) == _ONE)):
        mantissa &= ~_ONE  # down, or to even
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa >> np.uint64(53) != _ZERO:
        mantissa >>= _ONE
        binary += 1
    return np.uint64(binary) << np.uint64(52) | (mantissa & np.uint64((1 << 52) - 1))
