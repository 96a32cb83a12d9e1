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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.text_rows import TextRows
from numtok.engines.chunks import (
    BEGIN,
    BEHIND,
    SPACE,
    Chunks,
    Prefix,
    Tokens,
    chunks_between,
    interleave,
    marked,
)
from numtok.engines.engine import Encoded, Ints, Mask, Slots
from numtok.engines.hf_tokenizers import flat_ids
from numtok.engines.tokenizers_engine import (
    TokenizersEngine,
    characters_before,
    first_tokens_by_spans,
)
from numtok.numbers.numbers import Numbers

MOST_CACHED = 1 << 17  # words; some 25 MB
LONGEST_CACHED = 64  # bytes
ONE_NEW_IN = 4  # words; with more, asking for each costs as much as encoding the text
INSIDE = 0xFD  # no byte of UTF-8: a mark between words, beside those of chunks
TOKEN = 12  # bytes of an id, and the first and last character that the token covers, int32[3]

# first bytes of characters that are what they are wherever they stand: no white space, no marks,
# nothing that joins
_safe = np.zeros(256, np.bool_)
_safe[0x21:0x7F] = True  # ASCII
# letters of Latin, Greek and Cyrillic: U+00C0 to 027F, 0380 to 047F, 04C0 to 04FF
_safe[[*range(0xC3, 0xCA), 0xCE, 0xCF, 0xD0, 0xD1, 0xD3]] = True


class WordTokens(NamedTuple):
    """The t tokens of the words of chunks."""

    tokens: npt.NDArray[np.int32]  # [t, 3], id and span, characters of the word
    per_word: Ints  # int64[w + 1], offsets of the tokens of each word
    starts: Ints  # int64[w], the byte of the text at which each word begins
    per_chunk: Ints  # int64[chunks + 1], offsets of the words of each chunk

    def of_chunks(self) -> Tokens:
        """Return the ids of each chunk."""
        return Tokens(self.tokens[:, 0].astype(np.uint32), self.per_word[self.per_chunk])


