"""Find every number in text: one pass over UTF-8 bytes, in linear time.

In: rows of text as one byte buffer with offsets (Arrow's own layout, never copied). Out: :class:`numtok.numbers.Numbers`. The rules are
those of :mod:`numtok.grammar`; rule letters in the comments refer to it. The machine jumps from digit to digit: at each digit that starts a
run it looks back at most a few characters (letter, dot, sign), reads forward to the end of the run, and keeps or skips the whole run.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from numtok.errors import GrammarError
from numtok.grammar import Grammar, compile_pattern
from numtok.numbers import Number, Numbers
from numtok.text import TextRows
from numtok.unicode_tables import character_classes

OTHER, LETTER, SIGN, BLOCKER, DOT, DIGIT = 0, 1, 2, 3, 4, 16  # as in unicode_tables, literal so that Numba freezes them
MAX_EXPONENT_DIGITS = 17  # |exponent| < 10**17 keeps every sum of exponents inside int64 and inside decimal's range

# The number of the one bit set in b is _LOWEST_BIT[(b * _DE_BRUIJN) >> 58].
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_LOWEST_BIT = np.zeros(64, np.int64)
for _bit in range(64):
    _LOWEST_BIT[(0x03F79D71B4CB0A89 << _bit & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit

_jit = numba.njit(cache=True, nogil=True)
_inline = numba.njit(cache=True, nogil=True, inline="always")


@functools.cache
def _plain_neighbours(grammar: Grammar) -> npt.NDArray[np.uint8]:
    """uint8[256] of what a byte beside a number tells at once.

    Bit flags: 1 = before a number it has no influence; 2 = it ends a number; 4 = it does if flag 2 holds for the next byte; 8 = decode the
    character to know; 16 = a hyphen after it is not a sign.
    """
    classes = character_classes(grammar.unicode_digits)[:128]
    table = np.full(256, 8, np.uint8)
    table[:128] = 0
    table[:128][(classes == OTHER) | (classes == BLOCKER)] = 1 | 2
    table[:128][classes == SIGN] = 2
    table[:128][(classes == LETTER) | (classes >= DIGIT)] = 16
    table[ord(".")] = 4
    if grammar.grouping is not None:
        separator = grammar.grouping.encode()
        if len(separator) > 1:
            table[128:] = 0
        elif separator != b"_":
            table[separator[0]] = 4
    if grammar.accounting:
        table[ord(")")] = 1
    return table


@_jit
def _decode(text, at):  # type: ignore[no-untyped-def]
    """(code point, width) of the non-ASCII character at ``at``."""
    lead = np.int64(text[at])
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | np.int64(text[at + 1]) & 0x3F, 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | (np.int64(text[at + 1]) & 0x3F) << 6 | np.int64(text[at + 2]) & 0x3F, 3
    high = (lead & 0x07) << 18 | (np.int64(text[at + 1]) & 0x3F) << 12
    return high | (np.int64(text[at + 2]) & 0x3F) << 6 | np.int64(text[at + 3]) & 0x3F, 4


@_inline
def _class_at(text, at, stop, classes):  # type: ignore[no-untyped-def]
    """(class, width) of the character at ``at``; (OTHER, 0) at the end."""
    if at >= stop:
        return np.int64(OTHER), 0
    if text[at] < 0x80:
        return np.int64(classes[text[at]]), 1
    code, width = _decode(text, at)
    return np.int64(classes[code]), width


@_inline
def _class_before(text, at, start, classes):  # type: ignore[no-untyped-def]
    """(class, width) of the character that ends at ``at``; (OTHER, 0) at the start."""
    if at <= start:
        return np.int64(OTHER), 0
    at -= 1
    if text[at] < 0x80:
        return np.int64(classes[text[at]]), 1
    width = 1
    while text[at] & 0xC0 == 0x80:
        at -= 1
        width += 1
    code, _ = _decode(text, at)
    return np.int64(classes[code]), width


@_jit
def _skip_digits(text, at, stop, classes):  # type: ignore[no-untyped-def]
    """(end, count) of the run of digits at ``at``."""
    count = 0
    while at < stop:
        if text[at] < 0x80:
            if classes[text[at]] < DIGIT:
                break
            at += 1
        else:
            code, width = _decode(text, at)
            if classes[code] < DIGIT:
                break
            at += width
        count += 1
    return at, count


@_inline
def _digit_at(text, at, stop, classes):  # type: ignore[no-untyped-def]
    kind, _ = _class_at(text, at, stop, classes)
    return kind >= DIGIT


@_jit
def _matches(text, at, stop, needle):  # type: ignore[no-untyped-def]
    """Whether ``needle`` (not empty) stands at ``at``."""
    if at + needle.size > stop or needle.size == 0:
        return False
    for k in range(needle.size):
        if text[at + k] != needle[k]:
            return False
    return True


@_jit
def _grouped_end(text, at, first, count, start, stop, classes, grouping):  # type: ignore[no-untyped-def]
    """End of the grouped integer whose first group of ``count`` digits is [first, at); ``at`` itself if the commas only separate (A)."""
    if not _matches(text, at, stop, grouping) or not _digit_at(text, at + grouping.size, stop, classes):
        return at
    if first - grouping.size >= start and _matches(text, first - grouping.size, stop, grouping):
        kind, _ = _class_before(text, first - grouping.size, start, classes)
        if kind >= DIGIT:  # already inside a list such as 1,23,456
            return at
    well_formed = count <= 3
    end = at
    while _matches(text, end, stop, grouping) and _digit_at(text, end + grouping.size, stop, classes):
        end, size = _skip_digits(text, end + grouping.size, stop, classes)
        if size != 3:
            well_formed = False
            break
    return end if well_formed else at


@_jit
def _exponent_at(text, at, stop, classes):  # type: ignore[no-untyped-def]
    """(end, value, fits) of the exponent at ``at``; end is ``at`` if there is none."""
    if at >= stop or (text[at] != 0x65 and text[at] != 0x45):  # e, E
        return at, np.int64(0), True
    digits = at + 1
    kind, width = _class_at(text, digits, stop, classes)
    negative = False
    if kind == SIGN:
        negative = text[digits] != 0x2B
        digits += width
    end, value, significant = digits, np.int64(0), 0
    while True:
        kind, width = _class_at(text, end, stop, classes)
        if kind < DIGIT:
            break
        if significant > 0 or kind > DIGIT:
            significant += 1
            if significant <= MAX_EXPONENT_DIGITS:
                value = value * 10 + (kind - DIGIT)
        end += width
    if end == digits:
        return at, np.int64(0), True
    return end, -value if negative else value, significant <= MAX_EXPONENT_DIGITS


@_jit
def _numeral(text, at, start, stop, dot, classes, grouping, use_exponent):  # type: ignore[no-untyped-def]
    """Read the numeral whose first digit is at ``at`` (``dot``: it follows a leading decimal point).

    Returns (end, end of the mantissa, fraction digits, exponent, fits).
    """
    end, count = _skip_digits(text, at, stop, classes)
    fraction = 0
    if dot:
        fraction = count
    else:
        if grouping.size:
            end = _grouped_end(text, end, at, count, start, stop, classes, grouping)
        if end < stop and text[end] == 0x2E and _digit_at(text, end + 1, stop, classes):
            end, fraction = _skip_digits(text, end + 1, stop, classes)
    mantissa = end
    exponent, fits = np.int64(0), True
    if use_exponent:
        begin = end
        if not dot and fraction == 0 and end < stop and text[end] == 0x2E:  # 2.e+3
            begin = end + 1
        exponent_end, exponent, fits = _exponent_at(text, begin, stop, classes)
        if exponent_end > begin:
            end = exponent_end
    return end, mantissa, fraction, exponent, fits


@_jit
def _glued_end(text, at, stop, classes, use_exponent):  # type: ignore[no-untyped-def]
    """End of what is glued to the numeral that ends at ``at``; ``at`` itself if nothing is (D)."""
    while True:
        if at < stop and text[at] == 0x2E and _digit_at(text, at + 1, stop, classes):
            at, _ = _skip_digits(text, at + 1, stop, classes)
            continue
        if use_exponent:
            end, _, _ = _exponent_at(text, at, stop, classes)
            if end > at:
                at = end
                continue
        end = at
        while True:
            kind, width = _class_at(text, end, stop, classes)
            if kind != LETTER:
                break
            end += width
        if end == at or kind < DIGIT:
            return at
        at, _ = _skip_digits(text, end, stop, classes)


@_inline
def _is_hexadecimal(byte):  # type: ignore[no-untyped-def]
    return 0x30 <= byte <= 0x39 or 0x61 <= byte <= 0x66 or 0x41 <= byte <= 0x46


@_jit
def _uuid_at(text, at, start, stop, classes):  # type: ignore[no-untyped-def]
    """Whether a UUID stands at ``at``, with no word character on either side."""
    if at < start or at + 36 > stop or text[at + 8] != 0x2D:
        return False
    for k in range(36):
        if k == 8 or k == 13 or k == 18 or k == 23:
            if text[at + k] != 0x2D:
                return False
        elif not _is_hexadecimal(text[at + k]):
            return False
    before, _ = _class_before(text, at, start, classes)
    after, _ = _class_at(text, at + 36, stop, classes)
    return before != LETTER and before < DIGIT and after != LETTER and after < DIGIT


@_jit
def _uuid_end(text, at, start, stop, classes):  # type: ignore[no-untyped-def]
    """End of the UUID that the digit at ``at`` belongs to, or -1."""
    group = at
    while group > start and at - group < 12 and _is_hexadecimal(text[group - 1]):
        group -= 1
    if _uuid_at(text, group, start, stop, classes):
        return group + 36
    if group > start and text[group - 1] == 0x2D:
        for back in (9, 14, 19, 24):
            if _uuid_at(text, group - back, start, stop, classes):
                return group - back + 36
    return -1


@_jit
def _copy_digits(text, at, stop, classes, out, filled):  # type: ignore[no-untyped-def]
    """Append the values of all digits in [at, stop) to ``out``; returns the new fill."""
    while at < stop:
        if text[at] < 0x80:
            kind = classes[text[at]]
            at += 1
        else:
            code, width = _decode(text, at)
            kind = classes[code]
            at += width
        if kind >= DIGIT:
            out[filled] = kind - DIGIT
            filled += 1
    return filled


@_jit
def _marks(text, base):  # type: ignore[no-untyped-def]
    """uint64: bit k says that ``text[base + k]`` may begin a digit: an ASCII digit, or a lead byte that some non-ASCII digits have.

    Written so that LLVM turns the loop over a slice of known length into vector compares: 64 bytes in a few instructions.
    """
    marks = np.uint64(0)
    if base + 64 <= text.size:
        block = text[base : base + 64]
        for k in range(64):
            byte = block[k]
            marks |= np.uint64((np.uint8(byte - 0x30) < 10) | (byte >= 0xD9) & ((byte < 0xE2) | (byte > 0xE9))) << np.uint64(k)
    else:
        for k in range(text.size - base):
            byte = text[base + k]
            if 0x30 <= byte <= 0x39 or byte >= 0xD9:
                marks |= np.uint64(1) << np.uint64(k)
    return marks


@_inline
def _next_mark(text, at, stop, block, marks):  # type: ignore[no-untyped-def]
    """(position, block, marks): the first marked byte in [at, stop), or some position from ``stop`` on.

    ``marks`` are those of the 64 bytes from ``block * 64``, kept from call to call.
    """
    if at >= stop:
        return at, block, marks
    if at >> 6 != block:
        block = at >> 6
        marks = _marks(text, block << 6)
    ahead = marks >> np.uint64(at & 63)
    while ahead == 0:
        block += 1
        at = block << 6
        if at >= stop:
            return at, np.int64(-1), marks
        marks = _marks(text, at)
        ahead = marks
    return at + _LOWEST_BIT[((ahead & (~ahead + np.uint64(1))) * _DE_BRUIJN) >> np.uint64(58)], block, marks


@_inline
def _ends_plainly(text, at, stop, plain, classes):  # type: ignore[no-untyped-def]
    """Whether a number that ends at ``at`` certainly ends there: 0 no or not sure, 1 yes, 2 a decimal point and a digit follow."""
    if at >= stop:
        return 1
    after = plain[text[at]]
    if after & 2:
        return 1
    if after & 4:
        if at + 1 >= stop or plain[text[at + 1]] & 2:  # a full stop or comma, and then no digit
            return 1
        return 2 if text[at] == 0x2E and text[at + 1] - 0x30 <= 9 and text[at + 1] >= 0x30 else 0
    if after & 8:
        code, _ = _decode(text, at)
        return 1 if classes[code] == OTHER else 0
    return 0


@_inline
def _plain(text, at, start, stop, plain, classes, digits, filled):  # type: ignore[no-untyped-def]
    """(end, fraction digits) of a number at ``at`` that is nothing but ASCII digits and perhaps a fraction; end is -1 if that is not certain.

    Settles most numbers of most texts with a table look-up on either side, writing their digits; the others go through the full rules.
    """
    failed = (np.int64(-1), np.int64(0))
    hyphen = False
    if at > start and not plain[text[at - 1]] & 1:
        if plain[text[at - 1]] & 8:
            kind, _ = _class_before(text, at, start, classes)
            if kind != OTHER:
                return failed
        elif text[at - 1] == 0x2D and at - 1 > start and plain[text[at - 2]] & 16:
            hyphen = True
        else:
            return failed
    limit = min(stop, at + digits.size - filled)
    end = at
    while end < limit and text[end] - np.uint8(0x30) <= 9 and text[end] >= 0x30:
        digits[filled] = text[end] - 0x30
        filled += 1
        end += 1
    if end - at == 8 or (hyphen and (end - at == 4 or end - at == 12)):  # maybe in a UUID
        return failed
    sure = _ends_plainly(text, end, stop, plain, classes)
    if sure == 1 and end < limit:
        return end, np.int64(0)
    if sure != 2:
        return failed
    point = end
    end += 1
    while end < limit and text[end] >= 0x30 and text[end] <= 0x39:
        digits[filled] = text[end] - 0x30
        filled += 1
        end += 1
    if end < limit and _ends_plainly(text, end, stop, plain, classes) == 1:
        return end, end - point - 1
    return failed


@_inline
def _look_back(text, at, start, before, classes, signs, leading_dot):  # type: ignore[no-untyped-def]
    """(first byte, leading dot?, minus?) of the numeral whose first digit is at ``at`` (A, B)."""
    first, dot, minus = at, False, False
    if before == DOT and leading_dot:
        kind, _ = _class_before(text, at - 1, start, classes)
        if kind != LETTER and kind < DIGIT and kind != DOT:
            first, dot = at - 1, True
    if signs:
        kind, width = _class_before(text, first, start, classes)
        if kind == SIGN:
            previous, _ = _class_before(text, first - width, start, classes)
            if previous == OTHER:
                first -= width
                minus = text[first] != 0x2B
    return first, dot, minus


@_inline
def _in_parentheses(text, first, end, start, stop, classes):  # type: ignore[no-untyped-def]
    """Whether [first, end) is unsigned and stands alone in parentheses that do not follow a word character: ``(1,234)`` in accounts."""
    if first <= start or end >= stop or text[first - 1] != 0x28 or text[end] != 0x29 or classes[text[first]] == SIGN or text[first] == 0xE2:
        return False
    kind, _ = _class_before(text, first - 1, start, classes)
    return kind != LETTER and kind < DIGIT


@_jit
def _scan(text, offsets, valid, row, at, classes, plain, grouping, signs, use_exponent, leading_dot, accounting, out):  # type: ignore[no-untyped-def]
    """Scan rows ``text[offsets[r]:offsets[r + 1]]`` from byte ``at`` of row ``row`` until the text or the room in ``out`` ends.

    Returns (row, at, numbers, digits): where to go on, and how much of ``out`` is filled.
    """
    document, starts, stops, negative, exponents, digit_ends, digits = out
    count, filled = np.int64(0), np.int64(0)
    block, marks = np.int64(-1), np.uint64(0)
    while row < offsets.size - 1:
        start, stop = offsets[row], offsets[row + 1]
        at = max(at, start) if valid[row] else stop
        while True:
            at, block, marks = _next_mark(text, at, stop, block, marks)
            if at >= stop:
                break
            if text[at] >= 0x80:
                code, width = _decode(text, at)
                if classes[code] < DIGIT:
                    at += width
                    continue
            end, fraction = _plain(text, at, start, stop, plain, classes, digits, filled)
            if end >= 0 and count < starts.size:
                document[count], negative[count], exponents[count] = row, False, -fraction
                starts[count], stops[count] = at - start, end - start
                filled += end - at - (fraction > 0)
                digit_ends[count] = filled
                count += 1
                at = end
                continue
            before, _ = _class_before(text, at, start, classes)
            if before == LETTER or (at > start and text[at - 1] == 0x2D) or (at + 8 < stop and text[at + 8] == 0x2D):
                end = _uuid_end(text, at, start, stop, classes)
                if end >= 0:
                    at = end
                    continue
            keep = before != LETTER  # C
            first, dot, minus = _look_back(text, at, start, before, classes, signs, leading_dot)
            run, count_before, filled_before = at, count, filled
            while True:  # numerals joined by x: all kept or all skipped
                end, mantissa, fraction, exponent, fits = _numeral(text, at, start, stop, dot, classes, grouping, use_exponent)
                keep = keep and fits
                if keep:
                    if count == starts.size or filled + (mantissa - at) > digits.size:
                        return row, run, count_before, filled_before
                    filled = _copy_digits(text, at, mantissa, classes, digits, filled)
                    document[count], negative[count] = row, minus
                    starts[count], stops[count] = first - start, end - start
                    exponents[count], digit_ends[count] = exponent - fraction, filled
                    count += 1
                if end >= stop or (text[end] != 0x78 and text[end] != 0x58):  # x, X
                    break
                if end - at == 1 and text[at] == 0x30 and not dot:  # a lone 0: hexadecimal if a hexadecimal digit follows (C)
                    keep = keep and not (end + 1 < stop and _is_hexadecimal(text[end + 1]))
                    break
                if text[end] == 0x58 or not _digit_at(text, end + 1, stop, classes):
                    break
                at = end + 1
                first, dot, minus = at, False, False
            at = _glued_end(text, end, stop, classes, use_exponent)
            if at > end or not keep:  # D
                count, filled = count_before, filled_before
            elif accounting and count == count_before + 1 and _in_parentheses(text, first, end, start, stop, classes):
                starts[count - 1] -= 1
                stops[count - 1] += 1
                negative[count - 1] = True
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
    types = (np.int32, np.int64, np.int64, np.bool_, np.int64, np.int64, np.uint8)
    row, at, room, pieces = 0, 0, rows.nbytes // 16 + 64, []
    while row < len(rows):
        out = tuple(np.empty(room * 4 if kind is np.uint8 else room, kind) for kind in types)
        row, at, count, filled = _scan(rows.text, rows.offsets, rows.valid, row, at, *options, out)
        pieces.append([column[: filled if column.dtype == np.uint8 else count] for column in out])
        room *= 2
    if len(pieces) == 1:
        return pieces[0]
    ends_before = np.cumsum([0, *(len(piece[6]) for piece in pieces)])
    for piece, before in zip(pieces, ends_before, strict=False):
        piece[5] = piece[5] + before
    return [np.concatenate([piece[k] for piece in pieces]) if pieces else np.empty(0, kind) for k, kind in enumerate(types)]


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
    grammar = grammar or Grammar()
    rows = TextRows.of(texts)
    if grammar.pattern is not None:
        return scan_pattern(rows, grammar)
    document, start, stop, negative, exponent, digit_ends, digits = _scan_rows(rows, grammar)
    return Numbers(document, start, stop, negative, digits, np.concatenate([[0], digit_ends]), exponent, rows)


def scan_pattern(rows: TextRows, grammar: Grammar) -> Numbers:
    """:func:`scan` for a grammar made by ``Grammar.from_pattern``: a loop over documents, with the same outputs."""
    pattern = compile_pattern(str(grammar.pattern))
    group = "number" if "number" in pattern.groupindex else 0
    found: list[tuple[int, int, int, str]] = []
    for row, text in enumerate(rows.array.to_pylist()):
        byte = character = 0
        for match in pattern.finditer(text or ""):
            first, last = match.span(group)
            if first == last:
                continue
            if first < character:
                raise GrammarError(f"document {row}: the pattern's matches overlap at character {first}; keep the group `number` out of look-arounds")
            byte += len(text[character:first].encode())
            stop = byte + len(text[first:last].encode())
            found.append((row, byte, stop, text[first:last]))
            byte, character = stop, last
    return _read_surfaces(found, rows, grammar)


def _read_surfaces(found: list[tuple[int, int, int, str]], rows: TextRows, grammar: Grammar) -> Numbers:
    """Numbers from (document, start, stop, surface) quadruples."""
    grouping = re.escape(grammar.grouping) if grammar.grouping else "(?!)"
    literal = re.compile(rf"([-+\u2212]?)((?:\d|(?<=\d){grouping}(?=\d))*)(?:\.(\d*))?(?:[eE]([-+\u2212]?\d+))?")
    negative, exponent, digits, ends = [], [], bytearray(), []
    for row, start, _, surface in found:
        match = literal.fullmatch(surface)
        whole = re.sub(grouping, "", match[2]) if match else ""
        fraction = (match[3] or "") if match else ""
        if not match or not whole + fraction:
            raise GrammarError(f"document {row}, byte {start}: the pattern matched {surface!r}, which does not read as a decimal number")
        power = int((match[4] or "0").replace("\u2212", "-")) if len((match[4] or "").lstrip("-+\u22120")) <= MAX_EXPONENT_DIGITS else None
        if power is None:
            raise GrammarError(f"document {row}, byte {start}: the exponent of {surface[:40]!r} has more than {MAX_EXPONENT_DIGITS} digits")
        negative.append(match[1] in ("-", "\u2212"))
        exponent.append(power - len(fraction))
        digits.extend(int(digit) for digit in whole + fraction)
        ends.append(len(digits))
    columns = np.array([quadruple[:3] for quadruple in found], np.int64).reshape(-1, 3)
    return Numbers(
        columns[:, 0].astype(np.int32),
        np.ascontiguousarray(columns[:, 1]),
        np.ascontiguousarray(columns[:, 2]),
        np.array(negative, np.bool_),
        np.frombuffer(bytes(digits), np.uint8),
        np.array([0, *ends], np.int64),
        np.array(exponent, np.int64),
        rows,
    )


def extract(text: str, grammar: Grammar | None = None) -> list[Number]:
    """All numbers in one text, each with its surface, its place in characters and its exact value.

    >>> [(number.text, number.value) for number in extract("pH 7.4 at -12.5e-3")]
    [('7.4', Decimal('7.4')), ('-12.5e-3', Decimal('-0.0125'))]
    """
    numbers = scan([text], grammar)
    starts, stops = numbers.start, numbers.stop
    if not text.isascii():  # byte offsets to character offsets: count the bytes that begin a character
        before = np.concatenate([[0], np.cumsum((numbers.rows.text & 0xC0) != 0x80)])
        starts, stops = before[starts], before[stops]
    values = numbers.to_decimal()
    return [Number(text[a:b], a, b, value) for a, b, value in zip(starts.tolist(), stops.tolist(), values, strict=True)]
