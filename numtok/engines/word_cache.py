"""``tokenizers`` with a cache of words, for tokenizers that certainly cut text at single spaces
(:mod:`numtok.engines.cuts`): text repeats its words, and ``tokenizers`` takes most of its time to
begin with each anew.

In and out: as every engine (:mod:`numtok.engines.engine`).

A word goes from one cut to the next, with the space before it. What a tokenizer does with it
depends on whether the text or a number's token begins before it, or another word, so it is encoded
after the same, and known by it.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import inlined_kernel, kernel
from numtok.arrays.text_rows import TextRows
from numtok.engines.chunks import BEGIN, BEHIND, SPACE, Chunks, Tokens, chunks_between, interleave
from numtok.engines.engine import Encoded, Ints, Mask, Slots
from numtok.engines.tokenizers_engine import TokenizersEngine, first_tokens_by_spans
from numtok.numbers.numbers import Numbers

MOST_CACHED = 1 << 17  # words; some 25 MB
LONGEST_CACHED = 64  # bytes
ONE_NEW_IN = 4  # words; with more, asking for each costs as much as encoding the text
INSIDE = 0xFD  # no byte of UTF-8: a mark between words, beside those of chunks

# first bytes of characters that are what they are wherever they stand: no white space, no marks,
# nothing that joins
_safe = np.zeros(256, np.bool_)
_safe[0x21:0x7F] = True  # ASCII
# letters of Latin, Greek and Cyrillic: U+00C0 to 027F, 0380 to 047F, 04C0 to 04FF
_safe[[*range(0xC3, 0xCA), 0xCE, 0xCF, 0xD0, 0xD1, 0xD3]] = True


class Words(NamedTuple):
    """Tokens of w words: word ``k`` has those from ``offsets[k]`` to ``offsets[k + 1]``."""

    ids: npt.NDArray[np.uint32]  # [t]
    spans: npt.NDArray[np.int32]  # [t, 2], characters of the word that each token covers
    offsets: Ints  # int64[w + 1]
    characters: npt.NDArray[np.int32]  # [w]

    def with_more(self, encoded: Sequence[tuple[list[int], Any, int]]) -> Words:
        """Return these words and others: (ids, spans, characters) of each."""
        if not encoded:
            return self
        ids, spans, characters = zip(*encoded, strict=True)
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        return Words(
            np.append(self.ids, np.array([*itertools.chain(*ids)], np.uint32)),
            np.concatenate(
                [self.spans, np.array([*itertools.chain(*spans)], np.int32).reshape(-1, 2)]
            ),
            np.append(self.offsets, self.offsets[-1] + np.cumsum(lengths)),
            np.append(self.characters, np.array(characters, np.int32)),
        )


# the words in front of a number, of which there is nothing
NONE = Words(
    np.empty(0, np.uint32), np.empty((0, 2), np.int32), np.zeros(2, np.int64), np.zeros(1, np.int32)
)


_adding = threading.Lock()  # of all engines; a forked process finds it free
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_adding.acquire, after_in_parent=_adding.release, after_in_child=_adding.release
    )


class WordsOfChunks(NamedTuple):
    """The words of chunks of text."""

    which: Ints  # int64[words], where each is in ``words``
    per_chunk: Ints  # int64[chunks + 1], offsets of the words of each chunk
    words: Words

    @property
    def tokens(self) -> int:
        """Return how many tokens the words have."""
        return int(np.diff(self.words.offsets)[self.which].sum())


class WordCacheEngine:
    """Engine that asks ``slow`` for the tokens of each word once. ``prefix`` is a word that is no
    added token.
    """

    name = "tokenizers"
    is_fast = True

    def __init__(self, slow: TokenizersEngine, prefix: str, two_forms: bool) -> None:
        self.slow, self._prefix, self._two_forms = slow, prefix, two_forms
        self._prefix_tokens = len(slow.encodings([prefix])[0].ids)
        self._places = {bytes([BEGIN]): 0, bytes([BEHIND]): 0}
        self._cached = NONE

    def __len__(self) -> int:
        """Return how many words are cached."""
        return len(self._places)

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        chunks = chunks_between(rows, slots, self._two_forms)
        words = self._words(chunks)
        if words is None:
            return self.slow.encode(rows, slots)
        ids = memory.empty(words.tokens, np.uint32)
        tokens = Tokens(ids, memory.empty(len(words.per_chunk), np.int64))
        _gather(words, tokens)
        return interleave(tokens, chunks.spaced, slots)

    def spans(self, rows: TextRows, slots: Slots) -> Ints | None:
        """Return int64[t, 2], the characters that each token of the rows covers, if every number is
        one token; None for text without many words that come again.
        """
        chunks = chunks_between(rows, slots, self._two_forms)
        words = self._words(chunks)
        if words is None:
            return None
        spans = memory.empty(2 * (words.tokens + len(chunks.spaced)), np.int64).reshape(-1, 2)
        trimmed = chunks.spaced & self.slow.trims_spaces
        return spans if _fill_spans(words, chunks, trimmed, spans) else None

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Find the tokens by the characters that they cover; by ``tokenizers`` where words do not
        tell them.
        """
        spans = self.spans(numbers.rows, Slots.none(len(numbers.rows)))
        if spans is None or len(spans) != len(encoded.ids):  # other rows by another engine
            return self.slow.first_tokens(encoded, numbers, wanted)
        return first_tokens_by_spans(spans, encoded, numbers)

    def _words(self, chunks: Chunks) -> WordsOfChunks | None:
        """Return the words of chunks; None if no more words are cached and too many are new: text
        without many words that come again, which is quicker as it is.
        """
        words, per_chunk = words_of(chunks)
        places: list[int | None] = list(map(self._places.get, words))
        cached_words = self._cached  # read after the places, so that it has all of them
        if None in places:
            if len(self) >= MOST_CACHED and places.count(None) * ONE_NEW_IN > len(places):
                return None
            cached_words = self._with_new(words, places)
        return WordsOfChunks(np.array(places, np.int64), per_chunk, cached_words)

    def _with_new(self, words: Sequence[bytes], places: list[int | None]) -> Words:
        """Fill in the places of new words, and return where all are.

        Short ones are cached, as long as there is room.
        """
        new = dict.fromkeys(word for word, at in zip(words, places, strict=True) if at is None)
        short = [word for word in new if len(word) <= LONGEST_CACHED]
        long = [word for word in new if len(word) > LONGEST_CACHED]
        encoded = self._encoded([*short, *long])
        with _adding:  # other threads may have added words meanwhile
            first = len(self._cached.characters)
            place_of = dict(zip([*short, *long], range(first, first + len(new)), strict=True))
            cached = short[: max(MOST_CACHED - len(self), 0)]
            self._cached = self._cached.with_more(encoded[: len(cached)])
            cached_words = self._cached.with_more(encoded[len(cached) :])
            self._places.update((word, place_of[word]) for word in cached)
        for k, place in enumerate(places):
            if place is None:
                places[k] = place_of[words[k]]
        return cached_words

    def _encoded(self, words: list[bytes]) -> list[tuple[list[int], Any, int]]:
        """Return (ids, spans, characters) of words, after what their first byte says."""
        behind = [word[1:].decode() for word in words if word[0] == BEHIND]
        others = [
            word[1:].decode() if word[0] == BEGIN else self._prefix + word.decode()
            for word in words
            if word[0] != BEHIND
        ]
        after_number = zip(behind, self.slow.encodings(behind, behind_number=True), strict=True)
        after_text = zip(others, self.slow.encodings(others), strict=True)
        encoded = []
        for word in words:
            text, encoding = next(after_number if word[0] == BEHIND else after_text)
            # tokens and characters before the word
            tokens, shift = {BEHIND: (1, 1), BEGIN: (0, 0)}.get(
                word[0], (self._prefix_tokens, len(self._prefix))
            )
            spans = [(start - shift, stop - shift) for start, stop in encoding.offsets[tokens:]]
            encoded.append((encoding.ids[tokens:], spans, len(text) - shift * (word[0] != BEHIND)))
        return encoded


