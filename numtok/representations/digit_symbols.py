"""Numbers as they are written, digit by digit or in groups of digits: :class:`AsWritten`, what
PlaceValue and Digits share.

In: n numbers with their text. Out: symbols, of a table that begins with the ten digits and
    :data:`MARKS`, and goes on with the groups of two digits and then those of three; and of each
    symbol the index of its place: for the digit of 10**p, p + 1 if p >= 0, else p; for a group,
    that of its last digit; 0 for everything that is not a digit of the mantissa. Inverse: the
    characters of the symbols, one after the other.

The symbols are those of the default grammar, whatever the marks of the text: ``.`` is the decimal
mark and ``,`` groups digits, so that a model reads 1.234,56 and 1,234.56 alike (the tokenizer
writes its grammar's own: :mod:`numtok.numbers.decimals`). Every run of digits between other
characters is cut by itself, so that no group reaches over a separator: 1,234 in groups of two is
1 , 2 34. U+2212, and the parentheses of accounts, are written ``-``; a separator that is a space or
not ASCII, ``,``; U+066B, the decimal mark of Arabic, ``.``; the ``D`` of an exponent, ``E``; digits
of other scripts, as ASCII.

**Without brackets** (``brackets=False``), numbers are tokens of the text, as a plain tokenizer that
cuts digits writes them: no ``[NUM]`` before and no ``[/NUM]`` behind them, the space in front is
that of the text, and the marks are those of the text's grammar. Nothing but the text tells where
such a number begins: columns say it of text that was encoded, and in text that a model writes the
grammar reads it.
"""

from __future__ import annotations

import dataclasses
import functools
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays.kernels import allocating_kernel, inlined_kernel, inner_kernel
from numtok.arrays.unicode_classes import DIGIT, character_classes
from numtok.arrays.utf8 import class_at
from numtok.numbers.automaton import Continuation
from numtok.numbers.decimals import marks_of
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.rules import skip_digits
from numtok.representations.base import AddedTokens, Mask, Spelled, SpelledOut, Symbols
from numtok.representations.symbol_grammar import EXPONENT_DIGITS, Decimals

LIMIT = 32767  # of the index of a place
MARKS = tuple("-+.eE,_'")
LONGEST_GROUP = 3
# symbols
MINUS, PLUS, POINT, LOWER_E, UPPER_E, COMMA = (10 + MARKS.index(mark) for mark in "-+.eE,")
_GROUPS_OF_TWO = 10 + len(MARKS)
_GROUPS_OF_THREE = _GROUPS_OF_TWO + 100
_NONE = 2**16 - 1
_ZERO, _FIRST_ROW = np.zeros(1, np.int64), np.zeros(1, np.int32)


@functools.lru_cache(maxsize=LONGEST_GROUP)
def groups(longest: int) -> tuple[str, ...]:
    """Return all groups of one to so many digits, the shorter ones first: ``0`` to ``9``, ``00`` to
    ``99``, ``000`` to ``999``.
    """
    return tuple(
        f"{value:0{width}d}" for width in range(1, longest + 1) for value in range(10**width)
    )


@functools.lru_cache(maxsize=LONGEST_GROUP)
def alphabet(longest: int) -> tuple[str, ...]:
    """Return the symbols for groups of at most so many digits, in order."""
    return (*groups(1), *MARKS, *groups(longest)[10:])


class AsWritten(SpelledOut):
    """Numbers as they are written, with or without brackets.

    Attributes:
        brackets: whether ``[NUM]`` and ``[/NUM]`` stand around each number.
    """

    brackets: bool
    later = ("brackets",)
    bare: ClassVar[Mapping[str, Mapping[str, Any]]] = {"bare": {"brackets": False}}

    @property
    def bracketed(self) -> bool:
        return self.brackets

    def without_brackets(self) -> SpelledOut | None:
        if not self.brackets or self.order != "msd":
            return None
        bare: SpelledOut = dataclasses.replace(self, brackets=False)  # type: ignore[type-var]
        return bare

    @abstractmethod
    def decimals(self, grammar: Grammar) -> Decimals:
        """Return the automaton of the grammar's numbers, in the symbols of this representation."""

    def continuation(self, grammar: Grammar) -> Continuation:
        return self._rules(grammar, EXPONENT_DIGITS)

    def reading(self, grammar: Grammar) -> Continuation | None:
        return None if self.marks_begin else self._rules(grammar, None)

    def _rules(self, grammar: Grammar, exponent_digits: int | None) -> Continuation:
        numbers = self.decimals(grammar)
        return numbers.continuation(numbers.number(exponent_digits), len(self.alphabet))

    def token_strings_in(self, grammar: Grammar) -> tuple[str, ...]:
        if self.brackets:
            return self.token_strings
        marks = {mark: one for mark, one in marks_of(grammar).items() if one in MARKS}
        return tuple(marks.get(symbol, symbol) for symbol in self.token_strings)

    def added_tokens(self, two_forms: bool) -> AddedTokens:
        added = super().added_tokens(two_forms)
        return added if self.brackets else added._replace(own=())


