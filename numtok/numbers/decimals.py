"""Exact decimals and their spans in arrays: what the scanner fills; and their conversions.

To text: canonical, ASCII digits, no grouping, ``-`` if negative, never ``+``
(:func:`to_text`, the inverse of ``Numbers.parse``), and that text in the marks of another grammar
(:func:`in_marks_of`).

To floats, each rounded once, from the decimal, to nearest even (IEEE 754): :func:`to_floats`.
Clinger's fast path (W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990)
gives nearly all of them, up to 15 digits; Arrow's correctly rounding parser reads the others from
their text.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.bitmarks import EIGHT, ONE, ZERO, eight_bytes
from numtok.arrays.kernels import inlined_kernel, inner_kernel, kernel
from numtok.numbers.grammar import MAX_EXPONENT_DIGITS, Grammar

Runs = npt.NDArray[np.int64]  # int64[r, 2]: where each begins and ends, half-open
LARGEST_EXPONENT = 10**MAX_EXPONENT_DIGITS - 1  # what is written here, `scan` reads
# An exponent is written only if more zeros than these would have to be filled in.
_INTEGER_DIGITS, _LEADING_ZEROS = 21, 6
MOST_ZEROS = 400  # that are filled in for a grammar that reads no exponents; float64 needs 324
_SCIENTIFIC = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)[eE][-+]?\d{1,4}")
# Clinger's fast path: w * 10**e is correctly rounded when w < 2**53 and |e| <= 22, as both are
# exact doubles.
_POWERS_OF_TEN = np.array([float(10**power) for power in range(23)])
_TEN = np.uint64(10)


class Decimals(NamedTuple):
    """The arrays of :class:`numtok.Numbers`, as the compiled functions take them: the value of
    number ``i`` is ±``digits[digit_offsets[i]:digit_offsets[i + 1]]`` × 10**``exponent[i]``.
    """

    document: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    negative: npt.NDArray[np.bool_]
    digits: npt.NDArray[np.uint8]
    digit_offsets: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int64]

    def take(self, runs: Runs) -> Decimals:
        """Return the numbers of the runs, as :func:`take` takes them."""
        lengths = take(np.diff(self.digit_offsets), runs)
        return Decimals(
            take(self.document, runs),
            take(self.start, runs),
            take(self.stop, runs),
            take(self.negative, runs),
            take(self.digits, self.digit_offsets[runs]),
            memory.offsets_of(lengths),
            take(self.exponent, runs),
        )

    def is_zero(self) -> npt.NDArray[np.bool_]:
        """Return bool[n]: whether every digit is 0."""
        zero = memory.empty(len(self.exponent), np.bool_)
        _is_zero(self.digits, self.digit_offsets, zero)
        return zero


def runs_of(which: npt.NDArray[Any], count: int) -> Runs:
    """Return the runs of values at the indices, or where the mask is True, out of ``count``.

    Raises:
        IndexError: for an index that is out of range, or a mask of another length.
    """
    if which.dtype == np.bool_ and len(which) == count:
        padded = np.zeros(count + 2, np.bool_)
        padded[1:-1] = which
        return np.flatnonzero(padded[1:] != padded[:-1]).reshape(-1, 2)
    first = np.arange(count)[which]
    begins, ends = np.diff(first, prepend=-2) != 1, np.diff(first, append=-2) != 1
    return np.stack([first[begins], first[ends] + 1], 1)


def take(values: npt.NDArray[Any], runs: Runs) -> npt.NDArray[Any]:
    """Return ``values[begin:end]`` of all runs, one after the other."""
    out = memory.empty(int((runs[:, 1] - runs[:, 0]).sum()), values.dtype)
    _take(values, runs, out)
    return out


@kernel
def _take(values, runs, out):  # type: ignore[no-untyped-def]
    to = ZERO
    for run in range(runs.shape[0]):
        first, length = np.uint64(runs[run, 0]), np.uint64(runs[run, 1] - runs[run, 0])
        for k in range(length):
            out[to + k] = values[first + k]
        to += length


@kernel
def _is_zero(digits, offsets, zero):  # type: ignore[no-untyped-def]
    for i in range(zero.size):
        zero[i] = True
        for k in range(offsets[i], offsets[i + 1]):
            if digits[k] != 0:
                zero[i] = False
                break


@kernel
def leave_signs(text, offsets, document, start, stop):  # type: ignore[no-untyped-def]
    """Move each ``start`` after the sign; in ``(1)`` after the opening parenthesis, and ``stop``
    before the closing one.
    """
    for i in range(start.size):
        first = text[offsets[document[i]] + start[i]]
        if first == 0x2D or first == 0x2B:  # - +
            start[i] += 1
        elif first == 0xE2:  # of U+2212
            start[i] += 3
        elif first == 0x28:
            start[i] += 1
            stop[i] -= 1


def to_text(decimals: Decimals) -> pa.LargeStringArray:
    """Write numbers canonically: ``0.5``, not ``.5``; trailing zeros as held.

    Positional notation, unless zeros would have to be filled in up to more than 21 integer digits or
    more than 6 places after the point: then ``d.ddde±x``. An exponent has at most 17 digits, as the
    grammar reads no more; the point then stands elsewhere: ``12e+99999999999999999``.
    """
    count = len(decimals.exponent)
    lengths = memory.empty(count, np.int64)
    _lengths(decimals, lengths)
    offsets = memory.offsets_of(lengths)
    out = memory.empty(offsets[-1], np.uint8)
    _write(decimals, offsets, out)
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(out))


def marks_of(grammar: Grammar) -> dict[str, str]:
    """Return what the grammar writes for ``.`` and ``,`` of the default: its decimal mark, and, if
    commas do not group digits there, the first character that does.
    """
    grouping = grammar.grouping or ","
    return {".": grammar.decimal, ",": "," if "," in grouping else grouping[0]}


def in_marks_of(grammar: Grammar, texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Rewrite numbers in the default's marks as the grammar writes and reads them
    (:func:`marks_of`), 1.234,56 for 1,234.56; without an exponent, 0.0000005 for 5e-7, if the
    grammar reads none.
    """
    if grammar.pattern is None and not grammar.exponent:
        texts = _without_exponents(texts)
    marks = marks_of(grammar)
    if all(mark == other for mark, other in marks.items()):
        return texts
    import pyarrow.compute as pc

    meanwhile = "\0"
    for mark, other in ((".", meanwhile), (",", marks[","]), (meanwhile, marks["."])):
        texts = pc.replace_substring(texts, mark, other)
    return texts


