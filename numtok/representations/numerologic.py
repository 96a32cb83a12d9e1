"""NumeroLogic: each number with the count of its digits in front, then digit by digit.

In: n numbers. Out: between ``[NUM]`` and ``[/NUM]``, how many digits stand before the point, if
    there is a point a point and how many stand behind it, a colon, and the characters of the number
    as written, one token each. Inverse: what stands behind the last colon. Exact for every decimal, as
    written. NumeroLogic (Schwartz et al. 2024), as its code writes it: ``{2:71}*{2:63}``,
    ``sin({1.1:0.5})`` (EliSchwartz/NumeroLogic, ``train.py``), with ``[NUM]`` and ``[/NUM]`` for
    the braces.

=============  =============================
literal        tokens between the brackets
=============  =============================
``71``         2 : 7 1
``0.5``        1 . 1 : 0 . 5
``-1,234``     4 : - 1 , 2 3 4
``.5e-10``     0 . 1 : . 5 e - 1 0
=============  =============================

What their strings leave open is settled here: signs, separators and exponents stand with the
number, and are not counted.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import allocating_kernel, inner_kernel
from numtok.numbers.automaton import Continuation, Part
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import digit_symbols
from numtok.representations.base import Mask, Spelled, SpelledOut, Symbols
from numtok.representations.digit_symbols import LOWER_E, POINT, UPPER_E
from numtok.representations.symbol_grammar import Decimals

MOST_WRITTEN = 20  # digits on either side of the point that a model may announce
COLON = len(digit_symbols.alphabet(1))


@dataclass(frozen=True)
class NumeroLogic(SpelledOut):
    """``2 : 7 1``: the count of the digits, then the digits.

    Example:
        >>> import numtok
        >>> logic = numtok.NumeroLogic()
        >>> encoded = logic.encode(numtok.Numbers.parse(["71"]))
        >>> [logic.alphabet[symbol] for symbol in encoded.symbols]
        ['2', ':', '7', '1']
    """

    name = "numerologic"
    order = "msd"
    alphabet = (*digit_symbols.alphabet(1), ":")

    def fits(self, numbers: Numbers) -> Mask:
        return np.ones(len(numbers), np.bool_)

    def encode(self, numbers: Numbers) -> Spelled:
        spelled = digit_symbols.to_symbols(numbers, places=False)
        return Spelled(*_with_counts(spelled.symbols, spelled.offsets))

    @property
    def exact_digit_range(self) -> range:
        return range(-digit_symbols.LIMIT, digit_symbols.LIMIT)

    def encode_one(self, written: bytes, decimal: str) -> Symbols:
        symbols = digit_symbols.one_to_symbols(written, decimal)
        spelled: Symbols = _with_counts(symbols, np.array([0, len(symbols)]))[0]
        return spelled

    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        symbols, offsets = spelled.symbols, spelled.offsets
        number = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        colons, start = np.flatnonzero(symbols == COLON), offsets[:-1].copy()
        np.maximum.at(start, number[colons], colons + 1)
        behind = symbols[np.arange(len(symbols)) >= start[number]]
        return digit_symbols.from_symbols(behind, memory.offsets_of(offsets[1:] - start))

    def continuation(self, grammar: Grammar) -> Continuation:
        """Return the automaton of counts up to :data:`MOST_WRITTEN`, and then so many digits."""
        return _continuation(grammar)


@allocating_kernel
def _with_counts(symbols, offsets):  # type: ignore[no-untyped-def]
    """Return (symbols, offsets) with the counts and a colon in front of each number."""
    numbers = offsets.size - 1
    counts = np.zeros((numbers, 2), np.int64)  # before the point, and behind it
    pointed = np.zeros(numbers, np.int64)
    ends = np.zeros(numbers + 1, np.int64)
    for i in range(numbers):
        for symbol in symbols[offsets[i] : offsets[i + 1]]:
            if symbol in (LOWER_E, UPPER_E):
                break
            if symbol == POINT:
                pointed[i] = 1
            elif symbol < 10:
                counts[i, pointed[i]] += 1
        ends[i + 1] = ends[i] + 1 + offsets[i + 1] - offsets[i]
        for side in range(1 + pointed[i]):
            ends[i + 1] += side + _width(counts[i, side])
    out = np.empty(ends[-1], np.uint16)
    for i in range(numbers):
        at = ends[i]
        for side in range(1 + pointed[i]):
            if side == 1:
                out[at] = POINT
                at += 1
            count, last = counts[i, side], at + _width(counts[i, side])
            for k in range(last - 1, at - 1, -1):
                out[k] = count % 10
                count //= 10
            at = last
        out[at] = COLON
        out[at + 1 : ends[i + 1]] = symbols[offsets[i] : offsets[i + 1]]
    return out, ends


@inner_kernel
def _width(count):  # type: ignore[no-untyped-def]
    """Return the number of decimal digits of a count."""
    width = 1
    while count >= 10:
        count //= 10
        width += 1
    return width


@functools.lru_cache(maxsize=8)
def _continuation(grammar: Grammar) -> Continuation:
    numbers = Decimals(NumeroLogic.alphabet, grammar)

    def written_count(count: int) -> Part:
        return numbers.then(*map(numbers.mark, str(count)))

    colon, counts, forms = numbers.mark(":"), range(MOST_WRITTEN + 1), []
    for whole in counts:
        forms.append(numbers.then(written_count(whole), colon, numbers.counted(whole, None)))
        for fraction in counts:
            point = numbers.then(written_count(whole), numbers.mark("."), written_count(fraction))
            forms.append(numbers.then(point, colon, numbers.counted(whole, fraction)))
    return numbers.continuation(numbers.either(*forms), len(NumeroLogic.alphabet))
