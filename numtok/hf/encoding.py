"""What ``tokenizers`` returns for a marked text, as if it had been given the original one.

In: ``tokenizers.Encoding`` of a marked text (:mod:`numtok.hf.marks`). Out: the ids and tokens of
    the source tokenizer, offsets into the original text, and which tokens are numbers. An
    ``Encoding`` of the original text costs as much as encoding it, so :class:`LazyBatchEncoding`
    makes them when something asks for them.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tokenizers
from transformers import BatchEncoding, PreTrainedTokenizerFast

from numtok.hf.marks import MarkedText, Marks

Ints = npt.NDArray[np.int64]


class LazyBatchEncoding(BatchEncoding[Any]):
    """A ``BatchEncoding`` whose ``encodings`` are made when they are asked for."""

    _made: list[Any] | None = None
    _make: Callable[[], list[Any]] | None = None

    def __init__(
        self, *args: Any, make: Callable[[], list[Any]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._make = make

    @classmethod
    def of(cls, base: BatchEncoding[Any], make: Callable[[], list[Any]]) -> LazyBatchEncoding:
        """What ``base`` holds, without its encodings."""
        made = cls.__new__(cls)
        vars(made).update(
            {name: value for name, value in vars(base).items() if name != "_encodings"}, _make=make
        )
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
    ``tokenizers.Encoding``, for a text with numbers.

    Args:
        marked: the encoding of the marked text.
        sequences: the texts: of each sequence (two for a pair) its only text, or one per word if it
            was split into words.
        marks: the marks that were used.
        split: whether the sequences were split into words.
    """

    def __init__(
        self,
        marked: tokenizers.Encoding,
        sequences: Sequence[Sequence[MarkedText]],
        marks: Marks,
        split: bool,
    ) -> None:
        self.marked, self.sequences, self.marks, self.split = marked, sequences, marks, split
        self.n_sequences = marked.n_sequences

    @property
    def type_ids(self) -> list[int]:
        return self.marked.type_ids

    @property
    def attention_mask(self) -> list[int]:
        return self.marked.attention_mask

    @property
    def special_tokens_mask(self) -> list[int]:
        return self.marked.special_tokens_mask

    def __len__(self) -> int:
        return len(self.marked)

    @functools.cached_property
    def _has_numbers(self) -> bool:
        return any(len(text) for texts in self.sequences for text in texts)

    def restored(self) -> tokenizers.Encoding:
        """The encoding of the original text."""
        if not self._has_numbers:
            return self.marked
        made = tokenizers.Encoding()
        made.__setstate__(json.dumps(self._state()).encode())
        return made

    def _state(self) -> dict[str, Any]:
        """As ``tokenizers`` writes an encoding into a pickle."""
        state: dict[str, Any] = json.loads(self.marked.__getstate__())
        rest = [encoding._state() for encoding in self.overflowing]
        return state | {
            "ids": self.ids,
            "tokens": self.tokens,
            "offsets": self.offsets,
            "overflowing": rest,
        }

    @functools.cached_property
    def _marked_ids(self) -> list[int]:
        return self.marked.ids

    @functools.cached_property
    def ids(self) -> list[int]:
        ids = self._marked_ids
        return self.marks.ids[ids].tolist() if self.marks.renames and ids else ids

    @property
    def tokens(self) -> list[str]:
        contents = self.marks.contents
        is_mark = self.marks.is_mark[np.array(self._marked_ids, np.int64)].tolist()
        return [
            token[:-1] + contents[token[-1]] if mark else token
            for token, mark in zip(self.marked.tokens, is_mark, strict=True)
        ]

    @functools.cached_property
    def overflowing(self) -> list[NumberEncoding]:
        return [
            NumberEncoding(row, self.sequences, self.marks, self.split)
            for row in self.marked.overflowing
        ]

    @functools.cached_property
    def _spans(self) -> tuple[Ints, Ints]:
        """Starts and stops of every token in its original text."""
        starts, stops = self._marked_spans
        if not self._has_numbers:
            return starts, stops
        if (
            text := self._only_text
        ) is not None:  # what is not of the text is at (0, 0), and stays there
            return text.original(starts, stops)
        starts, stops = starts.copy(), stops.copy()
        for text, where in self._tokens_of_texts():
            starts[where], stops[where] = text.original(starts[where], stops[where])
        return starts, stops

    @functools.cached_property
    def _marked_spans(self) -> tuple[Ints, Ints]:
        """Likewise in its marked text."""
        flat = itertools.chain.from_iterable(
            self.marked.offsets
        )  # three times as fast as an array of tuples
        starts, stops = np.fromiter(flat, np.int64, 2 * len(self.marked)).reshape(-1, 2).T
        return starts, stops

    @property
    def _only_text(self) -> MarkedText | None:
        """The text, if there is but one."""
        return (
            self.sequences[0][0]
            if len(self.sequences) == 1 and len(self.sequences[0]) == 1
            else None
        )

    def _tokens_of_texts(self) -> list[tuple[MarkedText, npt.NDArray[Any]]]:
        """The texts that hold numbers, and the tokens of each."""
        sequence_of = np.array(
            [-1 if sequence is None else sequence for sequence in self.marked.sequence_ids],
            np.int64,
        )
        if not self.split:
            return [
                (texts[0], np.flatnonzero(sequence_of == k))
                for k, texts in enumerate(self.sequences)
                if len(texts[0])
            ]
        words = np.array([-1 if word is None else word for word in self.marked.word_ids], np.int64)
        return [
            (text, np.flatnonzero((sequence_of == k) & (words == word)))
            for k, texts in enumerate(self.sequences)
            for word, text in enumerate(texts)
            if len(text)
        ]

    @functools.cached_property
    def number_tokens(self) -> tuple[Ints, Ints, Ints]:
        """(tokens, numbers, symbols): the tokens that stand for numbers, the call's number of each,
        and which of the number's tokens it is.
        """
        parts: list[tuple[Ints, Ints, Ints]] = []
        if self._has_numbers:
            if (only := self._only_text) is not None and (
                all_of_them := only.all_marks(self._mark_tokens)
            ) is not None:
                return all_of_them
            starts, stops = self._marked_spans
            for text, where in self._tokens_of_texts():
                if text.numbers_stay:
                    parts.append(_first_tokens(text, where, starts[where], stops[where]))
                    continue
                where = np.intersect1d(where, self._mark_tokens)
                number = text.numbers_at(stops[where] - 1)
                where, number = where[number >= 0], number[number >= 0]
                parts.append(
                    (where, number + text.first, stops[where] - 1 - text.mark_starts[number])
                )
        empty = np.empty(0, np.int64)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)] or [
            empty,
            empty,
            empty,
        ]
        order = np.argsort(columns[0], kind="stable")
        return columns[0][order], columns[1][order], columns[2][order]

    @functools.cached_property
    def _mark_tokens(self) -> Ints:
        """Which tokens are marks."""
        return np.flatnonzero(self.marks.is_mark[np.array(self._marked_ids, np.int64)])

    @property
    def offsets(self) -> list[tuple[int, int]]:
        if not self._has_numbers:
            return self.marked.offsets
        if (text := self._only_text) is not None and (
            all_of_them := text.all_marks(self._mark_tokens)
        ) is not None:
            return text.original_offsets(self.marked.offsets, *all_of_them)
        starts, stops = self._spans
        return list(zip(starts.tolist(), stops.tolist(), strict=True))


