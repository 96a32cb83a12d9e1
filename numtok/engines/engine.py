"""Inputs and outputs of an engine: numbers to take out of the text, and the ids that come back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.text_rows import TextRows
from numtok.numbers.numbers import Numbers

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class NumtokTokens:
    """The added tokens of numtok."""

    # ids of those that stand for a number, ``[NUM]`` and, if there are two forms, `` [NUM]``; -1 if
    # there is none. For numbers without brackets, the id of one of the symbols that may begin them;
    # for those that are tokens of the text (``as_text``), an id beyond all tokens.
    unspaced: int
    spaced: int = -1
    # ids of the others, ``[/NUM]`` and the symbols of spelled-out numbers: what looks like them in
    # a text is ordinary text
    reserved: tuple[int, ...] = ()
    as_text: bool = False


class Slots(NamedTuple):
    """Places in the text where the tokens of c numbers go instead of the numbers, in order."""

    per_document: Ints  # int64[documents + 1], offsets of each document's slots
    start: Ints  # int64[c], byte offsets within the document, without the space before
    stop: Ints
    # int32, flat ids to put in place of each slot, in its form without and with the space
    unspaced: Ids
    spaced: Ids
    offsets: Ints  # int64[c + 1] into both

    @classmethod
    def of(cls, numbers: Numbers, unspaced: Ids, spaced: Ids, offsets: Ints) -> Slots:
        """Return a slot for each of these numbers."""
        places = numbers.per_document(), numbers.start, numbers.stop
        return cls(*places, unspaced, spaced, offsets)

    @classmethod
    def none(cls, rows: int) -> Slots:
        """Return no slots in so many rows."""
        places, ids = np.empty(0, np.int64), np.empty(0, np.int32)
        zeros = np.zeros(rows + 1, np.int64)
        return cls(zeros, places, places, ids, ids, zeros[:1])

    def part(self, first: int, last: int) -> Slots:
        """Return the slots of the documents from ``first`` to ``last``."""
        slots = slice(self.per_document[first], self.per_document[last])
        tokens = slice(self.offsets[slots.start], self.offsets[slots.stop])
        return Slots(
            self.per_document[first : last + 1] - slots.start,
            self.start[slots],
            self.stop[slots],
            self.unspaced[tokens],
            self.spaced[tokens],
            self.offsets[slots.start : slots.stop + 1] - tokens.start,
        )


class Encoded(NamedTuple):
    """Token ids of n documents.

    Attributes:
        ids: int32[total]. offsets: int64[n + 1].
        positions: int64[c]: where in ``ids`` each slot's first id stands.
        spaced: bool[c]: whether the slot took the space before it along.
    """

    ids: Ids
    offsets: Ints
    positions: Ints
    spaced: Mask

    @classmethod
    def empty(cls, ids: int, rows: int, spaced: Mask) -> Encoded:
        """Return room for so many ids of so many rows."""
        offsets, positions = memory.empty(rows + 1, np.int64), memory.empty(len(spaced), np.int64)
        return cls(memory.empty(ids, np.int32), offsets, positions, spaced)

    def tokens_at(self, starts: Ints, document: Ids, stops: Ints) -> Ints:
        """Return int64[n], the first token of its ``document`` that ends behind each of ``starts``;
        the last one if none does. ``starts`` and ``stops``, the ends of all tokens, int64[total],
        are bytes or characters of a document.
        """
        scale = 1 + max(starts.max(initial=0), stops.max(initial=0))
        of_token = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        ends = np.maximum.accumulate(stops + of_token * scale)
        tokens = np.searchsorted(ends, starts + document * np.int64(scale), "right")
        return np.asarray(np.minimum(tokens, self.offsets[document + 1] - 1))

    @classmethod
    def joined(cls, parts: Sequence[Encoded]) -> Encoded:
        """Return the documents of all parts, in order."""
        before = itertools.accumulate((len(part.ids) for part in parts), initial=0)
        moved = list(zip(parts, before, strict=False))
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([[0], *(part.offsets[1:] + shift for part, shift in moved)]),
            np.concatenate([part.positions + shift for part, shift in moved]),
            np.concatenate([part.spaced for part in parts]),
        )


class Engine(Protocol):
    """Encodes text with numbers taken out."""

    name: str

    def encode(self, rows: TextRows, slots: Slots) -> Encoded: ...

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Return int64[n], the position in ``encoded.ids`` of the token in which each number
        begins, for text encoded with its numbers in it.

        A number whose first character has no token begins in the next that has one. ``wanted``:
        bool[rows]; results of other rows are undefined.
        """
