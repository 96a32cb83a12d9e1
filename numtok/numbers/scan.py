"""Find every number in text: one pass over UTF-8 bytes, in linear time.

In: rows of text as one byte buffer with offsets (Arrow's own layout, never copied). Out: :class:`numtok.numbers.Numbers`. Three steps:

1. :func:`_mark` marks every byte that may begin a digit, 64 bytes at a time in vector instructions.
2. :func:`_scan` jumps from mark to mark. Most numbers are bare digits whose two neighbours show at once that nothing else belongs to them.
3. Every other one goes through the rules in :mod:`numtok.numbers.rules`: look back a few characters (letter, dot, sign), read forward to the end of the
   run, and keep or skip the whole run.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory as buffers
from numtok.arrays.kernels import inline_kernel, kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.unicode_classes import character_classes
from numtok.errors import InputError
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.numbers.numbers import Number, Numbers
from numtok.numbers.pattern import scan_pattern
from numtok.numbers.rules import (
    _class_before,
    _copy_digits,
    _decode,
    _digit_at,
    _glued_end,
    _in_parentheses,
    _is_hexadecimal,
    _look_back,
    _numeral,
    _uuid_end,
)

OTHER, LETTER, SIGN, BLOCKER, DOT, DIGIT = 0, 1, 2, 3, 4, 16  # as in unicode_tables, literal so that Numba freezes them

# The number of the one bit set in b is _LOWEST_BIT[(b * _DE_BRUIJN) >> 58].
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_LOWEST_BIT = np.zeros(64, np.uint64)
for _bit in range(64):
    _LOWEST_BIT[(0x03F79D71B4CB0A89 << _bit & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit

# In the loops that see every number positions are unsigned: Numba then leaves out the check for negative indices.
_ONE, _SIX = np.uint64(1), np.uint64(6)


@functools.cache
def _plain_neighbours(grammar: Grammar) -> npt.NDArray[np.uint8]:
    """uint8[256] of what a byte beside a number tells at once.

    Bit flags: 1 = before a number it has no influence; 2 = it ends a number; 4 = it does if flag 2 holds for the next byte; 8 = decode the
    character to know; 16 = a hyphen after it is not a sign; 32 = a letter that begins neither an exponent nor a chain, so perhaps a unit.
    """
    classes = character_classes(grammar.unicode_digits)[:128]
    table = np.full(256, 8, np.uint8)
    table[:128] = 0
    table[:128][(classes == OTHER) | (classes == BLOCKER)] = 1 | 2
    table[:128][classes == SIGN] = 2
    table[:128][(classes == LETTER) | (classes >= DIGIT)] = 16
    table[ord(".")] = 4
    for letter in set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") - set("eExX"):
        table[ord(letter)] |= 32
    if grammar.grouping is not None:
        separator = grammar.grouping.encode()
        if len(separator) > 1:
            table[128:] = 0
        elif separator != b"_":
            table[separator[0]] = 4
    if grammar.accounting:
        table[ord(")")] = 1
    return table


@kernel
def _mark(text, first, last, marks):  # type: ignore[no-untyped-def]
    """Bit k of ``marks[b]`` says that ``text[64 * b + k]`` may begin a digit: an ASCII digit, or a lead byte that some non-ASCII digits have.

    Covers the blocks from byte ``first`` to ``last``. The loop over the whole blocks becomes vector compares.
    """
    begin, whole = first // 64, last // 64
    body = text[begin * 64 : whole * 64]  # counted from 0, so that no index can be negative: else the loop is not vectorised
    for block in range(whole - begin):
        bits = np.uint64(0)
        for k in range(64):
            byte = body[block * 64 + k]
            bits |= np.uint64((np.uint8(byte - 0x30) < 10) | ((byte >= 0xD9) & (np.uint8(byte - 0xE2) > 7))) << np.uint64(k)
        marks[begin + block] = bits
    bits = np.uint64(0)
    for k in range(last - whole * 64):
        byte = text[whole * 64 + k]
        if 0x30 <= byte <= 0x39 or byte >= 0xD9:
            bits |= np.uint64(1) << np.uint64(k)
    marks[whole] = bits


@inline_kernel
def _next_mark(marks, at, stop):  # type: ignore[no-untyped-def]
    """Position of the first marked byte in [at, stop), or some position from ``stop`` on."""
    if at >= stop:
        return at
    block = at >> _SIX
    ahead = marks[block] >> (at & np.uint64(63))
    while ahead == 0:
        block += _ONE
        at = block << _SIX
        if at >= stop:
            return at
        ahead = marks[block]
    return at + _LOWEST_BIT[((ahead & (~ahead + _ONE)) * _DE_BRUIJN) >> np.uint64(58)]


@inline_kernel
def _ends_plainly(text, at, stop, plain, classes):  # type: ignore[no-untyped-def]
    """Whether a number that ends at ``at`` certainly ends there: 0 no or not sure, 1 yes, 2 a decimal point and a digit follow."""
    if at >= stop:
        return 1
    after = plain[text[at]]
    if after & 2:
        return 1
    if after & 4:
        if at + _ONE >= stop or plain[text[at + _ONE]] & 2:  # a full stop or comma, and then no digit
            return 1
        if plain[text[at + _ONE]] & 8:
            code, _ = _decode(text, np.int64(at + _ONE))
            return 1 if classes[code] < DIGIT else 0
        return 2 if text[at] == 0x2E and text[at + _ONE] >= 0x30 and text[at + _ONE] <= 0x39 else 0
    if after & 32:
        while at < stop and plain[text[at]] & 32:
            at += _ONE
        return 1 if at == stop or (plain[text[at]] & 6 and text[at] != 0x2D) else 0  # with a hyphen, maybe a UUID
    if after & 8:
        code, _ = _decode(text, np.int64(at))
        return 1 if classes[code] == OTHER else 0
    return 0


@kernel
def _plain(text, at, start, stop, plain, classes, digits, filled):  # type: ignore[no-untyped-def]
    """(end, fraction digits) of a number at ``at`` that is nothing but ASCII digits and perhaps a fraction; end is 0 if that is not certain.

    Settles most numbers of most texts with a table look-up on either side, writing their digits; the others go through the full rules.
    """
    failed = (np.uint64(0), np.uint64(0))
    hyphen = False
    if at > start:
        before = plain[text[at - _ONE]]
        if not before & 1:
            if before & 8:
                kind, _ = _class_before(text, np.int64(at), np.int64(start), classes)
                if kind != OTHER:
                    return failed
            elif text[at - _ONE] == 0x2D and at - _ONE > start and plain[text[at - _ONE - _ONE]] & 16:
                hyphen = True
            else:
                return failed
    limit = min(stop, at + np.uint64(digits.size) - filled)
    end = at
    while end < limit and text[end] >= 0x30 and text[end] <= 0x39:
        digits[filled] = text[end] - 0x30
        filled += _ONE
        end += _ONE
    if end >= limit:
        return (end, np.uint64(0)) if end == stop and not hyphen else failed
    length = end - at
    if (text[end] == 0x2D and (length == 8 or (hyphen and length == 4))) or (
        hyphen and (length == 12 or plain[text[end]] & 32)
    ):  # maybe in a UUID
        return failed
    sure = _ends_plainly(text, end, stop, plain, classes)
    if sure == 1:
        return end, np.uint64(0)
    if sure == 0:
        return failed
    point = end
    end += _ONE
    while end < limit and text[end] >= 0x30 and text[end] <= 0x39:
        digits[filled] = text[end] - 0x30
        filled += _ONE
        end += _ONE
    if end < limit and _ends_plainly(text, end, stop, plain, classes) == 1:
        return end, end - point - _ONE
    return failed


@kernel
def _scan(text, marks, offsets, valid, row, at, classes, plain, grouping, signs, use_exponent, leading_dot, accounting, out):  # type: ignore[no-untyped-def]
    """Scan rows ``text[offsets[r]:offsets[r + 1]]`` from byte ``at`` of row ``row`` until the text or the room in ``out`` ends.

    Returns (row, at, numbers, digits): where to go on, and how much of ``out`` is filled.
    """
    document, starts, stops, negative, exponents, digit_ends, digits = out
    count, filled = np.int64(0), np.int64(0)
    room, digit_room = np.uint64(starts.size), np.uint64(digits.size)  # unsigned with signed would be compared as floats
    safe = np.uint64(max(0, text.size - 8))
    while row < offsets.size - 1:
        start, stop = offsets[row], offsets[row + 1]
        at = max(at, start) if valid[row] else stop
        row_count = count
        row_start, row_stop, place, number, fill = np.uint64(start), np.uint64(stop), np.uint64(at), np.uint64(count), np.uint64(filled)
        while True:
            place = _next_mark(marks, place, row_stop)
            if place >= row_stop:
                break
            # The common case: bare digits between neighbours that do not matter.
            before = plain[text[place - _ONE]] if place > row_start else np.uint8(1)
            # Its length is that of a run of marks; if it is short, eight bytes are copied whatever the length: nobody could predict it.
            beyond = ~(marks[place >> _SIX] >> (place & np.uint64(63)))
            length = _LOWEST_BIT[((beyond & (~beyond + _ONE)) * _DE_BRUIJN) >> np.uint64(58)]
            end, copied = place + length, fill + length
            if (
                length <= np.uint64(8)
                and (place & np.uint64(63)) + length < np.uint64(64)
                and fill + np.uint64(8) <= digit_room
                and place < safe
            ):
                for k in range(np.uint64(8)):
                    digits[fill + k] = text[place + k] - np.uint8(0x30)
            else:
                end = row_stop
            if end + _ONE < row_stop and text[end - _ONE] < 0x80 and number < room:
                after, later = plain[text[end]], plain[text[end + _ONE]]
                if before & ((after >> 1) | ((after >> 2) & (later >> 1))) & 1 and end - place != np.uint64(8):  # eight may begin a UUID
                    starts[number], stops[number], digit_ends[number] = place - row_start, end - row_start, copied
                    number += _ONE
                    fill, place = copied, end
                    continue
            if text[place] >= 0x80:
                code, width = _decode(text, np.int64(place))
                if classes[code] < DIGIT:
                    place += np.uint64(width)
                    continue
            end, fraction = _plain(text, place, row_start, row_stop, plain, classes, digits, fill)
            if end != 0 and number < room:
                starts[number], stops[number] = place - row_start, end - row_start
                fill += end - place
                if fraction != 0:
                    fill -= _ONE
                    exponents[number] = -np.int64(fraction)
                digit_ends[number] = fill
                number += _ONE
                place = end
                continue
            at, count, filled = np.int64(place), np.int64(number), np.int64(fill)
            before, _ = _class_before(text, at, start, classes)
            if before == LETTER or (at > start and text[at - 1] == 0x2D) or (at + 8 < stop and text[at + 8] == 0x2D):
                uuid_end = _uuid_end(text, at, start, stop, classes)
                if uuid_end >= 0:
                    place = np.uint64(uuid_end)
                    continue
            keep = before != LETTER  # C
            first, dot, minus = _look_back(text, at, start, before, classes, signs, leading_dot)
            run, count_before = at, count
            while True:  # numerals joined by x: all kept or all skipped
                last, mantissa, digits_after, exponent, fits = _numeral(text, at, start, stop, dot, classes, grouping, use_exponent)
                keep = keep and fits
                if keep:
                    if count == starts.size or filled + (mantissa - at) > digits.size:
                        document[row_count:count_before] = row
                        return row, run, count_before, np.int64(fill)
                    filled = _copy_digits(text, at, mantissa, classes, digits, filled)
                    negative[count], exponents[count] = minus, exponent - digits_after
                    starts[count], stops[count] = first - start, last - start
                    digit_ends[count] = filled
                    count += 1
                if last >= stop or (text[last] != 0x78 and text[last] != 0x58):  # x, X
                    break
                if last - at == 1 and text[at] == 0x30 and not dot:  # a lone 0: hexadecimal if a hexadecimal digit follows (C)
                    keep = keep and not (last + 1 < stop and _is_hexadecimal(text[last + 1]))
                    break
                if text[last] == 0x58 or not _digit_at(text, last + 1, stop, classes):
                    break
                at = last + 1
                first, dot, minus = at, False, False
            at = _glued_end(text, last, stop, classes, use_exponent)
            place = np.uint64(at)
            if at > last or not keep:  # D
                negative[count_before:count] = False
                exponents[count_before:count] = 0
            else:
                if accounting and count == count_before + 1 and _in_parentheses(text, first, last, start, stop, classes):
                    starts[count_before] -= 1
                    stops[count_before] += 1
                    negative[count_before] = True
                number, fill = np.uint64(count), np.uint64(filled)
        at, count, filled = np.int64(place), np.int64(number), np.int64(fill)
        document[row_count:count] = row
        row += 1
    return row, at, count, filled


def _scan_rows(rows: TextRows, grammar: Grammar) -> list[npt.NDArray[Any]]:
    """The columns of Numbers, by :func:`_scan` with as much room as it turns out to need."""
    options = (
        character_classes(grammar.unicode_digits),
        _plain_neighbours(grammar),
        np.frombuffer((grammar.grouping or "").encode(), np.uint8),
        grammar.signs,
        grammar.exponent,
        grammar.leading_dot,
        grammar.accounting,
    )
    row, at, room, pieces = 0, 0, rows.nbytes // 16 + 64, []
    marks = buffers.empty(len(rows.text) // 64 + 1, np.uint64)
    _mark(rows.text, int(rows.offsets[0]), int(rows.offsets[-1]), marks)
    while row < len(rows):
        digit_ends = buffers.empty(room + 1, np.int64)
        digit_ends[0] = 0
        out = (
            buffers.empty(room, np.int32),  # document
            buffers.empty(room, np.int64),  # start
            buffers.empty(room, np.int64),  # stop
            buffers.full(room, False, np.bool_),  # negative and exponent are written only where they are not zero
            buffers.full(room, 0, np.int64),
            digit_ends[1:],
            buffers.empty(4 * room, np.uint8),  # digits
        )
        row, at, count, filled = _scan(rows.text, marks, rows.offsets, rows.valid, row, at, *options, out)
        pieces.append([column[:count] for column in out[:5]] + [digit_ends[: count + 1], out[6][:filled]])
        room *= 2
    if len(pieces) == 1:
        return pieces[0]
    for piece, before in zip(pieces[1:], np.cumsum([len(piece[6]) for piece in pieces]), strict=False):
        piece[5] = piece[5][1:] + before
    kinds = (np.int32, np.int64, np.int64, np.bool_, np.int64, np.int64, np.uint8)
    return [np.concatenate([piece[k] for piece in pieces]) if pieces else np.zeros(int(k == 5), kind) for k, kind in enumerate(kinds)]


def scan(texts: Any, grammar: Grammar | None = None) -> Numbers:
    """Find all numbers in many texts.

    Args:
        texts: a sequence of ``str`` or an Arrow string array (string, large_string, string_view, dictionary, chunked, sliced, with nulls).
        grammar: what counts as a number; ``Grammar()`` if not given.

    Returns:
        The numbers in order of document and place, with byte offsets within each document. A null row has none.

    Raises:
        InputError: for texts of another type or not valid UTF-8.
        GrammarError: if a user's pattern matches something that does not read as a decimal number.
    """
    grammar = check_grammar(grammar)
    rows = TextRows.of(texts)
    if grammar.pattern is not None:
        return scan_pattern(rows, grammar)
    document, start, stop, negative, exponent, digit_offsets, digits = _scan_rows(rows, grammar)
    return Numbers(document, start, stop, negative, digits, digit_offsets, exponent, rows)


def extract(text: str, grammar: Grammar | None = None) -> list[Number]:
    """All numbers in one text, each with its surface, its place in characters and its exact value.

    >>> [(number.text, number.value) for number in extract("pH 7.4 at -12.5e-3")]
    [('7.4', Decimal('7.4')), ('-12.5e-3', Decimal('-0.0125'))]

    Raises:
        InputError: for anything but a str.
    """
    if not isinstance(text, str):
        raise InputError(f"expected one str, got {type(text).__name__}; scan takes many texts")
    numbers = scan([text], grammar)
    starts, stops = numbers.start, numbers.stop
    if not text.isascii():  # byte offsets to character offsets: count the bytes that begin a character
        before = np.concatenate([[0], np.cumsum((numbers.rows.text & 0xC0) != 0x80)])
        starts, stops = before[starts], before[stops]
    values = numbers.to_decimal()
    return [Number(text[a:b], a, b, value) for a, b, value in zip(starts.tolist(), stops.tolist(), values, strict=True)]
