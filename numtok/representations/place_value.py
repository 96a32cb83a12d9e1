"""Place values: each number spelled out between ``[NUM]`` and ``[/NUM]``, or without them, each
digit with the index of its place.

In: n numbers. Out: the characters of each number as written, one token each, and ``place_value``,
    int16 per token of the document: for a digit of 10**p, p + 1 if p >= 0, else p; 0 for everything
    that is not a digit of a number. 123.45 is 3, 2, 1, 0 (the point), -1, -2.
Inverse: the characters. Exact for every decimal, as written. Place-value positions on GPT-NeoX, see
    the README's references.

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

**Least significant digit first** (``order="lsd"``), as papers on arithmetic train: the mantissa is
written backwards, each digit with its own index; the sign stays in front and the exponent after.
-123.45e6 is ``- 5 4 . 3 2 1 e 6``. The same again is the inverse.

**Offsets** (``max_offset=k``), so that a model meets the indices of longer numbers than it is
trained on: all indices of a document's digits are moved away from 0 by one number from 0 to k. It
is drawn from ``seed`` and the document's text, so that it does not depend on how documents are put
into batches; change the seed to draw anew. Transformers Can Do Arithmetic with the Right Embeddings
(McLeish et al. 2024), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays.kernels import allocating_kernel
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import digit_symbols
from numtok.representations.base import Mask, Spelled, Symbols
from numtok.representations.columns import Column
from numtok.representations.digit_symbols import LIMIT, LOWER_E, MINUS, PLUS, UPPER_E, AsWritten
from numtok.representations.symbol_grammar import Decimals


@dataclass(frozen=True)
class PlaceValue(AsWritten):
    """Digits one by one, with the index of each digit's place.

    Attributes:
        overflow: for numbers with an index beyond ±32767 (``"clip"``: those indices are clipped).
        order: ``"msd"``, digits as written, or ``"lsd"``, the least significant first.
        max_offset: the largest random offset; 0 for none.
        seed: of the offsets, 0 to 2**63 - 1.
        brackets: whether ``[NUM]`` and ``[/NUM]`` stand around each number; without them, ``order``
            has to be ``"msd"``, as nothing tells such digits from those of the text.

    Example:
        >>> import numtok
        >>> place = numtok.PlaceValue()
        >>> encoded = place.encode(numtok.Numbers.parse(["-60.2"]))
        >>> [place.alphabet[symbol] for symbol in encoded.symbols]
        ['-', '6', '0', '.', '2']
        >>> encoded.stream.tolist()
        [0, 2, 1, 0, -1]
    """

    overflow: str = "text"
    order: str = "msd"
    max_offset: int = 0
    seed: int = 0
    brackets: bool = True
    name = "place"
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "lsd": {"order": "lsd"},
        **AsWritten.bare,
    }
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({"order": "lsd"},)
    alphabet = digit_symbols.alphabet(1)
    declared = (Column("place_value", pa.int16(), np.int64, per="token"),)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"order": ("msd", "lsd")}
    limits: ClassVar[Mapping[str, tuple[int, int]]] = {
        "max_offset": (0, LIMIT - 1),
        "seed": (0, 2**63 - 1),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order == "lsd" and not self.brackets:
            raise self.refused(
                "without brackets nothing tells digits that are written backwards from those of the"
                " text; take order='msd', or brackets=True"
            )

    def fits(self, numbers: Numbers) -> Mask:
        return digit_symbols.places_fit(numbers, LIMIT - self.max_offset)

    def encode(self, numbers: Numbers) -> Spelled:
        spelled, rows = digit_symbols.to_symbols(numbers), numbers.rows
        assert spelled.stream is not None
        if self.max_offset:
            texts = numbers.document, rows.text, rows.offsets
            _move(spelled.stream, spelled.offsets, *texts, self.seed, self.max_offset)
        if self.order == "msd":
            return spelled
        order = _mantissas_backwards(spelled.symbols, spelled.offsets)
        return Spelled(spelled.symbols[order], spelled.offsets, spelled.stream[order])

    @property
    def exact_digit_range(self) -> range:
        return range(self.max_offset - LIMIT, LIMIT - self.max_offset)

    def encode_one(self, written: bytes, decimal: str) -> Symbols:
        symbols = digit_symbols.one_to_symbols(written, decimal)
        if self.order == "msd":
            return symbols
        order: npt.NDArray[np.int64] = _mantissas_backwards(symbols, np.array([0, len(symbols)]))
        return symbols[order]

    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        symbols = spelled.symbols
        if self.order == "lsd":
            symbols = symbols[_mantissas_backwards(symbols, spelled.offsets)]
        return digit_symbols.from_symbols(symbols, spelled.offsets)

    def decimals(self, grammar: Grammar) -> Decimals:
        return Decimals(self.alphabet, grammar, backwards=self.order == "lsd")


@allocating_kernel
def _mantissas_backwards(symbols, offsets):  # type: ignore[no-untyped-def]
    """Return int64[symbols]: their order with each number's mantissa reversed, which is what stands
    after the sign and before the exponent.
    """
    order = np.arange(symbols.size)
    for i in range(offsets.size - 1):
        first, last = offsets[i], offsets[i]
        if first < offsets[i + 1] and (symbols[first] == MINUS or symbols[first] == PLUS):
            first += 1
            last += 1
        while last < offsets[i + 1] and symbols[last] != LOWER_E and symbols[last] != UPPER_E:
            last += 1
        for k in range(first, last):
            order[k] = last - 1 - (k - first)
    return order


@allocating_kernel
def _move(places, offsets, document, text, rows, seed, max_offset):  # type: ignore[no-untyped-def]
    """Move the places of every document's digits away from 0, by the document's offset."""
    current, offset = -1, np.int64(0)
    for i in range(document.size):
        if document[i] != current:
            current = document[i]
            # FNV-1a of the text, then the finish of splitmix64
            value = np.uint64(0xCBF29CE484222325) ^ np.uint64(seed)
            for k in range(rows[current], rows[current + 1]):
                value = (value ^ np.uint64(text[k])) * np.uint64(0x100000001B3)
            value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            offset = np.int64((value ^ (value >> np.uint64(31))) % np.uint64(max_offset + 1))
        for k in range(offsets[i], offsets[i + 1]):
            if places[k] != 0:
                places[k] = max(
                    -LIMIT, min(LIMIT, places[k] + (offset if places[k] > 0 else -offset))
                )
