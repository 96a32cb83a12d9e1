"""The numbers that most numbers are: digits, perhaps with a fraction, a sign or commas, between
neighbours that show at once that nothing else is theirs.

In: bytes of text and a position. Out: where the number there ends, or 0 if it takes the rules in
    :mod:`numtok.numbers.rules` to know. What is settled
here is settled as those rules would: the tests hold both to one oracle.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from numtok.arrays.bitmarks import ONE, SIX, SIXTY_THREE, lowest_bit
from numtok.arrays.kernels import inner_kernel, merged_kernel
from numtok.arrays.unicode_classes import BLOCKER, DIGIT, LETTER, OTHER, SIGN, character_classes
from numtok.arrays.utf8 import class_before, decode
from numtok.numbers.grammar import Grammar
from numtok.numbers.rules import COMMA, POINT

ZERO, TWO, THREE, FOUR, EIGHT, NINE, TWELVE = (np.uint64(count) for count in (0, 2, 3, 4, 8, 9, 12))
SEPARATOR = 64
UNIT, DECIMAL, NO_DIGIT = 32, 4 | 32, 2 | SEPARATOR
MANY = np.uint64(24)  # digits on either side of the point that are still copied eight at a time
LONGEST = np.uint64(52)  # bytes that are looked at
TOO_MANY, TOO_LONG = (
    np.uint64(1 << 25),
    np.uint64((1 << 25) - 1),
)  # a mark that ends a run where it is too long anyway, and all marks of such a run


@functools.cache
def plain_neighbours(grammar: Grammar) -> npt.NDArray[np.uint8]:
    """uint8[256] of what a byte beside a number tells at once.

    Bit flags: 1 = before a number it has no influence; 2 = it ends a number; 4 = it does if flag 2
        or 64 holds for the next byte; 8 = decode the character to know, and with 4, nothing if a
        digit may follow; 16 = a hyphen after it is not a sign; 32 = a letter that begins neither an
        exponent nor a chain, so perhaps a unit, and with 4, the decimal mark; 64 = it groups
        digits, and where it does not, it separates; 128 = a sign may stand behind it.
    """
    classes = character_classes(grammar.unicode_digits)[:128]
    table = np.full(256, 8, np.uint8)
    table[:128] = 0
    table[:128][(classes == OTHER) | (classes == BLOCKER)] = 1 | 2
    table[:128][classes == SIGN] = 2
    table[:128][(classes == LETTER) | (classes >= DIGIT)] = 16
    table[ord(".")] = 4 if "." in (grammar.grouping or "") else 0
    table[ord(grammar.decimal)] = DECIMAL
    for letter in set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") - set("eExX"):
        table[ord(letter)] |= 32
    for separator in grammar.grouping or "":
        if not separator.isascii():
            table[separator.encode()[0]] = 4 | 8
        elif separator not in "_.":
            table[ord(separator)] = 4 | SEPARATOR
    table[:128][classes == OTHER] |= 128
    if grammar.accounting:
        table[ord(")")] = 1
    return table


@merged_kernel
def _ends_plainly(text, at, stop, plain, classes):  # type: ignore[no-untyped-def]
    """Whether a number that ends at ``at`` certainly ends there: 0 no or not sure, 1 yes, 2 a
    decimal mark and a digit follow.
    """
    if at >= stop:
        return 1
    after = plain[text[at]]
    if after & 2:
        return 1
    if after & 12 == 4:
        if (
            at + ONE >= stop or plain[text[at + ONE]] & NO_DIGIT
        ):  # a full stop or comma, and then no digit
            return 1
        if plain[text[at + ONE]] & 8:
            code, _ = decode(text, np.int64(at + ONE))
            return 1 if classes[code] < DIGIT else 0
        digit = text[at + ONE] >= 0x30 and text[at + ONE] <= 0x39
        if after & DECIMAL == DECIMAL:
            return 2 if digit else 0
        return 0 if digit else 1
    if after & UNIT:
        while at < stop and plain[text[at]] & DECIMAL == UNIT:
            at += ONE
        return (
            1 if at == stop or (plain[text[at]] & 6 and text[at] != 0x2D) else 0
        )  # with a hyphen, maybe a UUID
    if after & 8:
        code, width = decode(text, np.int64(at))
        if classes[code] != OTHER:
            return 0
        follows = at + np.uint64(width)
        return (
            0
            if after & 4
            and follows < stop
            and (text[follows] >= 0x80 or np.uint8(text[follows] - 0x30) < 10)
            else 1
        )
    return 0


@inner_kernel
def plain_number(text, at, start, stop, plain, classes, digits, filled):  # type: ignore[no-untyped-def]
    """(end, fraction digits) of a number at ``at`` that is nothing but ASCII digits and perhaps a
    fraction; end is 0 if that is not certain.

    Settles most numbers of most texts with a table look-up on either side, writing their digits;
    the others go through the full rules.
    """
    failed = (np.uint64(0), np.uint64(0))
    hyphen = False
    if at > start:
        before = plain[text[at - ONE]]
        if not before & (1 | SEPARATOR):
            if before & 8:
                kind, _ = class_before(text, np.int64(at), np.int64(start), classes)
                if kind != OTHER:
                    return failed
            elif text[at - ONE] == 0x2D and at - ONE > start and plain[text[at - ONE - ONE]] & 16:
                hyphen = True
            else:
                return failed
    end = at
    while end < stop and text[end] >= 0x30 and text[end] <= 0x39:
        digits[filled] = text[end] - 0x30
        filled += ONE
        end += ONE
    if end >= stop:
        return failed if hyphen else (end, np.uint64(0))
    length = end - at
    if (text[end] == 0x2D and (length == 8 or (hyphen and length == 4))) or (
        hyphen and (length == 12 or plain[text[end]] & DECIMAL == UNIT)
    ):  # maybe in a UUID
        return failed
    sure = _ends_plainly(text, end, stop, plain, classes)
    if sure == 1:
        return end, np.uint64(0)
    if sure == 0:
        return failed
    point = end
    end += ONE
    while end < stop and text[end] >= 0x30 and text[end] <= 0x39:
        digits[filled] = text[end] - 0x30
        filled += ONE
        end += ONE
    if _ends_plainly(text, end, stop, plain, classes) == 1:
        return end, end - point - ONE
    return failed


@inner_kernel
def _grouped_number(text, run, place, stop, plain, lakhs, digits, filled):  # type: ignore[no-untyped-def]
    """(end, digits) of the number at ``place`` if one separator groups its digits and nothing else
    belongs to it, else 0 and 0.

    ``run`` are the marks from ``place`` on; the digits before the first separator, up to three, are
    in ``digits`` already.
    """
    failed = (np.uint64(0), np.uint64(0))
    whole = lowest_bit(~run)
    length, count, separator = whole, whole, text[place + whole]
    twos, closed = False, False
    while text[place + length] == separator:
        group = (run >> (length + ONE)) & np.uint64(15)
        if group & ONE == 0:
            break  # only punctuation
        size = THREE
        if group != np.uint64(7):
            if (
                not lakhs
                or group & np.uint64(7) != THREE
                or whole > TWO
                or (count > whole and not twos)
            ):
                return failed
            size, twos = TWO, True
        if closed or length > np.uint64(32) or place + length + FOUR + ONE >= stop:
            return failed
        closed = twos and size == THREE
        for k in range(size):
            digits[filled + count + k] = text[place + length + ONE + k] - np.uint8(0x30)
        length += size + ONE
        count += size
    if (
        count == whole or twos != closed or (separator == POINT and count == whole + NINE)
    ):  # perhaps an address
        return failed
    end = place + length
    after, later = plain[text[end]], plain[text[end + ONE]]
    ends = after & 2 != 0 or (
        after & 4 != 0
        and (later & NO_DIGIT != 0 or (after & DECIMAL == 4 and (run >> (length + ONE)) & ONE == 0))
    )
    return (end, count) if ends and text[end - ONE] < 0x80 else failed


@merged_kernel
def eight_bytes(text, place):  # type: ignore[no-untyped-def]
    """uint64: eight bytes of text, the first lowest. LLVM makes one load of it."""
    word = ZERO
    for k in range(EIGHT):
        word |= np.uint64(text[place + k]) << (EIGHT * k)
    return word


@merged_kernel
def _put_digits(word, digits, filled):  # type: ignore[no-untyped-def]
    """Eight bytes of text as digits: LLVM makes one store of it, as it would not of a loop that
    reads and writes by turns.
    """
    word ^= np.uint64(0x3030303030303030)
    for k in range(EIGHT):
        digits[filled + k] = np.uint8(word >> (EIGHT * k))


@merged_kernel
def _copy_eight(text, place, digits, filled):  # type: ignore[no-untyped-def]
    _put_digits(eight_bytes(text, place), digits, filled)


@merged_kernel
def _is_dash(text, at):  # type: ignore[no-untyped-def]
    """Whether U+2013 stands there, as in 1990\u201395: the most frequent neighbour that is not
    ASCII, and no sign.
    """
    return text[at] == 0xE2 and text[at + ONE] == 0x80 and text[at + TWO] == 0x93


@merged_kernel
def may_be_short(rows, place):  # type: ignore[no-untyped-def]
    """Whether there are as many bytes from ``place`` on as :func:`short_number` looks at."""
    return place + LONGEST < np.uint64(rows.text.size) and (place >> SIX) + ONE < np.uint64(
        rows.marks.size
    )


@merged_kernel
def short_number(rows, rules, place, word, start, stop, digits, filled):  # type: ignore[no-untyped-def]
    """(end, digits, fraction digits, sign?) of the number at ``place``, where ``word`` stands; the
    end is 0 if its neighbours do not settle it.

    It has up to 24 digits, mostly up to eight, and perhaps a sign before them and as many behind a
    point; or commas group them. Lengths are those of runs of marks, and sixteen bytes are copied
    whatever they are: nobody could predict it.
    """
    text, marks, plain, decimal = rows.text, rows.marks, rules.plain, rules.notation.decimal
    block, shift = place >> SIX, place & SIXTY_THREE
    run = (marks[block] >> shift) | (marks[block + ONE] << ONE) << (SIXTY_THREE - shift)
    if run & TOO_LONG == TOO_LONG:
        return ZERO, ZERO, ZERO, ZERO
    whole = lowest_bit(~run)
    point = np.uint64(text[place + whole] == decimal) & (run >> (whole + ONE))
    fraction = (ZERO - point) & lowest_bit(~(run >> (whole + ONE)) | TOO_MANY)
    end = place + whole + fraction + point
    if fraction > MANY or end + ONE >= stop or text[end - ONE] >= 0x80:
        return ZERO, ZERO, ZERO, ZERO
    _put_digits(word, digits, filled)
    _copy_eight(text, place + whole + ONE, digits, filled + whole)
    if (
        place > start
        and whole <= EIGHT
        and fraction <= EIGHT
        and (text[end] != 0x2D or whole != EIGHT)
    ):  # most are as plain as this
        after, later = plain[text[end]], plain[text[end + ONE]]
        begins = plain[text[place - ONE]] & 1 or (
            text[place - ONE] == 0x93 and _is_dash(text, place - THREE)
        )
        if begins and (
            after & 2 | (after & 4 & -np.uint8(later & NO_DIGIT != 0)) or _is_dash(text, end)
        ):
            return end, whole + fraction, fraction, ZERO
    # The two characters on either side; beyond an edge, as beside a space.
    first, near = plain[0x20], plain[0x20]
    sign = np.uint8(0)
    hyphen = False  # which is no sign, behind a word
    inside = False  # a list such as 12,345: a separator behind a digit
    if place > start:
        byte, near = text[place - ONE], plain[text[place - ONE]]
        sign = np.uint8(rules.signs & ((byte == 0x2D) | (byte == 0x2B)))
        if place - ONE > start:
            first = plain[text[place - ONE - ONE]]
            hyphen = (byte == 0x2D) & (first & 16 != 0)
            inside = (byte == text[end]) & (np.uint8(text[place - ONE - ONE] - 0x30) < 10)
    after, later = plain[text[end]], plain[text[end + ONE]]
    sign &= first >> 7
    separated = (near & SEPARATOR != 0) & (first & 8 == 0)
    begins = (
        (near & 1 != 0)
        | hyphen
        | separated
        | (sign != 0)
        | (place >= start + THREE and _is_dash(text, place - THREE))
    )
    groups_end = (after & SEPARATOR != 0) & ((point != 0) | (whole > THREE) | inside)
    ends = (
        (after & 2 != 0)
        | ((after & 4 != 0) & (later & NO_DIGIT != 0))
        | groups_end
        | (end + THREE <= stop and _is_dash(text, end))
    )
    uuid = (text[end] == 0x2D) & ((whole == EIGHT) | (hyphen & (whole == FOUR))) | (
        hyphen & (whole == TWELVE)
    )  # perhaps
    if not (begins & ends & (not uuid)):
        if not begins or uuid or after & 12 != 4 or text[end] == decimal:
            return ZERO, ZERO, ZERO, ZERO
        if (run >> (end - place + ONE)) & ONE:  # behind the separator, perhaps a digit
            if point != 0 or whole > THREE or (decimal == COMMA and text[place] == 0x30):
                return ZERO, ZERO, ZERO, ZERO
            end, count = _grouped_number(
                text, run, place, stop, plain, rules.notation.lakhs, digits, filled
            )
            return end, count, ZERO, np.uint64(sign)
    if whole > EIGHT:
        for k in range(EIGHT, MANY, EIGHT):
            _copy_eight(text, place + k, digits, filled + k)
    if whole > EIGHT or fraction > EIGHT:
        for k in range(ZERO, MANY, EIGHT):
            _copy_eight(text, place + whole + ONE + k, digits, filled + whole + k)
    return end, whole + fraction, fraction, np.uint64(sign)
