"""What gigatoken makes of a tokenizer.json: the ids of many documents at once.

In: a tokenizer.json, and documents in one buffer of bytes. Out:
    :class:`~numtok.engines.splice.Tokens`.

One tokenizer of gigatoken serves one call at a time: others wait, or are refused. So threads that
encode at the same time are lent one each; that takes as much memory and some hundredths of a second
more for each.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.engines.interface import Config, Ints
from numtok.engines.rust import tokenizer_errors
from numtok.engines.splice import Tokens
from numtok.engines.tokenizer_json import to_json

SMALL_TEXT = 1 << 16
FEW, MANY = 50, 1000  # documents


class GigatokenPool:
    """The tokenizers of one tokenizer.json that nobody uses right now, and more where they are
    needed.

    Raises:
        TokenizerError: if gigatoken cannot load it.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._free: list[Any] = []
        with self.lent() as tokenizer:
            self.vocab: dict[int, bytes] = tokenizer.vocab

    @contextlib.contextmanager
    def lent(self) -> Iterator[Any]:
        """A tokenizer for one thread alone."""
        try:
            tokenizer = self._free.pop()
        except IndexError:
            import gigatoken

            with tokenizer_errors("gigatoken cannot load it"):
                tokenizer = gigatoken.Tokenizer.from_json(self._text)
        try:
            yield tokenizer
        finally:
            self._free.append(tokenizer)

    def tokens(self, text: npt.NDArray[np.uint8], offsets: Ints) -> Tokens:
        """The ids of the documents ``text[offsets[d]:offsets[d + 1]]``, in whichever way costs
        gigatoken the least beside encoding.
        """
        count, small = len(offsets) - 1, len(text) <= SMALL_TEXT
        if len(text) > memory.MOST_KEPT or (count > MANY and not small):
            return self._of_array(text, offsets)
        data = text.tobytes()
        documents = (
            [data]
            if count == 1
            else [data[first:last] for first, last in itertools.pairwise(offsets.tolist())]
        )
        if small and count <= FEW:
            return _joined(self.one_by_one(documents) if documents else [])
        with self.lent() as tokenizer:
            if small:  # lists then cost less than awkward arrays
                return _of_lists(tokenizer.encode_batch_list(documents, parallel=False))
            if count == 1:
                ids = tokenizer.encode_batch_padded(documents, 0, parallel=False)[0][0]
                return Tokens(ids, np.array([0, len(ids)]))
            return _of_layout(tokenizer.encode_batch(documents, parallel=False).layout)

    def one_by_one(self, documents: list[bytes]) -> list[npt.NDArray[np.uint32]]:
        """The ids of each; the quickest way for a few short ones, for which gigatoken does not
        import awkward.
        """
        with self.lent() as tokenizer:
            return [tokenizer.encode(document) for document in documents]

    def _of_array(self, text: npt.NDArray[np.uint8], offsets: Ints) -> Tokens:
        """Of as many documents as there may be, without a copy of the text."""
        import awkward as ak

        characters = ak.contents.NumpyArray(text, parameters={"__array__": "char"})
        documents = ak.contents.ListOffsetArray(
            ak.index.Index64(offsets), characters, parameters={"__array__": "string"}
        )
        with self.lent() as tokenizer:
            return _of_layout(tokenizer.encode_batch(ak.Array(documents), parallel=False).layout)


_pools: weakref.WeakValueDictionary[str, GigatokenPool] = weakref.WeakValueDictionary()


def pool_of(config: Config) -> GigatokenPool:
    """One for all engines with this tokenizer.json: those that differ in their number tokens alone."""
    text = to_json(config)
    pool = _pools.get(text)
    if pool is None:
        pool = _pools[text] = GigatokenPool(text)
    return pool


def _joined(rows: list[npt.NDArray[np.uint32]]) -> Tokens:
    return Tokens(
        np.concatenate([np.empty(0, np.uint32), *rows]),
        memory.offsets_of(np.fromiter(map(len, rows), np.int64, len(rows))),
    )


def _of_lists(rows: list[list[int]]) -> Tokens:
    ids = np.fromiter(itertools.chain.from_iterable(rows), np.uint32)
    return Tokens(ids, memory.offsets_of(np.fromiter(map(len, rows), np.int64, len(rows))))


def _of_layout(layout: Any) -> Tokens:
    return Tokens(np.asarray(layout.content.data), np.asarray(layout.offsets.data))