def places_fit(numbers: Numbers, limit: int = LIMIT) -> Mask:
    """Return bool[n]: whether all places of each number are within ±``limit``."""
    return (np.diff(numbers.digit_offsets) + numbers.exponent <= limit) & (
        numbers.exponent >= -limit
    )


def to_symbols(
    numbers: Numbers, group: int = 1, from_left: bool = False, places: bool = True
) -> Spelled:
    """Return the symbols of each number, and with ``places`` the index of each one's place, int16,
    within ±32767.

    Args:
        numbers: with their text.
        group: digits of a group, 1 to 3.
        from_left: whether the digits in front of the point are cut from the left, so that the last
            group is the short one; those after it are always.
        places: whether places are wanted.
    """
    rows, digits = numbers.rows, (np.diff(numbers.digit_offsets), numbers.exponent)
    spans = numbers.document, numbers.start, numbers.stop
    surfaces = _Surfaces(rows.text, rows.offsets, *spans, *digits)
    symbols, offsets, indices = _spell(
        surfaces, character_classes(), _symbol_of(numbers.decimal), group, from_left, places
    )
    return Spelled(symbols, offsets, indices if places else None)


def one_to_symbols(
    written: bytes, decimal: str, group: int = 1, from_left: bool = False
) -> Symbols:
    """Convert one number to symbols as :func:`to_symbols` does, without places: its text alone,
    with that decimal mark.
    """
    if group == 1 and written.isascii():  # ten times as fast for one
        octets = np.frombuffer(written.translate(_bytes_of(decimal), b")"), np.uint8)
        return octets.astype(np.uint16)
    text, length = np.frombuffer(bytearray(written), np.uint8), np.array([len(written)])
    surface = _Surfaces(text, _ZERO, _FIRST_ROW, _ZERO, length, _ZERO, _ZERO)
    options = group, from_left, False
    symbols: Symbols = _spell(surface, character_classes(), _symbol_of(decimal), *options)[0]
    return symbols


def from_symbols(symbols: Symbols, offsets: npt.NDArray[np.int64]) -> pa.LargeStringArray:
    """Convert symbols back to the text of each number: the inverse of :func:`to_symbols`."""
    written, ends = _write(symbols, offsets, *_characters())
    return pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(ends), pa.py_buffer(written)
    )


@functools.cache
def _symbol_of(decimal: str) -> Symbols:
    """Return uint16[128]: the symbol of each ASCII character that is no digit; ``_NONE`` for those
    that are not written.
    """
    table = np.full(128, _NONE, np.uint16)
    table[[ord(mark) for mark in MARKS]] = np.arange(10, 10 + len(MARKS))
    table[[ord(" "), ord(".")]] = COMMA
    table[ord(decimal)] = POINT
    table[[ord("d"), ord("D"), ord("(")]] = LOWER_E, UPPER_E, MINUS  # (1,234) in accounts
    return table


@functools.cache
def _bytes_of(decimal: str) -> bytes:
    """Return 256 symbols: those of ASCII's digits and of :func:`_symbol_of`."""
    table = _symbol_of(decimal).copy()
    table[ord("0") : ord("9") + 1] = range(10)
    return table.astype(np.uint8).tobytes().ljust(256)


