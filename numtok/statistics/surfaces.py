"""Count how numbers are written: their form, four-digit years, and numbers that stand side by side
as if another country's grammar had written one: ``12 345`` and ``12'345``, one to three digits
before exactly three; in running text also ``3,14``, and three and more that are grouped as
``12,34,567`` is. *Running text* has a space or a character that is not ASCII before them, and after
them neither the end of the line, a tab, a bracket nor a quote, as lists, tuples and rows of tables
have.

Also count the word or symbol right after each number, which is often its unit.
"""

from __future__ import annotations

import functools
import re
import string
import unicodedata
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.numbers.decimals import take
from numtok.numbers.grammar import ARABIC_POINT
from numtok.numbers.numbers import Numbers
from numtok.statistics.counters import FIRST_YEAR, LABELS, LAST_YEAR, Ints

FORMS, MARKS = list(LABELS["forms"]), list(LABELS["marks"])
_SIGNS = {"-": "minus", "+": "plus", "−": "minus U+2212", "(": "parentheses"}
_BETWEEN = {" ": 1, "\u00a0": 2, "\u2009": 2, "\u202f": 2, "'": 3, "’": 3}  # among "side_by_side"
_WIDEST = 3  # bytes of those
_ENDS = np.isin(np.arange(256), [*range(0x20), *b")]}\"'"])  # what ends running text
_LETTERS_AND_DIGITS = f"_{string.ascii_letters}{string.digits}".encode()
_IN_WORDS = np.isin(np.arange(256), [*_LETTERS_AND_DIGITS, *range(0x80, 0x100)])
_UNIT_BYTES, _BEFORE_UNIT = 16, 3  # of a word, and of what may stand before it
_WITHOUT_SPACES = (
    r"\x{e00}-\x{eff}\x{1000}-\x{109f}\x{1780}-\x{17ff}\x{3040}-\x{30ff}\x{3300}-\x{9fff}"
    r"\x{ac00}-\x{d7a3}\x{20000}-\x{10ffff}"
)
_SYMBOL = rf"%$¢-¥°\x{{2030}}-\x{{2034}}\x{{20a0}}-\x{{20cf}}\x{{2100}}-\x{{214f}}{_WITHOUT_SPACES}"
_UNIT_LETTERS = rf"[^\PL{_WITHOUT_SPACES}](?:[^\PL{_WITHOUT_SPACES}]|\pM)*"
# RE2, which runs without Python; a word with digits, as in 5 m2, ends before them
_UNIT = (
    rf"^[ \x{{a0}}\x{{2009}}\x{{202f}}]?(?:(?P<word>{_UNIT_LETTERS}(?:/{_UNIT_LETTERS})?[²³]?)"
    rf"|(?P<degrees>°[A-Za-z])(?:$|[\x00-@\[-`{{-\x7f]|[^\x00-\x7f\pL])|(?P<symbol>[{_SYMBOL}]))"
)
# What ends a word, so that of the text after a number few different beginnings are left
_ENDS_WORD = np.array(
    [byte < 0x80 and not (chr(byte).isalpha() or byte == ord("/")) for byte in range(256)]
)


class _Shape(NamedTuple):
    """Shape of a written number: indices into ``FORMS`` and ``MARKS``, the decade of a year or -1,
    how many digits stand before the point, at most 9, or -1 with an exponent, and whether it is
    nothing but these.
    """

    form: int
    marks: tuple[int, ...]
    decade: int
    digits: int
    is_plain: bool


def count_surfaces(numbers: Numbers) -> dict[str, Ints]:
    """Return the histograms of forms, marks and years, and of numbers that stand side by side."""
    surfaces = numbers.text().dictionary_encode()
    which = memory.from_arrow(surfaces.indices)
    shapes = [_shape(surface, numbers.decimal) for surface in surfaces.dictionary.to_pylist()]
    names = ("forms", "marks", "years", "side_by_side")
    forms, marks, years, side_by_side = (np.zeros(len(LABELS[name]), np.int64) for name in names)
    times = np.bincount(which, minlength=len(shapes)).tolist()
    for shape, count in zip(shapes, times, strict=True):
        forms[shape.form] += count
        for mark in shape.marks:
            marks[mark] += count
        if shape.decade >= 0:
            years[shape.decade] += count
    marks[MARKS.index("minus after a word")] += _count_minus_after_word(numbers)
    if len(numbers) > 1:
        digits = np.array([shape.digits for shape in shapes], np.int64)[which]
        plain = np.array([shape.is_plain for shape in shapes], np.bool_)[which]
        _count_pairs(numbers, digits, plain, side_by_side)
        _count_joined(numbers, digits, plain, side_by_side)
    return dict(zip(names, (forms, marks, years, side_by_side), strict=True))


@functools.lru_cache(maxsize=1 << 16)
def _shape(surface: str, decimal: str) -> _Shape:
    mantissa, *exponent = re.split("[eEdD]", surface, maxsplit=1)
    whole, _, fraction = mantissa.strip("-+−()").replace(ARABIC_POINT, decimal).partition(decimal)
    digits = [unicodedata.decimal(c) for c in whole if c.isdecimal()]
    form = 4 if exponent else 2 * bool(fraction) + (len(digits) < len(whole))
    marks = [_SIGNS[surface[0]]] if surface[0] in _SIGNS else []
    plain = form == 0 and not marks and surface.isascii()
    marks += ["leading zeros"] * (len(digits) > 1 and digits[0] == 0)
    marks += ["trailing zeros"] * (fraction != "" and unicodedata.decimal(fraction[-1], 1) == 0)
    marks += ["leading point"] * (not whole)
    marks += ["other digits"] * any(c.isdecimal() and not c.isascii() for c in mantissa)
    year = plain and len(whole) == 4 and FIRST_YEAR <= int(whole) <= LAST_YEAR
    return _Shape(
        form,
        tuple(map(MARKS.index, marks)),
        (int(whole) - FIRST_YEAR) // 10 if year else -1,
        -1 if exponent else min(len(digits), 9),
        plain,
    )


