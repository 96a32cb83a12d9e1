"""What gigatoken makes of a tokenizer.json: the ids of many documents at once.

In: a tokenizer.json, and documents in one buffer of bytes. Out:
    :class:`~numtok.engines.gigatoken.splice.Tokens`.

One tokenizer of gigatoken serves one call at a time: others wait, or are refused. So threads that
encode at the same time are lent one each; that takes as much memory and some hundredths of a second
more for each.

gigatoken keeps the ids of every piece of text that it ever saw. So what each of its tokenizers
keeps is estimated from the ids that it gives, and one that keeps too much is made anew.
"""

from __future__ import annotations

import contextlib
import itertools
import string
import weakref
from collections.abc import Iterator, Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.engines.interface import Config, Ints
from numtok.engines.pieces import Tokens
from numtok.engines.tokenizer_json import to_json, tokenizer_errors

SMALL_TEXT = 1 << 16
FEW, MANY = 50, 1000  # documents
MOST_CACHED = 1 << 28  # bytes that all tokenizers of a process may keep of the pieces they saw
LEAST_CACHED = 1 << 26  # and that each may, however many they are
SAMPLED = 256  # one id of so many is looked at
STRETCH = 1 << 10  # ids that are due before any is: a short run needs no kernel for it
SLOTS = 1 << 24  # bits, each for the pieces with one hash
WHITE, LETTER, OTHER = range(3)  # kinds of bytes