def _without_exponents(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return the texts with zeros in place of exponents, where they are numbers in scientific
    notation of at most ``MOST_ZEROS`` powers of ten; a model may have written anything.
    """
    written = texts.to_pylist()
    for k, text in enumerate(written):
        if text and _SCIENTIFIC.fullmatch(text):
            value = Decimal(text.replace(",", ""))
            written[k] = f"{value:f}" if abs(value.adjusted()) <= MOST_ZEROS else text
    return pa.array(written, texts.type)


@inner_kernel
def _notation(decimals, i):  # type: ignore[no-untyped-def]
    """Return (first significant digit, count, digits before the point, exponent) for canonical
    notation; zero keeps one digit and its places.

    The digits before the point are those that are written; 0 or less where zeros stand between the
    point and the first digit. In positional notation the exponent is 0.
    """
    digits, exponent = decimals.digits, decimals.exponent[i]
    first, last = decimals.digit_offsets[i], decimals.digit_offsets[i + 1]
    while first < last - 1 and digits[first] == 0:
        first += 1
    count = last - first
    point = count + exponent  # the decimal point stands after this many digits
    zero = digits[first] == 0
    positional = exponent <= 0 or zero or point <= _INTEGER_DIGITS
    if point < -_LEADING_ZEROS + 1:
        positional = False
    if zero and exponent > 0:  # 0e5 is 0
        point = 1
    if positional:
        return first, count, point, np.int64(0)
    power = min(max(point - 1, -LARGEST_EXPONENT), LARGEST_EXPONENT)
    return first, count, point - power, power


@inner_kernel
def _exponent_length(value):  # type: ignore[no-untyped-def]
    length = 2  # e and sign
    value = abs(value)
    while True:
        length += 1
        value //= 10
        if value == 0:
            return length


@kernel
def _lengths(decimals, lengths):  # type: ignore[no-untyped-def]
    for i in range(lengths.size):
        _, count, point, power = _notation(decimals, i)
        if point <= 0:
            length = 2 - point + count  # 0.00ddd
        elif point >= count:
            length = point
        else:
            length = count + 1
        lengths[i] = (
            length
            + (_exponent_length(power) if power != 0 else 0)
            + (1 if decimals.negative[i] else 0)
        )


@kernel
def _write(decimals, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(decimals.exponent.size):
        at = offsets[i]
        if decimals.negative[i]:
            out[at] = 0x2D
            at += 1
        first, count, shown, power = _notation(decimals, i)
        if shown <= 0:
            out[at], out[at + 1] = 0x30, 0x2E
            at += 2
            for _ in range(-shown):
                out[at] = 0x30
                at += 1
        for k in range(count):
            if k == shown and k > 0:
                out[at] = 0x2E
                at += 1
            out[at] = decimals.digits[first + k] + 0x30
            at += 1
        for _ in range(shown - count):
            out[at] = 0x30
            at += 1
        if power != 0:
            out[at], out[at + 1] = 0x65, 0x2D if power < 0 else 0x2B
            value = abs(power)
            at = offsets[i + 1] - 1
            while True:
                out[at] = 0x30 + value % 10
                value //= 10
                at -= 1
                if value == 0:
                    break


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
