"""Place values: each number spelled out between ``[NUM]`` and ``[/NUM]``, each digit with the index of its place.

In: n numbers. Out: the characters of each number as written, one token each, and ``place_value``, int16 per token of the document: for a digit of
10**p, p + 1 if p >= 0, else p; 0 for everything that is not a digit of a number. 123.45 is 3, 2, 1, 0 (the point), -1, -2. Inverse: the characters.
Exact for every decimal, as written. Place-value positions on GPT-NeoX, see the README's references.

=====================  ==================================================================================================
literal                indices
=====================  ==================================================================================================
grouped ``1,234``      4 0 3 2 1: the separator is a token with index 0
signed ``-5``, ``+5``  0 1; U+2212 is written ``-``
leading zeros ``007``  3 2 1, as any other digit
leading dot ``.5``     0 -1
exponent ``1.5e3``     4 0 3 0 0: the mantissa's digits at their true places, the exponent's digits 0
other scripts ``１２``  the ASCII digits 1 2, indices 2 1
=====================  ==================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numba
import numpy as np
import pyarrow as pa

from numtok.numbers import Numbers
from numtok.representations.base import Mask, Spelled, SpelledOut
from numtok.scan_rules import _class_at
from numtok.unicode_tables import DIGIT, character_classes

LIMIT = 32767

_jit = numba.njit(cache=True, nogil=True)


@dataclass(frozen=True)
class PlaceValue(SpelledOut):
    """Digits one by one, with the index of each digit's place.

    Attributes:
        overflow: for numbers with an index beyond ±32767 (``"clip"``: those indices are clipped).
    """

    overflow: str = "text"
    name: ClassVar[str] = "place"
    alphabet: ClassVar[tuple[str, ...]] = tuple("0123456789-+.eE,_'")
    stream: ClassVar[tuple[str, pa.DataType] | None] = ("place_value", pa.int16())

    def __post_init__(self) -> None:
        self._check_overflow()

    def fits(self, numbers: Numbers) -> Mask:
        digits = np.diff(numbers.digit_offsets)
        return (digits + numbers.exponent <= LIMIT) & (numbers.exponent >= -LIMIT)

    def encode(self, numbers: Numbers) -> Spelled:
        rows = numbers.rows
        symbols, offsets, places = _spell(
            rows.text,
            rows.offsets,
            numbers.document,
            numbers.start,
            numbers.stop,
            np.diff(numbers.digit_offsets),
            numbers.exponent,
            character_classes(),
            _SYMBOL_OF,
        )
        return Spelled(symbols, offsets, places)

    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        characters = np.frombuffer("".join(self.alphabet).encode(), np.uint8)[spelled.symbols]
        offsets = pa.py_buffer(np.ascontiguousarray(spelled.offsets, np.int64))
        return pa.LargeStringArray.from_buffers(len(spelled.offsets) - 1, offsets, pa.py_buffer(characters))


def _symbols() -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
    """uint16[128]: the symbol of each ASCII character; 255 for none."""
    table = np.full(128, 255, np.uint16)
    for symbol, character in enumerate(PlaceValue.alphabet):
        table[ord(character)] = symbol
    return table


_SYMBOL_OF = _symbols()
_MINUS, _COMMA, _NONE = PlaceValue.alphabet.index("-"), PlaceValue.alphabet.index(","), 255


@_jit
def _spell(text, offsets, document, start, stop, digit_counts, exponent, classes, symbol_of):  # type: ignore[no-untyped-def]
    """(symbols, offsets, places) of the surfaces."""
    count = document.size
    size = 0
    for i in range(count):
        size += stop[i] - start[i]
    symbols, places = np.empty(size, np.uint16), np.empty(size, np.int16)
    out = np.zeros(count + 1, np.int64)
    filled = 0
    for i in range(count):
        at, end = offsets[document[i]] + start[i], offsets[document[i]] + stop[i]
        power = digit_counts[i] - 1 + exponent[i]  # of the next digit: the mantissa's digits come first, the exponent's after them
        left = digit_counts[i]
        while at < end:
            kind, width = _class_at(text, at, end, classes)
            place = 0
            if kind >= DIGIT:
                symbol = kind - DIGIT
                if left > 0:
                    place = max(-LIMIT, min(LIMIT, power + 1 if power >= 0 else power))
                    power -= 1
                    left -= 1
            elif text[at] == 0x28:  # (1,234) in accounts
                symbol = _MINUS
            elif text[at] == 0x29:
                symbol = _NONE
            elif text[at] >= 0x80:  # U+2212, or a separator of digit groups that is not ASCII
                symbol = _MINUS if text[at] == 0xE2 and text[at + 1] == 0x88 else _COMMA
            else:
                symbol = np.int64(symbol_of[text[at]])
            if symbol != _NONE:
                symbols[filled] = symbol
                places[filled] = place
                filled += 1
            at += width
        out[i + 1] = filled
    return symbols[:filled], out, places[:filled]
