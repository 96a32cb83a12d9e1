"""Texts cut into words, and the ids of each kept: text repeats its words, and ``tokenizers`` takes
most of its time to begin with each anew.

In: pieces of text between numbers. Out: their ids, for a tokenizer that certainly cuts at single
    spaces (:mod:`numtok.engines.words.cuts`).

A word goes from one cut to the next, with the space before it. What a tokenizer does with it
depends on whether the text or a number's token begins before it, or another word, so it is encoded
after the same, and known by it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel, merged_kernel
from numtok.engines.interface import Ints
from numtok.engines.pieces import SPACE, Tokens

MOST_KEPT = 1 << 17  # words; some 25 MB
LONGEST_KEPT = 64  # bytes
ONE_NEW_IN = 4  # words; with more, asking for each costs as much as encoding the text
# no bytes of UTF-8: between words, and before the first one of a row and after a number
INSIDE, BEGIN, BEHIND = 0xFD, 0xFE, 0xFF
BITS = 16  # of the end of a token in a word
NOWHERE = (1 << 32) - 1  # a word in which that does not suffice

# first bytes of characters that are what they are wherever they stand: no white space, no marks,
# nothing that joins
_safe = np.zeros(256, np.bool_)
_safe[0x21:0x7F] = True  # ASCII
# letters of Latin, Greek and Cyrillic: U+00C0 to 027F, 0380 to 047F, 04C0 to 04FF
_safe[[*range(0xC3, 0xCA), 0xCE, 0xCF, 0xD0, 0xD1, 0xD3]] = True


class Found(NamedTuple):
    """The words of pieces of text."""

    which: Ints  # int64[words], where each is in ``known``
    widths: Ints  # int64[words], its bytes
    per_piece: Ints  # int64[pieces + 1], offsets of the words of each piece
    known: Tokens  # of each word that is kept

    @property
    def size(self) -> int:
        """How many tokens they have."""
        return int(np.diff(self.known.offsets)[self.which].sum())


class Words:
    """What is known of words: the ids of their tokens, or something else about each token; ``encode``
    gives it for words, each with the byte before it that says after what it stands (``INSIDE`` for
    none).
    """

    def __init__(self, encode: Callable[[list[bytes]], list[list[int]]]) -> None:
        self._encode = encode
        self._lock = threading.Lock()
        self._places = {bytes([BEGIN]): 0, bytes([BEHIND]): 0}  # nothing before a number
        self._known = Tokens(np.empty(0, np.uint32), np.zeros(2, np.int64))

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._places)

    def find(
        self, text: npt.NDArray[np.uint8], pieces: Ints, begins: npt.NDArray[np.bool_]
    ) -> Found | None:
        """The words of pieces, int64[n, 2] begins and ends in the text; bool[n] ``begins``, which
        ones begin a row.

        None if no more words are kept and too many are not among them: text without many words that
        come again, which is quicker as it is.
        """
        words, per_piece = words_of(text, pieces, begins)
        places: list[int | None] = list(map(self._places.get, words))
        known = self._known  # read after the places, so that it has all of them
        if None in places:
            if len(self._places) >= MOST_KEPT and places.count(None) * ONE_NEW_IN > len(places):
                return None
            known = self._with_new(words, places)
        widths = np.fromiter(map(len, words), np.int64, len(words))
        widths[per_piece[:-1]] -= 1  # BEGIN or BEHIND
        return Found(np.array(places, np.int64), widths, per_piece, known)

    def _with_new(self, words: Sequence[bytes], places: list[int | None]) -> Tokens:
        """Fill in the places of new words, and return where all are.

        Short ones are kept, as long as there is room.
        """
        new = list(
            dict.fromkeys(word for word, place in zip(words, places, strict=True) if place is None)
        )
        new.sort(key=lambda word: len(word) > LONGEST_KEPT)
        lists = self._encode(new)
        with self._lock:  # other threads may have added words meanwhile
            count = min(
                sum(len(word) <= LONGEST_KEPT for word in new),
                max(MOST_KEPT - len(self._places), 0),
            )
            first = len(self._known.offsets) - 1
            self._known = known = _joined(self._known, lists[:count])
            self._places.update(zip(new[:count], range(first, first + count), strict=True))
        place_of = dict(zip(new, range(first, first + len(new)), strict=True))
        for k, place in enumerate(places):
            if place is None:
                places[k] = place_of[words[k]]
        return _joined(known, lists[count:])


def _joined(known: Tokens, lists: list[list[int]]) -> Tokens:
    flat = np.array([value for values in lists for value in values], np.uint32)
    ends = known.offsets[-1] + np.cumsum([len(values) for values in lists], dtype=np.int64)
    return Tokens(np.concatenate([known.ids, flat]), np.concatenate([known.offsets, ends]))


def tokens_of(found: Found) -> Tokens:
    """The ids of the pieces, where they are what is known."""
    out = Tokens(memory.empty(found.size, np.uint32), memory.empty(len(found.per_piece), np.int64))
    _gather(found.which, found.per_piece, found.known, out)
    return out


def words_of(
    text: npt.NDArray[np.uint8], pieces: Ints, begins: npt.NDArray[np.bool_]
) -> tuple[list[bytes], Ints]:
    """(the words of all pieces, int64[n + 1] offsets of each piece's).

    The first word of each has BEGIN or BEHIND before it.
    """
    marked = memory.empty(
        2 * len(pieces) + int((pieces[:, 1] - pieces[:, 0]).sum()) * 3 // 2 + 1, np.uint8
    )
    per_piece = memory.empty(len(pieces) + 1, np.int64)
    size = _mark(text, pieces, begins, _safe, marked, per_piece)
    return (marked[:size].tobytes().split(bytes([INSIDE])) if size else []), per_piece


@kernel
def _mark(text, pieces, begins, safe, marked, per_piece):  # type: ignore[no-untyped-def]
    """Copy the pieces with INSIDE before every word but the first; the number of bytes."""
    at, count = 0, 0
    per_piece[0] = 0
    for piece in range(pieces.shape[0]):
        first, last = pieces[piece, 0], pieces[piece, 1]
        if piece:
            marked[at] = INSIDE
            at += 1
        marked[at] = BEGIN if begins[piece] else BEHIND
        at += 1
        count += 1
        for k in range(first, last):
            byte = text[k]
            if byte == SPACE and first < k < last - 1 and _is_cut(text, first, k, safe):
                marked[at] = INSIDE
                at += 1
                count += 1
            marked[at] = byte
            at += 1
        per_piece[piece + 1] = count
    return at


@merged_kernel
def _is_cut(text, first, k, safe):  # type: ignore[no-untyped-def]
    """Whether the characters beside a space are what they are wherever they stand."""
    before, after = text[k - 1], text[k + 1]
    return (
        safe[before]
        if before < 0x80
        else k - 2 >= first and text[k - 2] >= 0xC0 and safe[text[k - 2]]
    ) and safe[after]


@kernel
def _gather(which, per_piece, known, out):  # type: ignore[no-untyped-def]
    filled = 0
    out.offsets[0] = 0
    for piece in range(per_piece.size - 1):
        for k in range(per_piece[piece], per_piece[piece + 1]):
            for token in range(known.offsets[which[k]], known.offsets[which[k] + 1]):
                out.ids[filled] = known.ids[token]
                filled += 1
        out.offsets[piece + 1] = filled


def packed(spans: Sequence[tuple[int, int]], before: int) -> list[int]:
    """One integer for each span, less the characters before the word."""
    moved = [(start - before, stop - before) for start, stop in spans]
    return [
        start << BITS | stop if 0 <= start <= stop < (1 << BITS) - 1 else NOWHERE
        for start, stop in moved
    ]


def spans_of(
    found: Found, text: npt.NDArray[np.uint8], pieces: Ints, begins: npt.NDArray[np.bool_]
) -> Ints | None:
    """The spans of all tokens; None if a word is too long."""
    spans = memory.empty(2 * (found.size + int(np.count_nonzero(~begins))), np.int64).reshape(-1, 2)
    return spans if _fill(found, text, pieces, begins, spans) else None


@kernel
def _fill(found, text, pieces, begins, spans):  # type: ignore[no-untyped-def]
    """Whether all are known."""
    filled, at, characters = 0, 0, 0  # bytes, and the characters of the row before them
    for piece in range(begins.size):
        if begins[piece]:
            at, characters = pieces[piece, 0], 0
        else:
            spans[filled, 0] = characters
            while at < pieces[piece, 0]:
                characters += text[at] & 0xC0 != 0x80
                at += 1
            spans[filled, 1] = characters
            filled += 1
        for word in range(found.per_piece[piece], found.per_piece[piece + 1]):
            place = found.which[word]
            for token in range(found.known.offsets[place], found.known.offsets[place + 1]):
                value = np.int64(found.known.ids[token])
                if value == NOWHERE:
                    return False
                spans[filled, 0] = characters + (value >> BITS)
                spans[filled, 1] = characters + (value & ((1 << BITS) - 1))
                filled += 1
            end = at + found.widths[word]
            while at < end:
                characters += text[at] & 0xC0 != 0x80
                at += 1
    return True