@functools.cache
def _characters() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return (uint8[symbols, 3], uint8[symbols]): the characters of each symbol, and how many it
    has.
    """
    symbols = alphabet(LONGEST_GROUP)
    padded = "".join(symbol.ljust(LONGEST_GROUP) for symbol in symbols).encode()
    characters = np.frombuffer(padded, np.uint8).reshape(-1, LONGEST_GROUP)
    return characters, np.array([*map(len, symbols)], np.uint8)


class _Surfaces(NamedTuple):
    """Number ``i`` lies at ``start[i]`` to ``stop[i]`` in the row that begins at
    ``text[offsets[document[i]]]``.

    It has ``digits[i]`` digits in its mantissa and an exponent after the last of them.
    """

    text: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    document: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    stop: npt.NDArray[np.int64]
    digits: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int64]


@allocating_kernel
def _spell(surfaces, classes, symbol_of, group, left, with_places):  # type: ignore[no-untyped-def]
    """Return (symbols, offsets, places) of the surfaces; no places if they are not wanted."""
    text, count, size = surfaces.text, surfaces.start.size, 0
    for i in range(count):
        size += surfaces.stop[i] - surfaces.start[i]
    symbols, places = np.empty(size, np.uint16), np.empty(size if with_places else 0, np.int16)
    out = np.zeros(count + 1, np.int64)
    filled = 0
    for i in range(count):
        begin, remaining = surfaces.offsets[surfaces.document[i]], surfaces.digits[i]
        at, end = begin + surfaces.start[i], begin + surfaces.stop[i]
        # of the next digit: the mantissa's digits come first, the exponent's after them
        power = remaining - 1 + surfaces.exponent[i]
        in_run, from_left = 0, left  # digits left of the run, and the side they are cut from
        while at < end:
            kind, width = class_at(text, at, end, classes)
            place = 0
            if kind >= DIGIT:
                symbol = kind - DIGIT
                at += width
                if group > 1:
                    if in_run == 0:
                        in_run = 1 + skip_digits(text, at, end, classes)[1]
                    further = min(group, in_run) - 1 if from_left else (in_run - 1) % group
                    in_run -= further + 1
                    symbol, at = _group(text, at, end, classes, symbol, further)
                    power -= further
                    remaining -= further
                if remaining > 0:
                    place = max(-LIMIT, min(LIMIT, power + 1 if power >= 0 else power))
                    power -= 1
                    remaining -= 1
            else:
                symbol = _mark(text, at, symbol_of)
                from_left = symbol == POINT or (left if symbol in (LOWER_E, UPPER_E) else from_left)
                at += width
                if symbol == _NONE:
                    continue
            symbols[filled] = symbol
            if with_places:
                places[filled] = place
            filled += 1
        out[i + 1] = filled
    return symbols[:filled], out, places[:filled]


@inlined_kernel
def _group(text, at, end, classes, symbol, further):  # type: ignore[no-untyped-def]
    """Return (the symbol of a group that begins with the digit ``symbol``, where it ends)."""
    for _ in range(further):
        kind, width = class_at(text, at, end, classes)
        symbol = symbol * 10 + kind - DIGIT
        at += width
    first = 0 if further == 0 else _GROUPS_OF_TWO if further == 1 else _GROUPS_OF_THREE
    return symbol + first, at


@inner_kernel
def _mark(text, at, symbol_of):  # type: ignore[no-untyped-def]
    """Return the symbol of the mark at ``at``; ``_NONE`` for one that is not written."""
    if text[at] >= 0x80:  # U+2212, U+066B, or a separator of digit groups that is not ASCII
        if text[at] == 0xD9 and text[at + 1] == 0xAB:
            return np.int64(POINT)
        return np.int64(MINUS if text[at] == 0xE2 and text[at + 1] == 0x88 else COMMA)
    return np.int64(symbol_of[text[at]])


@allocating_kernel
def _write(symbols, offsets, characters, widths):  # type: ignore[no-untyped-def]
    """Return (characters, where each number's end): the characters of the symbols, one after the
    other.
    """
    size = 0
    for symbol in symbols:
        size += widths[symbol]
    out, ends = np.empty(size, np.uint8), np.zeros(offsets.size, np.int64)
    filled = 0
    for i in range(offsets.size - 1):
        for k in range(offsets[i], offsets[i + 1]):
            for character in range(widths[symbols[k]]):
                out[filled] = characters[symbols[k], character]
                filled += 1
        ends[i + 1] = filled
    return out, ends