def _count_minus_after_word(numbers: Numbers) -> int:
    """Count the numbers whose ``-`` follows a word or a number and one space, where it may be a
    hyphen: ``75 -300mm``, ``COVID -19``.
    """
    text, begin = numbers.rows.text, numbers.rows.offsets[numbers.document] + numbers.start
    begin = begin[numbers.start >= 2]
    begin = begin[(text[begin] == ord("-")) & (text[begin - 1] == ord(" "))]
    return int(_IN_WORDS[text[begin - 2]].sum())


def _count_pairs(numbers: Numbers, digits: Any, plain: Any, side_by_side: Any) -> None:
    """Count numbers of one document with a space or an apostrophe between them, as in grouped ones."""
    gap = numbers.start[1:] - numbers.stop[:-1]
    near = _same_document(numbers) & (gap >= 1) & (gap <= _WIDEST) & (digits[1:] == 3)
    pairs = np.flatnonzero(near & plain[:-1] & (digits[:-1] >= 1) & (digits[:-1] <= 3))
    behind = (numbers.rows.offsets[numbers.document] + numbers.stop)[pairs]
    for first, last in zip(behind.tolist(), (behind + gap[pairs]).tolist(), strict=True):
        between = numbers.rows.text[first:last].tobytes().decode(errors="replace")
        if between in _BETWEEN:
            side_by_side[_BETWEEN[between]] += 1


def _count_joined(numbers: Numbers, digits: Any, plain: Any, side_by_side: Any) -> None:
    """Count numbers of one document with a comma between them, in running text."""
    text, offsets = numbers.rows.text, numbers.rows.offsets
    begin, end = offsets[numbers.document] + numbers.start, offsets[numbers.document] + numbers.stop
    comma = _same_document(numbers) & (numbers.start[1:] - numbers.stop[:-1] == 1)
    comma[comma] = text[end[:-1][comma]] == ord(",")
    edges = np.diff(np.concatenate([[0], comma.astype(np.int8), [0]]))
    first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    inner = (numbers.start[first] > 0) & (end[last] < offsets[numbers.document[last] + 1])
    first, last = first[inner], last[inner]
    before, after = text[begin[first] - 1], text[end[last]]
    running = ((before == ord(" ")) | (before >= 0x80)) & ~_ENDS[after]
    for one, other in zip(first[running].tolist(), last[running].tolist(), strict=True):
        counts = digits[one : other + 1].tolist()
        if other == one + 1:
            side_by_side[0] += counts[0] >= 0 and plain[other] and counts[1] >= 1
        else:
            pairs = plain[one + 1 : other].all() and set(counts[1:-1]) == {2}
            side_by_side[4] += 1 <= counts[0] <= 2 and counts[-1] == 3 and pairs


def _same_document(numbers: Numbers) -> npt.NDArray[np.bool_]:
    """Return bool[n - 1]: whether the next number is in the same document."""
    return np.asarray(numbers.document[1:] == numbers.document[:-1])


def count_units(numbers: Numbers) -> dict[str, int]:
    """Return how often each unit stands after a number, or after a space behind it: ``%``, ``km/h``,
    ``m²``, ``°C``, ``years``. It is any word, or a symbol of a list that leaves out punctuation; a
    character of a script without spaces (``年``) stands for itself.
    """
    import pyarrow.compute as pc

    behind = pc.value_counts(_behind(numbers))
    matches = pc.extract_regex(behind.field("values"), _UNIT)
    matched = pc.is_valid(matches)
    one_of_three = matches.filter(matched).flatten()
    units = pc.binary_join_element_wise(*one_of_three, pa.scalar("", one_of_three[0].type))
    times = behind.field("counts").filter(matched)
    counts: Counter[str] = Counter()
    for unit, count in zip(units.to_pylist(), times.to_pylist(), strict=True):
        counts[unit.encode()[:_UNIT_BYTES].decode(errors="ignore").removesuffix("/")] += count
    return counts


def _behind(numbers: Numbers) -> pa.LargeStringArray:
    """Return the text after each number, up to the end of a word."""
    rows, lengths = numbers.rows, memory.empty(len(numbers), np.int64)
    first = rows.offsets[numbers.document] + numbers.stop
    _to_the_end(rows.text, first, rows.offsets[numbers.document + 1], _ENDS_WORD, lengths)
    words = take(rows.text, np.stack([first, first + lengths], 1))
    buffers = [None, pa.py_buffer(memory.offsets_of(lengths)), pa.py_buffer(words)]
    return pa.Array.from_buffers(pa.large_string(), len(numbers), buffers)


@kernel
def _to_the_end(text, first, stop, ends, lengths):  # type: ignore[no-untyped-def]
    for i in range(first.size):
        most = min(first[i] + _UNIT_BYTES + _BEFORE_UNIT, stop[i])
        at = min(first[i] + 2, most)  # a space, and what may be a symbol
        while at < most and not ends[text[at]]:
            at += 1
        while first[i] < at < stop[i] and text[at] & 0xC0 == 0x80:  # not within a character
            at -= 1
        lengths[i] = at - first[i]