def words_of(chunks: Chunks) -> tuple[list[bytes], Ints]:
    """Return (the words of chunks; int64[n + 1] offsets of each chunk's). The first word of each has
    BEGIN or BEHIND before it.
    """
    most = 2 * len(chunks.spans) + len(chunks.text) * 3 // 2 + 1
    marked, per_chunk = memory.empty(most, np.uint8), memory.empty(len(chunks.spans) + 1, np.int64)
    size = _mark(chunks, _safe, marked, per_chunk)
    return (marked[:size].tobytes().split(bytes([INSIDE])) if size else []), per_chunk


@kernel
def _mark(chunks, safe, marked, per_chunk):  # type: ignore[no-untyped-def]
    """Copy the words of the chunks to ``marked``, with INSIDE between two, and BEGIN or BEHIND before
    the first of each chunk. Fill the offsets ``per_chunk``; return how many bytes were written.
    """
    text, at, count = chunks.text, 0, 0
    per_chunk[0] = 0
    for chunk in range(chunks.begins.size):
        first, last = chunks.spans[chunk, 0], chunks.spans[chunk, 1]
        if chunk:
            marked[at] = INSIDE
            at += 1
        marked[at] = BEGIN if chunks.begins[chunk] else BEHIND
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
        per_chunk[chunk + 1] = count
    return at


@inlined_kernel
def _is_cut(text, first, k, safe):  # type: ignore[no-untyped-def]
    """Whether the characters beside a space are what they are wherever they stand."""
    before, after = text[k - 1], text[k + 1]
    return (
        safe[before]
        if before < 0x80
        else k - 2 >= first and text[k - 2] >= 0xC0 and safe[text[k - 2]]
    ) and safe[after]


@kernel
def _gather(chunk_words, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the ids of each chunk: those of its words."""
    words, filled = chunk_words.words, 0
    out.offsets[0] = 0
    for chunk in range(chunk_words.per_chunk.size - 1):
        for word in range(chunk_words.per_chunk[chunk], chunk_words.per_chunk[chunk + 1]):
            place = chunk_words.which[word]
            for token in range(words.offsets[place], words.offsets[place + 1]):
                out.ids[filled] = words.ids[token]
                filled += 1
        out.offsets[chunk + 1] = filled


@kernel
def _fill_spans(chunk_words, chunks, trimmed, spans):  # type: ignore[no-untyped-def]
    """Fill in the spans of all tokens; whether each lies within its word. Those of numbers that are
    ``trimmed`` begin behind their space.
    """
    words, filled, characters, number = chunk_words.words, 0, 0, 0
    for chunk in range(chunks.begins.size):
        if chunks.begins[chunk]:
            characters = 0
        else:
            spans[filled, 0] = characters + trimmed[number]
            for at in range(chunks.spans[chunk - 1, 1], chunks.spans[chunk, 0]):
                characters += chunks.text[at] & 0xC0 != 0x80
            spans[filled, 1] = characters
            filled += 1
            number += 1
        for word in range(chunk_words.per_chunk[chunk], chunk_words.per_chunk[chunk + 1]):
            place = chunk_words.which[word]
            for token in range(words.offsets[place], words.offsets[place + 1]):
                if words.spans[token, 0] < 0:
                    return False
                spans[filled, 0] = characters + words.spans[token, 0]
                spans[filled, 1] = characters + words.spans[token, 1]
                filled += 1
            characters += words.characters[place]
    return True
