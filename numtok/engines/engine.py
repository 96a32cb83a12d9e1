"""What an engine takes and gives: the numbers to take out of the text, and the ids that come back;
and the questions about a tokenizer.json that all engines ask.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from numtok.arrays.text_rows import TextRows
from numtok.numbers.numbers import Numbers

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
Config = dict[str, Any]  # a parsed tokenizer.json


@dataclass(frozen=True)
class NumtokTokens:
    """The added tokens of numtok."""

    # ids of those that stand for a number, ``[NUM]`` and, if there are two forms, `` [NUM]``; -1 if
    # there is none. For numbers without a frame, of one of the symbols that may begin them; for those
    # that are tokens of the text (``as_text``), an id beyond all tokens.
    plain: int
    spaced: int = -1
    # ids of the others, ``[/NUM]`` and the symbols of spelled-out numbers: what looks like them in
    # a text is ordinary text
    reserved: tuple[int, ...] = ()
    as_text: bool = False


class Slots(NamedTuple):
    """Places in the text where the tokens of c numbers go instead of the numbers, in order."""

    document: npt.NDArray[np.int32]  # int32[c]
    per_document: Ints  # int64[documents + 1], offsets of each document's slots
    start: Ints  # int64[c], byte offsets within the document, without the space before
    stop: Ints
    # int32, flat ids to put in place of each slot, in its form without and with the space
    plain: Ids
    spaced: Ids
    offsets: Ints  # int64[c + 1] into both

    @classmethod
    def of(cls, numbers: Numbers, plain: Ids, spaced: Ids, offsets: Ints) -> Slots:
        """Return a slot for each of these numbers."""
        places = numbers.document, numbers.per_document(), numbers.start, numbers.stop
        return cls(*places, plain, spaced, offsets)

    @classmethod
    def none(cls, rows: int) -> Slots:
        """Return no slots in so many rows."""
        places, ids = np.empty(0, np.int64), np.empty(0, np.int32)
        offsets = np.zeros(rows + 1, np.int64)
        return cls(ids, offsets, places, places, ids, ids, np.zeros(1, np.int64))

    def part(self, first: int, last: int) -> Slots:
        """Return the slots of the documents from ``first`` to ``last``."""
        own = slice(self.per_document[first], self.per_document[last])
        tokens = slice(self.offsets[own.start], self.offsets[own.stop])
        return Slots(
            self.document[own] - np.int32(first),
            self.per_document[first : last + 1] - own.start,
            self.start[own],
            self.stop[own],
            self.plain[tokens],
            self.spaced[tokens],
            self.offsets[own.start : own.stop + 1] - tokens.start,
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
    """Encodes text with numbers taken out.

    ``is_fast``: much faster than ``tokenizers`` by itself.
    """

    name: str
    is_fast: bool

    def encode(self, rows: TextRows, slots: Slots) -> Encoded: ...

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Return int64[n], the position in ``encoded.ids`` of the token in which each number begins,
        for text encoded with its numbers in it.

        A number whose first character has no token begins in the next that has one. ``wanted``:
        bool[rows]; results of other rows are undefined.
        """

    def spans(self, rows: TextRows, slots: Slots) -> Ints | None:
        """Return int64[t, 2], the characters that each token of the rows covers, if every number is
        one token; None if the engine cannot tell.
        """


def is_byte_level(config: Config) -> bool:
    """Whether this is byte-level BPE: bytes have tokens, the chunks between added tokens are
    independent, and a space is a byte as any other.
    """
    steps = steps_of(config.get("pre_tokenizer"), "pretokenizers")
    return config["model"].get("type") == "BPE" and any(s["type"] == "ByteLevel" for s in steps)


def byte_of_character() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for: printable Latin-1
    characters stand for themselves, those from U+0100 on for the other bytes, as in GPT-2.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + k): byte for k, byte in enumerate(others)
    }


def kind_of(config: Config) -> str:
    """Return the name of a kind of tokenizer: ``byte-level BPE``, ``WordPiece``."""
    return "byte-level BPE" if is_byte_level(config) else str(config["model"].get("type", "BPE"))


def steps_of(part: Config | None, children: str) -> list[Config]:
    """Return a component in a list, or the members of a sequence, in order."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [step for child in part[children] for step in steps_of(child, children)]
    return [part]


def without_numbers(config: Config, tokens: NumtokTokens, parse_special: bool) -> Config:
    """Return ``config`` as the engines take it: no number tokens, no truncation or padding, and special
    tokens only if they are to be parsed.
    """
    ours = {tokens.plain, tokens.spaced, *tokens.reserved}
    added = [
        token
        for token in config.get("added_tokens") or []
        if token["id"] not in ours and (parse_special or not token["special"])
    ]
    return config | {"truncation": None, "padding": None, "added_tokens": added}