def _first_tokens(
    text: MarkedText, where: Ints, starts: Ints, stops: Ints
) -> tuple[Ints, Ints, Ints]:
    """Likewise where numbers stay text: the token in which each number begins, if it was not cut
    off; the first number of several.
    """
    if not len(where):
        return where, where, where
    token = np.searchsorted(np.maximum.accumulate(stops), text.starts, "right")
    covered = np.minimum(
        starts, stops - 1
    )  # a digit behind a space that was put there may have been trimmed to nothing
    begins = np.append(covered, np.iinfo(np.int64).max)[token]
    there = (begins < text.stops) & (
        (token > 0) | (begins <= text.starts)
    )  # behind the start of the first token there was more
    tokens, first = np.unique(token[there], return_index=True)
    return where[tokens], np.flatnonzero(there)[first] + text.first, np.zeros(len(tokens), np.int64)


class MarkedTokenizer(PreTrainedTokenizerFast):
    """A tokenizer for one call: the same in everything, with marks, and encodings that know the
    original text.
    """

    _rows: Iterator[list[list[MarkedText]]]
    _marks: Marks
    _split: bool

    def _convert_encoding(self, encoding: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        of_original: Any = NumberEncoding(encoding, next(self._rows), self._marks, self._split)
        return super()._convert_encoding(encoding=of_original, **kwargs)


def with_marks(
    tokenizer: PreTrainedTokenizerFast,
    marks: Marks,
    rows: Iterable[list[list[MarkedText]]] = (),
    split: bool = False,
    offsets: bool = True,
) -> MarkedTokenizer:
    """The tokenizer with marks; nothing that happens to it is seen there.

    ``rows`` are the sequences of each row that it will encode.
    """
    made = MarkedTokenizer.__new__(MarkedTokenizer)
    backend = marks.tokenizer if offsets else marks.without_offsets
    vars(made).update(
        vars(tokenizer), _tokenizer=backend, _marks=marks, _rows=iter(rows), _split=split
    )
    return made
