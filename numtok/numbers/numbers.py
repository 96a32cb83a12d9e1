"""Numbers as exact decimals in a structure of arrays, until someone asks for a float.

``Numbers`` holds n numbers; the value of each is ``±digits × 10**exponent``, with digits as written (leading and trailing zeros kept), so any
length is exact. ``to_float64`` and ``to_float32`` round once, from the decimal, to nearest even (IEEE 754); ``to_decimal`` and ``format`` lose
nothing. ``Numbers.parse`` is the inverse of ``format``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.arrays.text_rows import TextRows
from numtok.errors import InputError
from numtok.numbers.grammar import Grammar
from numtok.numbers.rules import MAX_EXPONENT_DIGITS
from numtok.numbers.scanner import Columns, scan_columns

# Clinger's fast path: w * 10**e is correctly rounded when w < 2**53 and |e| <= 22, as both are exact doubles.
_POWERS_OF_TEN = np.array([float(10**power) for power in range(23)])
_FEW = 64  # numbers left out in `select`, up to which copying whole stretches is faster
_PLAIN_INTEGER_DIGITS = 21  # above this, and only if zeros would have to be filled in, `format` writes an exponent
_PLAIN_LEADING_ZEROS = 6  # likewise below 1e-7
_LARGEST_EXPONENT = 10**MAX_EXPONENT_DIGITS - 1  # what `format` writes, `scan` reads


@dataclass(frozen=True)
class Number:
    """One number in one text.

    Attributes:
        text: its surface, as written.
        start, stop: half-open place in the text, in characters.
        value: its exact value.
    """

    text: str
    start: int
    stop: int
    value: Decimal


@dataclass(frozen=True, eq=False)
class Numbers:
    """``n`` exact decimals and their places, ordered by document and place.

    Attributes:
        document: int32[n], the row each number was found in.
        start, stop: int64[n], half-open UTF-8 byte offsets within that row.
        negative: bool[n]; minus zero is a negative zero.
        digits: uint8[total], the digits of all numbers, most significant first.
        digit_offsets: int64[n + 1]; number ``i`` has ``digits[digit_offsets[i]:digit_offsets[i + 1]]``, at least one.
        exponent: int64[n]; value = ±digits × 10**exponent.
        rows: the text they were found in.
    """

    document: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    negative: npt.NDArray[np.bool_]
    digits: npt.NDArray[np.uint8]
    digit_offsets: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int64]
    rows: TextRows

    def __len__(self) -> int:
        return len(self.document)

    @classmethod
    def parse(cls, literals: Any) -> Numbers:
        """Read texts that are one number each, such as the output of :meth:`format`; row i gives number i.

        Args:
            literals: a sequence of ``str``, ``int``, ``float`` or ``Decimal``, or an Arrow string array.

        Raises:
            InputError: if a row is not exactly one finite number.
        """
        if isinstance(literals, Iterable) and not isinstance(literals, str | pa.Array | pa.ChunkedArray):
            # Decimal, as str(int) refuses more than 4300 digits.
            literals = [str(Decimal(literal) if type(literal) is int else literal) for literal in literals]
        rows = TextRows.of(literals)
        numbers = cls.of_columns(scan_columns(rows, Grammar()), rows)
        whole = len(numbers) == len(rows) and bool(np.all(numbers.document == np.arange(len(rows)))) and bool(np.all(numbers.start == 0))
        if not whole or not np.array_equal(numbers.stop, np.diff(rows.offsets)):
            raise cls._not_a_number(rows, numbers)
        return numbers

    @classmethod
    def of_columns(cls, found: Columns, rows: TextRows) -> Numbers:
        """What the scanner found in ``rows``."""
        return cls(found.document, found.start, found.stop, found.negative, found.digits, found.digit_ends, found.exponent, rows)

    @classmethod
    def from_digits(
        cls,
        negative: npt.NDArray[np.bool_],
        digits: npt.NDArray[np.uint8],
        digit_offsets: npt.NDArray[np.int64],
        exponent: npt.NDArray[np.int64],
    ) -> Numbers:
        """Numbers given by their digits, as in the attributes of the same names; row i of their text is :meth:`format` of number i.

        Raises:
            InputError: for an exponent that the grammar cannot read: above 10**17 - 1, or as far below -(10**17 - 1) as no fraction of the digits is.
        """
        count = len(negative)
        if (beyond := np.flatnonzero((exponent > _LARGEST_EXPONENT) | (exponent < -_LARGEST_EXPONENT - np.diff(digit_offsets)))).size:
            raise InputError(f"number {beyond[0]}: its exponent {exponent[beyond[0]]} has more than {MAX_EXPONENT_DIGITS} digits")
        nowhere = np.zeros(count, np.int64)
        bare = cls(np.arange(count, dtype=np.int32), nowhere, nowhere, negative, digits, digit_offsets, exponent, TextRows.of([]))
        rows = TextRows.of(bare.format())
        return dataclasses.replace(bare, stop=np.diff(rows.offsets), rows=rows)

    @staticmethod
    def _not_a_number(rows: TextRows, numbers: Numbers) -> InputError:
        whole = np.zeros(len(rows), np.bool_)
        whole[numbers.document[(numbers.start == 0) & (numbers.stop == np.diff(rows.offsets)[numbers.document])]] = True
        row = int(np.flatnonzero(~whole)[0])
        return InputError(f"row {row}: {str(rows.array[row].as_py())[:60]!r} is not one finite decimal number")

    def select(self, which: npt.NDArray[Any]) -> Numbers:
        """The numbers at the given indices, or where the bool[n] mask is True."""
        if which.dtype == np.bool_ and len(which) - np.count_nonzero(which) <= _FEW:
            return self._without(np.flatnonzero(~which))
        indices = np.flatnonzero(which) if which.dtype == np.bool_ else which.astype(np.int64, copy=False)
        lengths = memory.empty(len(indices), np.int64)
        _digit_counts(self.digit_offsets, indices, lengths)
        offsets = memory.offsets_of(lengths)
        digits = memory.empty(int(offsets[-1]), np.uint8)
        _gather(self.digits, _take(self.digit_offsets[:-1], indices), offsets, digits)
        kept: dict[str, Any] = {name: _take(getattr(self, name), indices) for name in ("document", "start", "stop", "negative", "exponent")}
        chosen = dataclasses.replace(self, digits=digits, digit_offsets=offsets, **kept)
        for name in ("_float64", "_float32"):  # carry over what is known already
            if name in self.__dict__:
                values = _take(self.__dict__[name], indices)
                values.flags.writeable = False
                chosen.__dict__[name] = values
        return chosen

    def without_sign(self) -> Numbers:
        """The magnitudes, with each sign left to the text around: ``start`` is behind it, and ``negative`` is False.

        A sign is ``-``, ``+`` or U+2212; the parentheses of ``(1,234)`` in accounts stay in the text too.
        """
        first = self.rows.text[self.rows.offsets[self.document] + self.start]
        parenthesis = first == 0x28
        width = np.where((first == 0x2D) | (first == 0x2B) | parenthesis, 1, np.where(first == 0xE2, 3, 0))
        unsigned = np.zeros(len(self), np.bool_)
        return dataclasses.replace(self, start=self.start + width, stop=self.stop - parenthesis, negative=unsigned)

    def _without(self, few: npt.NDArray[np.int64]) -> Numbers:
        """All but a few: what lies between them is copied in one go."""

        def cut(values: npt.NDArray[Any], starts: npt.NDArray[np.int64], stops: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
            kept = memory.empty(len(values) - int((stops - starts).sum()), values.dtype)
            edges = zip([0, *stops.tolist()], [*starts.tolist(), len(values)], strict=True)
            return np.concatenate([values[a:b] for a, b in edges], out=kept)

        offsets, at = memory.empty(len(self) - len(few) + 1, np.int64), 0
        for first, last in zip([0, *(few + 1).tolist()], [*few.tolist(), len(self)], strict=True):
            removed = int(self.digit_offsets[first]) - (int(offsets[at]) if at else 0)
            np.subtract(self.digit_offsets[first : last + 1], removed, out=offsets[at : at + last - first + 1])
            at += last - first
        digits = cut(self.digits, self.digit_offsets[few], self.digit_offsets[few + 1])
        kept: dict[str, Any] = {
            name: cut(getattr(self, name), few, few + 1) for name in ("document", "start", "stop", "negative", "exponent")
        }
        chosen = dataclasses.replace(self, digits=digits, digit_offsets=offsets, **kept)
        for name in ("_float64", "_float32"):  # carry over what is known already
            if name in self.__dict__:
                chosen.__dict__[name] = cut(self.__dict__[name], few, few + 1)
                chosen.__dict__[name].flags.writeable = False
        return chosen

    def is_zero(self) -> npt.NDArray[np.bool_]:
        """bool[n]: every digit is 0."""
        zero = memory.empty(len(self), np.bool_)
        _is_zero(self.digits, self.digit_offsets, zero)
        return zero

    def to_float64(self) -> npt.NDArray[np.float64]:
        """float64[n], read-only, correctly rounded from the decimal; infinite beyond the range."""
        return self._float64

    def to_float32(self) -> npt.NDArray[np.float32]:
        """float32[n], read-only, correctly rounded from the decimal in one step (not through float64); infinite beyond the range."""
        return self._float32

    @functools.cached_property
    def _fast(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """(values, which of them are not settled yet) of the fast path to float64."""
        values, hard = memory.empty(len(self), np.float64), memory.full(len(self), False, np.bool_)
        _to_float64(self.digits, self.digit_offsets, self.exponent, self.negative, _POWERS_OF_TEN, values, hard)
        return values, hard

    @functools.cached_property
    def _float64(self) -> npt.NDArray[np.float64]:
        values, hard = self._fast
        self._round_hard(values, hard)  # in place: _float32 does not look at the doubles that were hard
        values.flags.writeable = False
        return values

    @functools.cached_property
    def _float32(self) -> npt.NDArray[np.float32]:
        doubles, hard = self._fast
        values, unsure = memory.empty(len(self), np.float32), memory.empty(len(self), np.bool_)
        with np.errstate(over="ignore", under="ignore"):
            _narrow(doubles, doubles.view(np.uint64), hard, values, unsure)
        self._round_hard(values, unsure)
        values.flags.writeable = False
        return values

    def _round_hard(self, values: npt.NDArray[Any], hard: npt.NDArray[np.bool_]) -> None:
        """Fill in, by Arrow's correctly rounding parser, the values that the fast path does not settle."""
        if hard.any():
            literals = self.select(hard).format()
            values[hard] = pc.cast(literals, pa.from_numpy_dtype(values.dtype)).to_numpy(zero_copy_only=False)

    def to_decimal(self) -> list[Decimal]:
        """The exact values as ``decimal.Decimal``, whatever the precision of the current context."""
        text = (self.digits + 48).tobytes().decode("ascii")
        ends = self.digit_offsets.tolist()
        signs = ["-" if minus else "" for minus in self.negative.tolist()]
        return [
            Decimal(f"{sign}{text[first:last]}E{power}")
            for sign, first, last, power in zip(signs, ends[:-1], ends[1:], self.exponent.tolist(), strict=True)
        ]

    def format(self) -> pa.LargeStringArray:
        """Canonical text: ASCII digits, no grouping, ``-`` if negative, never ``+``; ``0.5``, not ``.5``; trailing zeros as held.

        Plain notation, unless zeros would have to be filled in up to more than 21 integer digits or more than 6 places after the point: then
        ``d.ddde±x``. An exponent has at most 17 digits, as the grammar reads no more; the point then stands elsewhere: ``12e+99999999999999999``.
        """
        lengths = memory.empty(len(self), np.int64)
        _format_lengths(self.digits, self.digit_offsets, self.exponent, self.negative, lengths)
        offsets = memory.offsets_of(lengths)
        out = memory.empty(offsets[-1], np.uint8)
        _format(self.digits, self.digit_offsets, self.exponent, self.negative, offsets, out)
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(out))

    def text(self) -> pa.LargeStringArray:
        """The surfaces, as written."""
        first = self.rows.offsets[self.document] + self.start
        lengths = self.stop - self.start
        offsets = memory.offsets_of(lengths)
        out = memory.empty(offsets[-1], np.uint8)
        _gather(self.rows.text, first, offsets, out)
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(out))

    def per_document(self) -> npt.NDArray[np.int64]:
        """int64[documents + 1], read-only: offsets of each document's numbers."""
        return self._per_document

    @functools.cached_property
    def _per_document(self) -> npt.NDArray[np.int64]:
        offsets = np.searchsorted(self.document, np.arange(len(self.rows) + 1, dtype=np.int32)).astype(np.int64)
        offsets.flags.writeable = False
        return offsets


