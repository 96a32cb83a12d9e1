"""The compiled scanner: bytes of text to the columns of ``Numbers``, in one pass and linear time.

1. :func:`_mark` marks every byte that may begin a digit, 64 bytes at a time.
2. :func:`_scan` jumps from mark to mark. Most numbers are a few digits, perhaps with a sign, a
   fraction or commas, whose two neighbours on either side show at once that nothing else belongs to
   them (``short_number``); some are longer, or have a unit or a character that is not ASCII beside
   them (``plain_number``).
3. Every other one goes through the rules in :mod:`numtok.numbers.rules`
   (:func:`_run_by_the_rules`): look back a few characters (letter, dot, sign), read forward to the
   end of the run, and keep or skip the whole run.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.bitmarks import ONE, SIX, SIXTY_THREE, next_mark, set_bits
from numtok.arrays.blocks import BLOCK, bytes_between
from numtok.arrays.kernels import kernel, merged_kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.unicode_classes import DIGIT, LETTER, character_classes
from numtok.arrays.utf8 import class_before, decode
from numtok.numbers.grammar import Grammar
from numtok.numbers.plain_numbers import HYPHEN, neighbours, plain_number
from numtok.numbers.rules import (
    Notation,
    copy_digits,
    digit_at,
    glued_end,
    in_parentheses,
    is_hexadecimal,
    look_back,
    numeral,
    uuid_end,
)

SPARE = 16  # bytes behind the digits, as ``plain_number`` writes more than there are
ONE_ROW = np.ones(1, np.bool_)
ONE_ROW.flags.writeable = False  # as all rows are, so that nothing is compiled twice
NO_BYTE = np.uint8(0xFF)  # that UTF-8 has nowhere


class Rows(NamedTuple):
    """Text to scan: rows ``text[offsets[r]:offsets[r + 1]]``, which of them are valid, and the
    marks of :func:`_mark`.
    """

    text: npt.NDArray[np.uint8]
    marks: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_]


class Rules(NamedTuple):
    """A grammar as the compiled functions take it: tables by code point and by byte, and its
    switches.
    """

    classes: npt.NDArray[np.uint8]
    neighbours: npt.NDArray[np.uint8]
    notation: Notation
    signs: bool
    leading: np.uint8
    accounting: bool


class Columns(NamedTuple):
    """The columns of ``Numbers``, with the running count of digits behind each number, int64[n], in
    place of offsets.
    """

    document: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    negative: npt.NDArray[np.bool_]
    exponent: npt.NDArray[np.int64]
    digit_ends: npt.NDArray[np.int64]
    digits: npt.NDArray[np.uint8]

    def filled(self, numbers: int, digits: int) -> Columns:
        """The first ``numbers`` of each, and the first ``digits`` digits."""
        rows = (
            self.document[:numbers],
            self.start[:numbers],
            self.stop[:numbers],
            self.negative[:numbers],
            self.exponent[:numbers],
        )
        return Columns(*rows, self.digit_ends[:numbers], self.digits[:digits])


@kernel
def _mark(text, first, last, marks):  # type: ignore[no-untyped-def]
    """Bit k of ``marks[b]`` says that ``text[64 * b + k]`` may begin a digit: an ASCII digit, or a
    lead byte that some non-ASCII digits have.

    Covers the blocks from byte ``first`` to ``last``.
    """
    begin, whole = np.uint64(first // BLOCK), np.uint64(last // BLOCK)
    for block in range(begin, whole):
        at = block << SIX
        leads = bytes_between(text, at, 0xD9, 0xFF) & ~bytes_between(text, at, 0xE2, 0xE9)
        marks[block] = bytes_between(text, at, 0x30, 0x39) | leads
    bits = np.uint64(0)
    for k in range(np.uint64(last) - (whole << SIX)):
        byte = text[(whole << SIX) + k]
        bits |= (
            np.uint64((0x30 <= byte <= 0x39) or (byte >= 0xD9 and not 0xE2 <= byte <= 0xE9)) << k
        )
    marks[whole] = bits


@kernel
def _count_marks(marks, first, last):  # type: ignore[no-untyped-def]
    """(marks, runs of them) in the blocks from byte ``first`` to ``last``: the text there has no
    more digits, and each row no more numbers.
    """
    total, runs, carry = np.uint64(0), np.uint64(0), np.uint64(0)
    for block in range(first // 64, last // 64 + 1):
        bits = marks[block]
        total += set_bits(bits)
        runs += set_bits(bits & ~(bits << ONE | carry))
        carry = bits >> SIXTY_THREE
    return total, runs


@merged_kernel
def _run_by_the_rules(rows, rules, at, start, stop, columns, count, filled):  # type: ignore[no-untyped-def]
    """Read the run of numerals whose first digit is at ``at``, in the document [start, stop), and
    keep or skip the whole of it.

    Returns (end of the run, numbers, digits): how much of ``columns`` is filled; the end is -1 if
    it has no room for them.
    """
    text, classes = rows.text, rules.classes
    before, _ = class_before(text, at, start, classes)
    if (
        before == LETTER
        or (at > start and text[at - 1] == 0x2D)
        or (at + 8 < stop and text[at + 8] == 0x2D)
    ):
        end_of_uuid = uuid_end(text, at, start, stop, classes)
        if end_of_uuid >= 0:
            return end_of_uuid, count, filled
    keep = before != LETTER  # C
    first, dot, minus = look_back(text, at, start, classes, rules.signs, rules.leading)
    count_before, filled_before = count, filled
    while True:  # numerals joined by x: all kept or all skipped
        last, mantissa, fraction, exponent, fits = numeral(
            text, at, start, stop, dot, classes, rules.notation
        )
        keep = keep and fits
        if keep:
            if count == columns.start.size:
                return np.int64(-1), count_before, filled_before
            filled = copy_digits(text, at, mantissa, classes, columns.digits, filled)
            columns.negative[count], columns.exponent[count] = minus, exponent - fraction
            columns.start[count], columns.stop[count] = first - start, last - start
            columns.digit_ends[count] = filled
            count += 1
        if last >= stop or (text[last] != 0x78 and text[last] != 0x58):  # x, X
            break
        if (
            last - at == 1 and text[at] == 0x30 and not dot
        ):  # a lone 0: hexadecimal if a hexadecimal digit follows (C)
            keep = keep and not (last + 1 < stop and is_hexadecimal(text[last + 1]))
            break
        if text[last] == 0x58 or not digit_at(text, last + 1, stop, classes):
            break
        at = last + 1
        first, dot, minus = at, False, False
    end = glued_end(text, last, stop, classes, rules.notation)
    if end > last or not keep:  # D
        columns.negative[count_before:count] = False  # written only where they are not zero
        columns.exponent[count_before:count] = 0
        return end, count_before, filled_before
    if (
        rules.accounting
        and count == count_before + 1
        and in_parentheses(text, first, last, start, stop, classes)
    ):
        columns.start[count_before] -= 1
        columns.stop[count_before] += 1
        columns.negative[count_before] = True
    return end, count, filled


@kernel
def _scan(rows, rules, row, at, columns):  # type: ignore[no-untyped-def]
    """Scan rows from byte ``at`` of row ``row`` until the text or the room in ``columns`` ends.

    Returns (row, at, numbers, digits): where to go on, and how much of ``columns`` is filled.
    """
    text, classes, room = rows.text, rules.classes, np.uint64(columns.start.size)
    count, filled = (
        np.uint64(0),
        np.uint64(0),
    )  # unsigned, as places are: with signed ones they would be compared as floats
    while row < rows.offsets.size - 1:
        start, stop = np.uint64(rows.offsets[row]), np.uint64(rows.offsets[row + 1])
        place = max(np.uint64(at), start) if rows.valid[row] else stop
        row_count = count
        while True:
            place = next_mark(rows.marks, place, stop)
            if place >= stop:
                break
            if text[place] >= 0x80:
                code, width = decode(text, np.int64(place))
                if classes[code] < DIGIT:
                    place += np.uint64(width)
                    continue
            end, written, fraction, sign = plain_number(
                rows, rules, place, start, stop, columns.digits, filled
            )
            if end != 0 and count < room:
                filled += written
                columns.start[count], columns.stop[count] = place - sign - start, end - start
                columns.digit_ends[count], columns.exponent[count] = filled, -np.int64(fraction)
                columns.negative[count] = sign & np.uint64(text[place - sign] == HYPHEN)
                count += ONE
                place = end
                continue
            beyond, numbers, digits = _run_by_the_rules(
                rows,
                rules,
                np.int64(place),
                np.int64(start),
                np.int64(stop),
                columns,
                np.int64(count),
                np.int64(filled),
            )
            if beyond < 0:
                columns.document[row_count:count] = row
                return row, np.int64(place), np.int64(count), np.int64(filled)
            place, count, filled = np.uint64(beyond), np.uint64(numbers), np.uint64(digits)
        at = np.int64(place)
        columns.document[row_count:count] = row
        row += 1
    return row, at, np.int64(count), np.int64(filled)


def scan_columns(rows: TextRows, grammar: Grammar) -> Columns:
    """The columns of all numbers in the rows; ``digit_ends`` are offsets here, int64[n + 1] from 0."""
    rules = _rules(grammar)
    marks, first, last = (
        memory.empty(len(rows.text) // 64 + 2, np.uint64),
        int(rows.offsets[0]),
        int(rows.offsets[-1]),
    )
    _mark(rows.text, first, last, marks)
    digits, runs = _count_marks(marks, first, last)
    text = Rows(rows.text, marks, rows.offsets, rows.valid)
    # Letters of some scripts are marked too, so runs of marks are not always numbers: with as much
    # room as it turns out to need.
    row, at, room, pieces = 0, 0, min(runs + len(rows), rows.nbytes // 3) + 64, []
    while row < len(rows):
        columns, offsets = _room(room, digits + SPARE)
        row, at, count, filled = _scan(text, rules, row, at, columns)
        pieces.append(columns.filled(count, filled)._replace(digit_ends=offsets[: count + 1]))
        room *= 2
    return pieces[0] if len(pieces) == 1 else _concatenated(pieces)


def scan_one(text: bytes, grammar: Grammar) -> Columns:
    """The columns of :func:`scan_columns` for one short text of valid UTF-8, in half of its time."""
    size = len(text)
    places = np.array([0, size])
    places.flags.writeable = False
    marks = np.empty(size // 64 + 2, np.uint64)
    rows = Rows(np.frombuffer(text, np.uint8), marks, places, ONE_ROW)
    _mark(rows.text, 0, size, marks)
    columns = Columns(
        np.empty(size, np.int32),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.zeros(size, np.bool_),
        np.zeros(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size + SPARE, np.uint8),
    )
    _, _, count, filled = _scan(rows, _rules(grammar), 0, 0, columns)
    return columns.filled(count, filled)


@functools.lru_cache(maxsize=64)
def _rules(grammar: Grammar) -> Rules:
    decimal = np.uint8(ord(grammar.decimal))
    return Rules(
        character_classes(grammar.unicode_digits),
        neighbours(grammar),
        Notation(
            np.array([*map(ord, grammar.grouping or "")], np.int32),
            decimal,
            grammar.lakhs,
            grammar.exponent,
        ),
        grammar.signs,
        decimal if grammar.leading_dot else NO_BYTE,
        grammar.accounting,
    )


def _room(numbers: int, digits: int) -> tuple[Columns, npt.NDArray[np.int64]]:
    """(empty columns, int64[numbers + 1] from 0 whose rest is their ``digit_ends``)."""
    offsets = memory.empty(numbers + 1, np.int64)
    offsets[0] = 0
    columns = Columns(
        memory.empty(numbers, np.int32),
        memory.empty(numbers, np.int64),
        memory.empty(numbers, np.int64),
        memory.full(numbers, False, np.bool_),  # these two are written only where they are not zero
        memory.full(numbers, 0, np.int64),
        offsets[1:],
        memory.empty(digits, np.uint8),
    )
    return columns, offsets


def _concatenated(pieces: list[Columns]) -> Columns:
    """Several turns, or none at all, as one."""
    moved = [_room(0, 0)[0]._replace(digit_ends=np.zeros(1, np.int64))]
    before = 0
    for piece in pieces:
        moved.append(piece._replace(digit_ends=piece.digit_ends[1:] + before))
        before += len(piece.digits)
    return Columns(*(np.concatenate(column) for column in zip(*moved, strict=True)))
