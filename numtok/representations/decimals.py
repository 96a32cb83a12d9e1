"""Decimal digits in arrays: the kernels that several representations share.

In: the ``digits``, ``digit_offsets`` and ``exponent`` of n numbers. Out: digits in slots, one row
    of a fixed width per number, uint8[n * width], least significant first; or rounded to a few
    significant digits, int64[n]; and back.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import allocating_kernel
from numtok.numbers.numbers import Numbers

Ints = npt.NDArray[np.int64]
Digits = npt.NDArray[np.uint8]


def fit(numbers: Numbers, before: int, after: int) -> npt.NDArray[np.bool_]:
    """Return bool[n]: which numbers have at most so many digits before and after the point, without
    leading and trailing zeros.
    """
    out = memory.empty(len(numbers), np.bool_)
    _fit(numbers.digits, numbers.digit_offsets, numbers.exponent, before, after, out)
    return out


def in_slots(numbers: Numbers, before: int, after: int) -> npt.NDArray[np.uint8]:
    """Return uint8[n, before + after]: the digits, slot k that of 10**(k - after), of the nearest
    number that has as many.
    """
    out = memory.full(len(numbers) * (before + after), 0, np.uint8)
    _in_slots(numbers.digits, numbers.digit_offsets, numbers.exponent, before, after, out)
    return out.reshape(-1, before + after)


def rounded(numbers: Numbers, count: int, down: bool = False) -> tuple[Ints, Ints]:
    """Return (``count`` significant digits, or 0, rounded to nearest, halves to even, or cut off;
    the power of ten of the first), int64[n] each.
    """
    mantissa, decade = (memory.empty(len(numbers), np.int64) for _ in range(2))
    digits = numbers.digits, numbers.digit_offsets, numbers.exponent
    _round(*digits, count, down, mantissa, decade)
    return mantissa, decade


@allocating_kernel
def _fit(digits, offsets, exponent, before, after, out):  # type: ignore[no-untyped-def]
    """Fill ``out``, bool[n]: whether all nonzero digits are of 10**-after to 10**(before - 1)."""
    for i in range(exponent.size):
        # of the first digit: the power of ten
        place = exponent[i] + offsets[i + 1] - 1 - offsets[i]
        fits = True
        if place >= before or exponent[i] < -after:
            for k in range(offsets[i], offsets[i + 1]):
                if digits[k] != 0 and (place >= before or place < -after):
                    fits = False
                    break
                place -= 1
        out[i] = fits


@allocating_kernel
def _in_slots(digits, offsets, exponent, before, after, out):  # type: ignore[no-untyped-def]
    """Write digits into ``out``, which holds zeros."""
    width = before + after
    for i in range(exponent.size):
        row = i * width
        slot = exponent[i] + offsets[i + 1] - 1 - offsets[i] + after
        beyond = False
        for k in range(offsets[i], offsets[i + 1]):
            if slot >= width:
                beyond |= digits[k] != 0
            elif slot >= 0:
                out[row + slot] = digits[k]
            elif slot == -1 and _rounds_up(digits, k, offsets[i + 1], out[row] & 1):
                beyond |= _increment(out, row, row + width)
                break
            else:
                break
            slot -= 1
        if beyond:
            for k in range(row, row + width):
                out[k] = 9


@allocating_kernel
def _rounds_up(digits, first, last, odd):  # type: ignore[no-untyped-def]
    """Whether dropping digits [first, last) rounds up: to nearest, halves to even."""
    if digits[first] != 5 or odd:
        return digits[first] >= 5
    for k in range(first + 1, last):
        if digits[k] != 0:
            return True
    return False


@allocating_kernel
def _increment(out, first, last):  # type: ignore[no-untyped-def]
    """Add one to digits, least significant first; True if that gives one digit more."""
    for k in range(first, last):
        if out[k] < 9:
            out[k] += 1
            return False
        out[k] = 0
    return True


@allocating_kernel
def without_zeros(slots, width, after):  # type: ignore[no-untyped-def]
    """Return (digits, offsets, exponent) of each row of slots, without leading zeros, and without
    trailing ones after the point.
    """
    count = slots.size // width
    digits = np.empty(slots.size, np.uint8)
    offsets, exponent = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    filled = 0
    for i in range(count):
        row = i * width
        high, low = width - 1, 0
        while high > 0 and slots[row + high] == 0:
            high -= 1
        while low < after and low < high and slots[row + low] == 0:
            low += 1
        if slots[row + high] == 0:  # zero
            high = low
        for k in range(high, low - 1, -1):
            digits[filled] = slots[row + k]
            filled += 1
        exponent[i] = low - after if slots[row + high] != 0 else 0
        offsets[i + 1] = filled
    return digits[:filled].copy(), offsets, exponent


def divide(digits: Digits, base: int) -> Digits:
    """Divide each row of digits X = base * J + r, uint8[n, width]: return r, then the digits of J,
    uint8[n, width + 1].
    """
    out = np.empty((len(digits), digits.shape[1] + 1), np.uint8)
    rest = np.zeros(len(digits), np.uint8)
    for k in reversed(range(digits.shape[1])):
        out[:, k + 1], rest = np.divmod(rest * 10 + digits[:, k], base)
    out[:, 0] = rest
    return out


def multiply(slots: Digits, base: int) -> Digits:
    """Return base * J + r for each row of r, J: the inverse of :func:`divide`."""
    out, carry = np.empty_like(slots[:, 1:]), slots[:, 0]
    for k in range(out.shape[1]):
        carry, out[:, k] = np.divmod(carry + base * slots[:, k + 1], 10)
    return out


@allocating_kernel
def _round(digits, offsets, exponent, count, down, mantissa, decade):  # type: ignore[no-untyped-def]
    """Fill ``mantissa`` and ``decade``, what :func:`rounded` returns."""
    limit = np.int64(10) ** count
    for i in range(exponent.size):
        first, last = offsets[i], offsets[i + 1]
        while first < last and digits[first] == 0:
            first += 1
        whole = np.int64(0)
        for k in range(first, first + count):
            whole = whole * 10 + (digits[k] if k < last else 0)
        power = exponent[i] + last - 1 - first
        rest = first + count
        if not down and rest < last and digits[rest] >= 5:
            up = digits[rest] > 5 or whole % 2 == 1
            while not up and rest + 1 < last:
                rest += 1
                up = digits[rest] != 0
            if up:
                whole += 1
            if whole == limit:
                whole //= 10
                power += 1
        mantissa[i], decade[i] = whole, power


@allocating_kernel
def split(mantissa, exponent):  # type: ignore[no-untyped-def]
    """Return (digits, offsets, exponent) of mantissa * 10**exponent, without trailing zeros."""
    digits = np.empty(mantissa.size * 19, np.uint8)
    offsets, powers = np.zeros(mantissa.size + 1, np.int64), exponent.copy()
    filled = 0
    for i in range(mantissa.size):
        rest = mantissa[i]
        if rest == 0:
            powers[i] = 0
        while rest != 0 and rest % 10 == 0:
            rest //= 10
            powers[i] += 1
        count = 1
        while rest >= 10**count and count < 19:
            count += 1
        for k in range(filled + count - 1, filled - 1, -1):
            digits[k] = rest % 10
            rest //= 10
        filled += count
        offsets[i + 1] = filled
    return digits[:filled].copy(), offsets, powers
