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
FEW = 50  # documents
MOST_CACHED = 1 << 28  # bytes that all tokenizers of a process may keep of the pieces they saw
LEAST_CACHED = 1 << 26  # and that each may, however many they are
STRETCH = 1 << 12  # ids that wait until they are looked at: a short run needs no kernel for it
SAMPLED = 256  # one pair of tokens of so many is looked at
RARE = np.uint32((1 << 32) // SAMPLED)  # its hash is below
FIRST, SECOND = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)
MIXED = np.uint64(0x9E3779B97F4A7C15)
FAR = 64  # tokens on each side that are taken for the same piece
SLOTS = 1 << 24  # bits, each for the pieces with one hash
WHITE, LETTER, OTHER = range(3)  # kinds of bytes


class _Encoder:
    """A tokenizer of gigatoken, and about how many bytes it keeps of the pieces it saw.

    Pieces of one token do not count: there are no more than tokens.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer: Any = tokenizer
        self.cached = 0
        self._waiting: list[npt.NDArray[np.uint32]] = []
        self._due = 0  # ids that wait
        self._seen = np.zeros(SLOTS >> 3, np.uint8)

    def note(self, rows: list[npt.NDArray[np.uint32]], forms: npt.NDArray[np.uint32]) -> None:
        """These ids were given; uint32 ``forms`` of each token are those of :func:`_forms_of`."""
        self._waiting += rows
        self._due += sum(map(len, rows))
        if self._due >= STRETCH:
            ids = self._waiting[0] if len(self._waiting) == 1 else np.concatenate(self._waiting)
            self._waiting, self._due = [], 0
            rare = memory.empty(len(ids) - 1, np.bool_)
            _rare_pairs(ids, rare)
            self.cached += _new_bytes(ids, np.flatnonzero(rare), forms, self._seen)


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
            encoder.note([tokens.ids], self._forms)
        return tokens

    def one_by_one(self, documents: list[bytes]) -> list[npt.NDArray[np.uint32]]:
        """The ids of each: quickest for a few short ones, as awkward is not imported."""
        with self._lent() as encoder:
            rows = [encoder.tokenizer.encode(document) for document in documents]
            encoder.note(rows, self._forms)
        return rows


def _encode(tokenizer: Any, text: npt.NDArray[np.uint8], offsets: Ints) -> Tokens:
    """In whichever way costs gigatoken the least beside encoding; all let other threads run, which
    its ``encode`` does not.
    """
    if len(offsets) == 2 and len(text) <= memory.MOST_KEPT:
        import gigatoken

        source = gigatoken.BytesSource(_documents(text, offsets))
        rows, lengths = tokenizer.encode_batch_padded(source, 0, parallel=False)
        return Tokens(rows[0], memory.offsets_of(lengths))  # there was nothing to pad
    if len(text) <= SMALL_TEXT:  # lists then cost less than awkward arrays
        rows = tokenizer.encode_batch_list(_documents(text, offsets), parallel=False)
        return _of_rows(np.fromiter(itertools.chain.from_iterable(rows), np.uint32), rows)
    layout = tokenizer.encode_batch(_array(text, offsets), parallel=False).layout
    return Tokens(np.asarray(layout.content.data), np.asarray(layout.offsets.data))


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
def _rare_pairs(ids, rare):  # type: ignore[no-untyped-def]
    """Sets bool[ids - 1] ``rare``: whether a token and the next have a rare hash."""
    for k in range(rare.size):
        rare[k] = np.uint32(ids[k] * FIRST + ids[k + 1] * SECOND) < RARE


@kernel
def _new_bytes(ids, places, forms, seen):  # type: ignore[no-untyped-def]
    """About how many bytes gigatoken keeps anew for these ids, by the pieces of several tokens
    whose bits in ``seen`` are not set, which are set. A piece is taken to end where the kind of
    bytes changes. Only those are looked at that have a pair with a rare hash, at ``places``: a
    piece always or never, so that what comes again and again does not count again.
    """
    cached = np.int64(0)
    for k in places:
        if _apart(ids, forms, k):
            continue
        first, last = k, k + 1
        while first > max(0, k - FAR) and not _apart(ids, forms, first - 1):
            first -= 1
        while last < min(ids.size - 1, k + FAR) and not _apart(ids, forms, last):
            last += 1
        piece, size = np.uint64(k - first), np.int64(0)
        for j in range(first, last + 1):
            piece = (piece ^ np.uint64(ids[j])) * MIXED
            size += np.int64(forms[ids[j]] >> 4)
        slot = piece >> np.uint64(40)
        bit = np.uint8(1) << np.uint8(slot & np.uint64(7))
        if not seen[slot >> np.uint64(3)] & bit:
            seen[slot >> np.uint64(3)] |= bit
            count = last - first + 1
            cached += SAMPLED * (64 + 2 * (size + count)) // (count - 1)
    return cached


@kernel
def _apart(ids, forms, k):  # type: ignore[no-untyped-def]
    """Whether token ``k`` and the next one stand in two pieces."""
    first = forms[ids[k + 1]] & 3
    return first == WHITE or first != forms[ids[k]] >> 2 & 3


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
