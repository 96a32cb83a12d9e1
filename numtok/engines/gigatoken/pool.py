"""Call gigatoken for a tokenizer.json: the ids of many documents at once. And the token in which
each number of ordinary text begins, by the widths of tokens in bytes.

In: a tokenizer.json, and documents in one buffer of bytes. Out:
    :class:`~numtok.engines.chunks.Tokens`; positions of tokens.

One tokenizer of gigatoken serves one call at a time: others wait, or are refused. So threads that
encode at the same time get one each, each with memory of its own. gigatoken caches the ids of every
word that it ever saw, so a tokenizer is made anew when the process has grown.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.engines.chunks import Tokens
from numtok.engines.config import Config, to_json, tokenizer_errors
from numtok.engines.engine import Encoded, Engine, Ints, Mask
from numtok.numbers.numbers import Numbers

Widths = npt.NDArray[Any]

SMALL_TEXT = 1 << 16
FEW = 50  # documents, or one in so many bytes: one by one they cost no more
LONG = 1 << 11
# Bytes that a process may grow by until its tokenizers are made anew: a count of bytes of text
# would not do, as words that never come again take ten times their bytes, and other text nothing.
MOST_GROWN = 1 << 27
LEAST_TEXT = 1 << 23  # bytes that each reads at least
MOST_TEXT = 1 << 26  # and at most, where the system does not say how large a process is


class _Encoder:
    """A tokenizer of gigatoken, the memory of the process before it, and the text it has read."""

    def __init__(self, text: str) -> None:
        with tokenizer_errors("gigatoken cannot be imported"):
            import gigatoken

        self.resident, self.read = memory.resident(), 0
        with tokenizer_errors("gigatoken cannot load it"):
            self.tokenizer: Any = gigatoken.Tokenizer.from_json(text)

    def is_full(self) -> bool:
        """Whether it may have cached more than it should."""
        if self.read < LEAST_TEXT:
            return False
        if self.resident is None:
            return self.read > MOST_TEXT
        most = self.resident + MOST_GROWN
        if (memory.resident() or 0) > most:
            memory.release()  # what other code has let go of
            self.read = 0
        return (memory.resident() or 0) > most


class GigatokenPool:
    """The tokenizers of one tokenizer.json that nobody uses right now, and more where needed.

    Raises:
        TokenizerError: if gigatoken cannot load it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._free: list[_Encoder] = []
        with self._encoder() as encoder:
            self.vocab: dict[int, bytes] = encoder.tokenizer.vocab

    @contextlib.contextmanager
    def _encoder(self) -> Iterator[_Encoder]:
        """Yield a tokenizer for one thread alone."""
        try:
            encoder = self._free.pop()
        except IndexError:
            encoder = _Encoder(self._text)
        try:
            yield encoder
        finally:
            if encoder.is_full():
                encoder.tokenizer = None
                memory.release()
            else:
                self._free.append(encoder)

    def tokens(self, text: npt.NDArray[np.uint8], offsets: Ints) -> Tokens:
        """Return the ids of the documents ``text[offsets[d]:offsets[d + 1]]``."""
        if not len(text):
            return Tokens(np.empty(0, np.uint32), np.zeros(len(offsets), np.int64))
        with self._encoder() as encoder:
            encoder.read += len(text)
            few = max(FEW, len(text) // LONG)
            if len(offsets) - 1 <= few and len(text) <= memory.MOST_KEPT:
                return _few(encoder.tokenizer, text, offsets)
            return _many(encoder.tokenizer, text, offsets)


def _few(tokenizer: Any, text: npt.NDArray[np.uint8], offsets: Ints) -> Tokens:
    """Encode one by one, without awkward; long ones by a call that lets other threads run."""
    import gigatoken

    data = text.tobytes()
    rows = []
    for first, last in itertools.pairwise(offsets.tolist()):
        document = data[first:last]
        if len(document) > SMALL_TEXT:
            source = gigatoken.BytesSource([document])
            rows.append(tokenizer.encode_batch_padded(source, 0, parallel=False)[0][0])
        else:
            rows.append(tokenizer.encode(document))
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return Tokens(rows[0] if len(rows) == 1 else np.concatenate(rows), memory.offsets_of(lengths))


def _many(tokenizer: Any, text: npt.NDArray[np.uint8], offsets: Ints) -> Tokens:
    """Encode as awkward arrays, without a copy of the text; one by one without awkward."""
    try:
        import awkward as ak
    except (ImportError, LookupError):  # LookupError: awkward 2.14 under `python -X dev`
        return _few(tokenizer, text, offsets)

    characters = ak.contents.NumpyArray(text, parameters={"__array__": "char"})
    strings = {"__array__": "string"}
    index = ak.index.Index64(offsets)
    documents = ak.Array(ak.contents.ListOffsetArray(index, characters, parameters=strings))
    layout = tokenizer.encode_batch(documents, parallel=False).layout
    return Tokens(np.asarray(layout.content.data), np.asarray(layout.offsets.data))


_pools: weakref.WeakValueDictionary[str, GigatokenPool] = weakref.WeakValueDictionary()


def pool_of(config: Config) -> GigatokenPool:
    """Return the pool of all engines with this tokenizer.json, whatever their number tokens."""
    text = to_json(config)
    pool = _pools.get(text)
    if pool is None:
        pool = _pools[text] = GigatokenPool(text)
    return pool


def widths_of(contents: Mapping[int, bytes]) -> Widths:
    """Return how many bytes each token has, by id, and 0, for all ids beyond."""
    # 8 bits stay in the first-level cache
    kind = np.uint8 if max(map(len, contents.values())) < 256 else np.uint16
    widths = np.zeros(max(contents) + 2, kind)
    for token, content in contents.items():
        widths[token] = len(content)
    return widths


def find_first_tokens(
    encoded: Encoded,
    numbers: Numbers,
    starts: Ints,
    sizes: Ints,
    widths: Widths,
    slow: Callable[[], Engine],
    wanted: Mask | None,
) -> Ints:
    """Return int64[n], the position in ``encoded.ids`` of the token in which each number begins, in
    the rows that are ``wanted``.

    The bytes that the tokens are made of are those of the rows, perhaps normalized: int64[n]
    ``starts``, the byte of its row in which each number begins; int64[rows] ``sizes``. ``slow``
    returns the engine that tells where bytes do not.
    """
    stops = np.cumsum(widths[np.minimum(encoded.ids, len(widths) - 1)], dtype=np.int64)
    ends = np.append(0, stops)[encoded.offsets]
    stops -= np.repeat(ends[:-1], np.diff(encoded.offsets))
    places = encoded.tokens_at(starts, numbers.document, stops)
    left = (np.diff(numbers.per_document()) > 0) & (np.diff(ends) != sizes)
    if wanted is not None:
        left &= wanted
    if left.any():
        places = np.where(
            left[numbers.document], slow().first_tokens(encoded, numbers, left), places
        )
    return places
