"""Exact decimals to canonical text: ASCII digits, no grouping, ``-`` if negative, never ``+``; and
that text in the marks of another grammar.

In: :class:`~numtok.numbers.decimals.Decimals`. Out: strings. The inverse is ``Numbers.parse``.
"""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import inner_kernel, kernel
from numtok.numbers.decimals import Decimals
from numtok.numbers.grammar import MAX_EXPONENT_DIGITS, Grammar

LARGEST_EXPONENT = 10**MAX_EXPONENT_DIGITS - 1  # what is written here, `scan` reads
# An exponent is written only if more zeros than these would have to be filled in.
_INTEGER_DIGITS, _LEADING_ZEROS = 21, 6
MOST_ZEROS = 400  # that are filled in for a grammar that reads no exponents; float64 needs 324
_SCIENTIFIC = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)[eE][-+]?\d{1,4}")


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