def _take(values: npt.NDArray[Any], indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    return np.take(values, indices, out=memory.empty(len(indices), values.dtype), mode="wrap")


@kernel
def _digit_counts(offsets, indices, counts):  # type: ignore[no-untyped-def]
    for i in range(indices.size):
        first = indices[i] if indices[i] >= 0 else indices[i] + offsets.size - 1
        counts[i] = offsets[first + 1] - offsets[first]


@kernel
def _is_zero(digits, offsets, zero):  # type: ignore[no-untyped-def]
    for i in range(zero.size):
        zero[i] = True
        for k in range(offsets[i], offsets[i + 1]):
            if digits[k] != 0:
                zero[i] = False
                break
    return zero


@kernel
def _to_float64(digits, offsets, exponent, negative, powers, values, hard):  # type: ignore[no-untyped-def]
    """Fill ``values`` (float64[n]), and mark in ``hard`` (bool[n]) which of them are not settled."""
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
                    hard[i] = True
                    break
        power = exponent[i]
        value = np.float64(whole)
        if -22 <= power <= 0:
            value /= powers[np.uint64(-power)]
        elif 0 < power <= 22:
            value *= powers[np.uint64(power)]
        elif whole != zero:
            hard[i] = True
        values[i] = -value if negative[i] else value


@kernel
def _narrow(doubles, bits, hard, values, unsure):  # type: ignore[no-untyped-def]
    """Fill ``values`` (float32[n]) from correctly rounded doubles, and mark in ``unsure`` where the decimal must decide.

    That is where the double is not settled, where it lies half-way between two float32 (it may have been rounded there), and below float32's
    normal range.
    """
    for i in range(doubles.size):
        values[i] = np.float32(doubles[i])
        small = abs(doubles[i]) < 2.0**-125 and doubles[i] != 0.0
        unsure[i] = hard[i] or small or (bits[i] & np.uint64(0x1FFFFFFF)) == np.uint64(0x10000000)


@kernel
def _layout(digits, first, last, exponent):  # type: ignore[no-untyped-def]
    """(first significant digit, count, digits before the point, exponent) for canonical notation; zero keeps one digit and its places.

    The digits before the point are those that are written, and may be none or fewer; in plain notation the exponent is 0.
    """
    while first < last - 1 and digits[first] == 0:
        first += 1
    count = last - first
    point = count + exponent  # the decimal point stands after this many digits
    zero = digits[first] == 0
    plain = exponent <= 0 or zero or point <= _PLAIN_INTEGER_DIGITS
    if point < -_PLAIN_LEADING_ZEROS + 1:
        plain = False
    if zero and exponent > 0:  # 0e5 is 0
        point = 1
    if plain:
        return first, count, point, np.int64(0)
    power = min(max(point - 1, -_LARGEST_EXPONENT), _LARGEST_EXPONENT)
    return first, count, point - power, power


@kernel
def _exponent_length(value):  # type: ignore[no-untyped-def]
    length = 2  # e and sign
    value = abs(value)
    while True:
        length += 1
        value //= 10
        if value == 0:
            return length


@kernel
def _format_lengths(digits, offsets, exponent, negative, lengths):  # type: ignore[no-untyped-def]
    for i in range(exponent.size):
        _, count, point, power = _layout(digits, offsets[i], offsets[i + 1], exponent[i])
        if point <= 0:
            length = 2 - point + count  # 0.00ddd
        elif point >= count:
            length = point
        else:
            length = count + 1
        lengths[i] = length + (_exponent_length(power) if power != 0 else 0) + (1 if negative[i] else 0)


@kernel
def _format(digits, offsets, exponent, negative, out_offsets, out):  # type: ignore[no-untyped-def]
    for i in range(exponent.size):
        at = out_offsets[i]
        if negative[i]:
            out[at] = 0x2D
            at += 1
        first, count, shown, power = _layout(digits, offsets[i], offsets[i + 1], exponent[i])
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
            out[at] = digits[first + k] + 0x30
            at += 1
        for _ in range(shown - count):
            out[at] = 0x30
            at += 1
        if power != 0:
            out[at], out[at + 1] = 0x65, 0x2D if power < 0 else 0x2B
            value = abs(power)
            at = out_offsets[i + 1] - 1
            while True:
                out[at] = 0x30 + value % 10
                value //= 10
                at -= 1
                if value == 0:
                    break


@kernel
def _gather(text, first, offsets, out):  # type: ignore[no-untyped-def]
    for i in range(first.size):
        base = first[i] - offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            out[k] = text[base + k]