class WordsEngine:
    """Engine that asks ``slow`` for the tokens of each word once. ``prefix`` is a letter that is no
    added token.
    """

    name = "tokenizers"
    is_fast = True

    def __init__(self, slow: TokenizersEngine, prefix: str, two_forms: bool) -> None:
        self.slow, self._prefix, self._two_forms = slow, prefix, two_forms
        self._prefix_tokens = len(slow.encodings([prefix], [False])[0].ids)
        # the tokens of each word, as the bytes of int32[n, 3]; threads that add the same at the
        # same time add the same tokens
        self._cached: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        """Return how many words are cached."""
        return len(self._cached)

    def encode(self, rows: TextRows, slots: Slots) -> Encoded:
        chunks = chunks_between(rows, slots, self._two_forms)
        words = self._words(chunks)
        if words is None:
            return self.slow.encode(rows, slots)
        return interleave(words.of_chunks(), chunks.spaced, slots)

    def spans(self, rows: TextRows, slots: Slots) -> Ints | None:
        """Return int64[t, 2], the characters that each token of the rows covers, if every number is
        one token; None for text without many words that come again.
        """
        chunks = chunks_between(rows, slots, self._two_forms)
        words = self._words(chunks)
        if words is None or (words.tokens[:, 1] < 0).any():  # a token that begins before its word
            return None
        characters, _ = characters_before(rows)
        row_starts = chunks.spans[chunks.begins, 0][np.cumsum(chunks.begins) - 1]
        begins = characters[words.starts]
        begins -= np.repeat(characters[row_starts], np.diff(words.per_chunk))
        spans = words.tokens[:, 1:] + np.repeat(begins, np.diff(words.per_word))[:, None]
        (behind,) = np.nonzero(~chunks.begins)  # a number
        numbers = np.stack([chunks.spans[behind - 1, 1], chunks.spans[behind, 0]], axis=1)
        numbers = characters[numbers] - characters[row_starts[behind], None]
        numbers[:, 0] += chunks.spaced & self.slow.trims_spaces
        return np.insert(spans, words.of_chunks().offsets[behind], numbers, axis=0)

    def first_tokens(self, encoded: Encoded, numbers: Numbers, wanted: Mask | None = None) -> Ints:
        """Find the tokens by the characters that they cover; by ``tokenizers`` where words do not
        tell them.
        """
        spans = self.spans(numbers.rows, Slots.none(len(numbers.rows)))
        if spans is None or len(spans) != len(encoded.ids):  # other rows by another engine
            return self.slow.first_tokens(encoded, numbers, wanted)
        return first_tokens_by_spans(spans, encoded, numbers)

    def _words(self, chunks: Chunks) -> WordTokens | None:
        """Return the tokens of the words of chunks; None if no more words are cached and too many
        are new: text without many words that come again, which is quicker as it is.
        """
        words, starts, per_chunk = words_of(chunks)
        by_word: list[Any] = [*map(self._cached.get, words)]
        missing = [k for k, tokens in enumerate(by_word) if tokens is None]
        if missing:
            if len(self) >= MOST_CACHED and len(missing) * ONE_NEW_IN > len(words):
                return None
            new = self._encoded([*dict.fromkeys(words[k] for k in missing)])
            for k in missing:
                by_word[k] = new[words[k]]
            room = max(MOST_CACHED - len(self), 0)
            short = (word for word in new if len(word) <= LONGEST_CACHED)
            self._cached.update((word, new[word]) for word in itertools.islice(short, room))
        tokens = np.frombuffer(b"".join(by_word), np.int32).reshape(-1, 3)
        counts = np.fromiter(map(len, by_word), np.int64, len(words)) // TOKEN
        return WordTokens(tokens, memory.offsets_of(counts), starts, per_chunk)

    def _encoded(self, words: list[bytes]) -> dict[bytes, bytes]:
        """Return the tokens of words, each after what its first byte says."""
        kinds = np.array([word[0] for word in words], np.uint8)
        texts = [
            self._prefix + word.decode() if kind == SPACE else word[1:].decode()
            for word, kind in zip(words, kinds, strict=True)
        ]
        encodings = self.slow.encodings(texts, (kinds == BEHIND).tolist())
        ids, offsets = flat_ids(encodings)
        tokens = np.empty((len(ids), 3), np.int32)
        tokens[:, 0] = ids
        spans = itertools.chain.from_iterable(one.offsets for one in encodings)
        tokens[:, 1:] = np.array([*spans], np.int32).reshape(-1, 2)
        # a number before the word is one character and one token; the prefix is one character
        tokens[:, 1:] -= np.repeat(kinds != BEGIN, np.diff(offsets))[:, None]
        before = np.where(kinds == SPACE, self._prefix_tokens, kinds == BEHIND)
        starts, stops = (offsets[:-1] + before) * TOKEN, offsets[1:] * TOKEN
        data = tokens.tobytes()
        slices = map(slice, starts.tolist(), stops.tolist())
        return {word: data[where] for word, where in zip(words, slices, strict=True)}


def words_of(chunks: Chunks) -> tuple[list[bytes], Ints, Ints]:
    """Return (the w words of chunks; int64[w], the byte at which each begins; int64[chunks + 1],
    offsets of each chunk's). The first word of each chunk has BEGIN or BEHIND before it.

    Text is cut at single spaces between two characters that are what they are wherever they stand.
    """
    text, spans = marked(chunks, Prefix()), chunks.spans
    (marks,) = np.nonzero(text >= BEGIN)
    (cuts,) = np.nonzero(text[:-1] == SPACE)
    last, lead = text[cuts - 1], text[cuts - 2]  # bytes of the character before, if it has two
    safe = np.where(last < 0x80, _safe[last], (lead >= 0xC0) & _safe[lead]) & _safe[text[cuts + 1]]
    cuts = cuts[safe]
    at = np.sort(np.concatenate([cuts, marks]), kind="stable")
    words = np.insert(text, at[1:], INSIDE).tobytes().split(bytes([INSIDE])) if len(at) else []
    per_chunk = np.append(np.searchsorted(cuts, marks) + np.arange(len(marks)), len(at))
    starts = at + np.repeat(spans[:, 0] - marks - 1, np.diff(per_chunk))
    starts[per_chunk[:-1]] += 1  # the mark itself
    return words, starts, per_chunk
