"""What ``tokenizers`` returns for a marked text (:mod:`numtok.hf.marks`), as if it had been given the
original one: ids and tokens of the source, offsets into the original text, which tokens are numbers.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers
from transformers import BatchEncoding

from numtok.hf.marks import MarkedText, Marks

Ints = npt.NDArray[np.int64]


class LazyBatchEncoding(BatchEncoding[Any]):
    """A ``BatchEncoding`` whose ``encodings`` are made when they are asked for: that costs as much
    as encoding the text.
    """

    _made: list[Any] | None = None
    _make: Callable[[], list[Any]] | None = None

    def __init__(
        self, *args: Any, make: Callable[[], list[Any]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._make = make

    @classmethod
    def of(
        cls, data: dict[str, Any], n_sequences: int, make: Callable[[], list[Any]]
    ) -> LazyBatchEncoding:
        """One that takes ``data`` as they are, where the constructor copies them name by name."""
        made = cls.__new__(cls)
        vars(made).update(data=data, _n_sequences=n_sequences, _make=make)
        return made

    @property
    def _encodings(self) -> Any:
        if self._made is None and self._make is not None:
            self._made = self._make()
        return self._made

    @_encodings.setter
    def _encodings(self, made: Any) -> None:
        self._made = made

    @property
    def is_fast(self) -> bool:
        return self._made is not None or self._make is not None


class NumberEncoding:
    """What :class:`transformers.BatchEncoding` is filled from: the lists of a
    ``tokenizers.Encoding``, for a text with numbers. What is not said here is as ``marked`` says,
    the encoding of the marked text; of each of the ``sequences`` (two for a pair) there is its only
    text, or one per word if it was ``split``.
    """

    def __init__(
        self,
        marked: tokenizers.Encoding,
        sequences: Sequence[Sequence[MarkedText]],
        marks: Marks,
        split: bool,
    ) -> None:
        self.marked, self.sequences, self.marks, self.split = marked, sequences, marks, split

    def __getattr__(self, name: str) -> Any:
        return getattr(self.marked, name)

    def __len__(self) -> int:
        return len(self.marked)

    def restored(self) -> tokenizers.Encoding:
        """The encoding of the original text."""
        if not any(len(text) for texts in self.sequences for text in texts):
            return self.marked
        made = tokenizers.Encoding()
        made.__setstate__(json.dumps(self._state()).encode())
        return made

    def _state(self) -> dict[str, Any]:
        """As ``tokenizers`` writes an encoding into a pickle."""
        state: dict[str, Any] = json.loads(self.marked.__getstate__())
        return state | {
            "ids": self.ids,
            "tokens": self.tokens,
            "offsets": self.offsets,
            "overflowing": [encoding._state() for encoding in self.overflowing],
        }

    @functools.cached_property
    def _marked_ids(self) -> list[int]:
        return self.marked.ids

    @functools.cached_property
    def ids(self) -> list[int]:
        return self.marks.source_ids(self._marked_ids)

    @property
    def tokens(self) -> list[str]:
        contents, mark_ids = self.marks.contents, self.marks.mark_ids
        return [
            token[:-1] + contents[token[-1]] if id in mark_ids else token
            for token, id in zip(self.marked.tokens, self._marked_ids, strict=True)
        ]

    @functools.cached_property
    def overflowing(self) -> list[NumberEncoding]:
        rows = self.marked.overflowing
        return [NumberEncoding(row, self.sequences, self.marks, self.split) for row in rows]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        starts, stops = (places.copy() for places in self._marked_spans)
        for text, where in self._tokens_of_texts:
            starts[where], stops[where] = text.original(starts[where], stops[where])
        return list(zip(starts.tolist(), stops.tolist(), strict=True))

    @functools.cached_property
    def _marked_spans(self) -> tuple[Ints, Ints]:
        """Starts and stops of every token in its marked text."""
        flat = itertools.chain.from_iterable(self.marked.offsets)  # quicker than of tuples
        starts, stops = np.fromiter(flat, np.int64, 2 * len(self)).reshape(-1, 2).T
        return starts, stops

    @functools.cached_property
    def _tokens_of_texts(self) -> list[tuple[MarkedText, Ints]]:
        """The texts that hold numbers, and the tokens of each."""
        sequence_of = _or_none(self.marked.sequence_ids)
        word_of = _or_none(self.marked.word_ids) if self.split else np.zeros(len(self), np.int64)
        return [
            (text, np.flatnonzero((sequence_of == k) & (word_of == word)))
            for k, texts in enumerate(self.sequences)
            for word, text in enumerate(texts)
            if len(text)
        ]

    @property
    def number_tokens(self) -> tuple[Ints, Ints, Ints]:
        """(tokens, numbers, symbols): the tokens that stand for numbers, the call's number of each,
        and which of the number's tokens it is.
        """
        starts, stops = self._marked_spans
        is_mark = np.array([id in self.marks.mark_ids for id in self._marked_ids], np.bool_)
        parts = [(np.empty(0, np.int64),) * 3]
        for text, where in self._tokens_of_texts:
            if text.numbers_stay:
                parts.append(_first_tokens(text, where, starts[where], stops[where]))
                continue
            last = stops[where[is_mark[where]]] - 1
            number = text.numbers_at(last)
            parts.append(
                (where[is_mark[where]], number + text.first, last - text.mark_starts[number])
            )
        tokens, numbers, symbols = map(np.concatenate, zip(*parts, strict=True))
        return tokens, numbers, symbols


def _or_none(places: list[int | None]) -> Ints:
    return np.array([-1 if place is None else place for place in places], np.int64)


def _first_tokens(
    text: MarkedText, where: Ints, starts: Ints, stops: Ints
) -> tuple[Ints, Ints, Ints]:
    """Likewise where numbers stay text: the token in which each number begins, if it was not cut
    off; the first number of several.
    """
    if not len(where):
        return where, where, where
    token = np.searchsorted(np.maximum.accumulate(stops), text.starts, "right")
    covered = np.minimum(starts, stops - 1)  # a digit may have been trimmed to nothing
    begins = np.append(covered, np.iinfo(np.int64).max)[token]
    # After the start of the first token there was more.
    there = (begins < text.stops) & ((token > 0) | (begins <= text.starts))
    tokens, first = np.unique(token[there], return_index=True)
    return where[tokens], np.flatnonzero(there)[first] + text.first, np.zeros(len(tokens), np.int64)