class _Encoder:
    """A tokenizer of gigatoken, and about how many bytes it keeps of the pieces it saw.

    Estimated from stretches of the ids, so rather too high. Pieces of one token do not count: there
    are no more than tokens.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer: Any = tokenizer
        self.cached = 0
        self._due = 0
        self._seen = np.zeros(SLOTS >> 3, np.uint8)

    def note(self, ids: npt.NDArray[np.uint32], forms: npt.NDArray[np.uint32]) -> None:
        """These ids were given; uint32 ``forms`` of each token are those of :func:`_forms_of`."""
        self._due += len(ids)
        if self._due >= STRETCH * SAMPLED:
            stretch = ids[: self._due // SAMPLED]
            self._due -= len(stretch) * SAMPLED
            self.cached += SAMPLED * _new_bytes(stretch, forms, self._seen)


_encoders: weakref.WeakSet[_Encoder] = weakref.WeakSet()


class GigatokenPool:
    """The tokenizers of one tokenizer.json that nobody uses right now, and more where they are
    needed.

    Raises:
        TokenizerError: if gigatoken cannot load it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._free: list[_Encoder] = []
        with self._lent() as encoder:
            self.vocab: dict[int, bytes] = encoder.tokenizer.vocab
        self._forms = _forms_of(self.vocab)

    @contextlib.contextmanager
    def _lent(self) -> Iterator[_Encoder]:
        """A tokenizer for one thread alone."""
        try:
            encoder = self._free.pop()
        except IndexError:
            import gigatoken

            with tokenizer_errors("gigatoken cannot load it"):
                encoder = _Encoder(gigatoken.Tokenizer.from_json(self._text))
            _encoders.add(encoder)
        try:
            yield encoder
        finally:
            if encoder.cached <= max(LEAST_CACHED, MOST_CACHED // len(_encoders)):
                self._free.append(encoder)
            else:
                encoder.tokenizer = None
                memory.release()

    def tokens(self, text: npt.NDArray[np.uint8], offsets: Ints) -> Tokens:
        """The ids of the documents ``text[offsets[d]:offsets[d + 1]]``."""
        if len(text) <= SMALL_TEXT and len(offsets) - 1 <= FEW:
            rows = self.one_by_one(_documents(text, offsets))
            return _of_rows(np.concatenate([np.empty(0, np.uint32), *rows]), rows)
        with self._lent() as encoder:
            tokens = _encode(encoder.tokenizer, text, offsets)
            encoder.note(tokens.ids, self._forms)
        return tokens

    def one_by_one(self, documents: list[bytes]) -> list[npt.NDArray[np.uint32]]:
        """The ids of each: quickest for a few short ones, as awkward is not imported."""
        with self._lent() as encoder:
            rows = [encoder.tokenizer.encode(document) for document in documents]
            for ids in rows:
                encoder.note(ids, self._forms)
        return rows


def _encode(tokenizer: Any, text: npt.NDArray[np.uint8], offsets: Ints) -> Tokens:
    """In whichever way costs gigatoken the least beside encoding."""
    count, small = len(offsets) - 1, len(text) <= SMALL_TEXT
    if len(text) > memory.MOST_KEPT or (count > MANY and not small):
        return _of_layout(tokenizer.encode_batch(_array(text, offsets), parallel=False).layout)
    if count == 1:
        ids = tokenizer.encode(text.tobytes())
        return Tokens(ids, np.array([0, len(ids)]))
    documents = _documents(text, offsets)
    if small:  # lists then cost less than awkward arrays
        rows = tokenizer.encode_batch_list(documents, parallel=False)
        return _of_rows(np.fromiter(itertools.chain.from_iterable(rows), np.uint32), rows)
    return _of_layout(tokenizer.encode_batch(documents, parallel=False).layout)


def _documents(text: npt.NDArray[np.uint8], offsets: Ints) -> list[bytes]:
    data = text.tobytes()
    return [data[first:last] for first, last in itertools.pairwise(offsets.tolist())]


def _array(text: npt.NDArray[np.uint8], offsets: Ints) -> Any:
    """Documents as an awkward array, as many as there may be, without a copy of the text."""
    import awkward as ak

    characters = ak.contents.NumpyArray(text, parameters={"__array__": "char"})
    strings = {"__array__": "string"}
    index = ak.index.Index64(offsets)
    return ak.Array(ak.contents.ListOffsetArray(index, characters, parameters=strings))


def _forms_of(vocabulary: dict[int, bytes]) -> npt.NDArray[np.uint32]:
    """uint32 by token: its bytes, times 16, and the kinds of its last and its first byte."""
    kinds = [OTHER] * 0x80 + [LETTER] * 0x80
    for byte in string.ascii_letters.encode():
        kinds[byte] = LETTER
    for byte in string.whitespace.encode():
        kinds[byte] = WHITE
    forms = np.zeros(max(vocabulary) + 1, np.uint32)
    for token, content in vocabulary.items():
        if content:
            forms[token] = len(content) << 4 | kinds[content[-1]] << 2 | kinds[content[0]]
    return forms


@kernel
def _new_bytes(ids, forms, seen):  # type: ignore[no-untyped-def]
    """About how many bytes gigatoken keeps anew for these ids, by the pieces of several tokens
    whose bits in ``seen`` are not set, which are set. A piece is taken to end where the kind of
    bytes changes.
    """
    nothing = np.int64(0)
    cached, piece, count, size, last = nothing, np.uint64(0), nothing, nothing, np.uint32(WHITE)
    for k in range(ids.size + 1):
        form = forms[ids[k]] if k < ids.size else np.uint32(WHITE)
        if form & 3 == WHITE or form & 3 != last:
            slot = piece >> np.uint64(40)
            bit = np.uint8(1) << np.uint8(slot & np.uint64(7))
            if count > 1 and not seen[slot >> np.uint64(3)] & bit:
                seen[slot >> np.uint64(3)] |= bit
                cached += np.int64(64) + np.int64(2) * (size + count)
            piece, count, size = np.uint64(0), nothing, nothing
        if k < ids.size:
            piece = (piece ^ np.uint64(ids[k])) * np.uint64(0x9E3779B97F4A7C15)
            count += np.int64(1)
            size += np.int64(form >> 4)
            last = form >> 2 & 3
    return cached


_pools: weakref.WeakValueDictionary[str, GigatokenPool] = weakref.WeakValueDictionary()


def pool_of(config: Config) -> GigatokenPool:
    """One for all engines with this tokenizer.json, whatever their number tokens."""
    text = to_json(config)
    pool = _pools.get(text)
    if pool is None:
        pool = _pools[text] = GigatokenPool(text)
    return pool


def _of_rows(ids: npt.NDArray[np.uint32], rows: Sequence[Sized]) -> Tokens:
    return Tokens(ids, memory.offsets_of(np.fromiter(map(len, rows), np.int64, len(rows))))


def _of_layout(layout: Any) -> Tokens:
    return Tokens(np.asarray(layout.content.data), np.asarray(layout.offsets.data))
