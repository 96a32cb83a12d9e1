"""What ``tokenizers`` returns for a marked text, as if it had been given the original one.

In: ``tokenizers.Encoding`` of a marked text (:mod:`numtok.hf_marks`). Out: the same interface, with the ids and tokens of the source tokenizer and
offsets into the original text. Nothing is computed before it is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.hf_marks import Leaf, Marks

Ints = npt.NDArray[np.int64]


class NumberEncoding:
    """A ``tokenizers.Encoding`` of a text with numbers.

    Args:
        marked: the encoding of the marked text.
        sequences: the texts: of each sequence (two for a pair) its only text, or one per word if it was split into words.
        marks: the marks that were used.
        split: whether the sequences were split into words.

    Attributes of ``tokenizers.Encoding`` that do not depend on numbers (``type_ids``, ``word_ids``, ``n_sequences``...) are those of ``marked``.
    """

    def __init__(self, marked: Any, sequences: Sequence[Sequence[Leaf]], marks: Marks, split: bool) -> None:
        self.marked, self.sequences, self.marks, self.split = marked, sequences, marks, split
        self._has_numbers = any(map(len, (leaf for leaves in sequences for leaf in leaves)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "marked":  # copy and pickle ask for such before there is one
            raise AttributeError(name)
        return getattr(self.marked, name)

    def __len__(self) -> int:
        return len(self.marked)

    def __repr__(self) -> str:
        return repr(self.marked)

    def __getstate__(self) -> dict[str, Any]:
        """Plain values and the Rust encoding; the marks' tokenizer stays behind."""
        plain = {"_ids": self._ids, "_tokens": self._tokens, "_spans": self._spans, "overflowing": self.overflowing}
        return plain | {
            "marked": self.marked,
            "sequences": self.sequences,
            "marks": None,
            "split": self.split,
            "_has_numbers": self._has_numbers,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # Ids and tokens

    @functools.cached_property
    def _ids(self) -> list[int]:
        ids = self.marked.ids
        return self.marks.ids[ids].tolist() if self.marks.renames and ids else ids  # type: ignore[no-any-return]

    @property
    def ids(self) -> list[int]:
        return list(self._ids)

    @functools.cached_property
    def _tokens(self) -> list[str]:
        contents = self.marks.contents
        tokens = self.marked.tokens
        if not self._has_numbers:
            return tokens  # type: ignore[no-any-return]
        return [token[:-1] + contents[token[-1]] if token[-1:] in contents and len(token) <= 2 else token for token in tokens]

    @property
    def tokens(self) -> list[str]:
        return list(self._tokens)

    @functools.cached_property
    def overflowing(self) -> list[NumberEncoding]:
        return [NumberEncoding(one, self.sequences, self.marks, self.split) for one in self.marked.overflowing]

    # Offsets

    @functools.cached_property
    def _spans(self) -> tuple[Ints, Ints]:
        """Starts and stops of every token in its original text."""
        starts, stops = np.array(self.marked.offsets, np.int64).reshape(-1, 2).T
        if not self._has_numbers:
            return starts, stops
        starts, stops = starts.copy(), stops.copy()
        for leaf, where in self._tokens_of_leaves():
            starts[where], stops[where] = leaf.original(starts[where], stops[where])
        return starts, stops

    def _tokens_of_leaves(self) -> list[tuple[Leaf, npt.NDArray[Any]]]:
        """The texts that hold numbers, and the tokens of each."""
        sequence_of = np.array([-1 if sequence is None else sequence for sequence in self.marked.sequence_ids], np.int64)
        if not self.split:
            return [(leaves[0], np.flatnonzero(sequence_of == k)) for k, leaves in enumerate(self.sequences) if len(leaves[0])]
        words = np.array([-1 if word is None else word for word in self.marked.word_ids], np.int64)
        return [
            (leaf, np.flatnonzero((sequence_of == k) & (words == word)))
            for k, leaves in enumerate(self.sequences)
            for word, leaf in enumerate(leaves)
            if len(leaf)
        ]

    @functools.cached_property
    def number_tokens(self) -> tuple[Ints, Ints, Ints]:
        """(tokens, numbers, symbols): the tokens that stand for numbers, the call's number of each, and which of the number's tokens it is."""
        found: list[tuple[Ints, Ints, Ints]] = []
        if self._has_numbers:
            is_mark = self.marks.is_mark[np.array(self.marked.ids, np.int64)]
            stops = np.array(self.marked.offsets, np.int64).reshape(-1, 2)[:, 1]
            for leaf, where in self._tokens_of_leaves():
                if leaf.as_text:
                    found.append(_first_tokens(leaf, where, stops[where]))
                    continue
                where = where[is_mark[where]]
                number = leaf.numbers_at(stops[where] - 1)
                where, number = where[number >= 0], number[number >= 0]
                found.append((where, number + leaf.first, stops[where] - 1 - leaf.mark_starts[number]))
        empty = np.empty(0, np.int64)
        columns = [np.concatenate(column) for column in zip(*found, strict=True)] or [empty, empty, empty]
        order = np.argsort(columns[0], kind="stable")
        return columns[0][order], columns[1][order], columns[2][order]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        starts, stops = self._spans
        return list(zip(starts.tolist(), stops.tolist(), strict=True))

    # Alignment, after the definitions of `tokenizers`

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        starts, stops = self._spans
        inside = (starts <= char_pos) & (char_pos < stops)
        inside &= np.array([sequence == sequence_index for sequence in self.marked.sequence_ids], np.bool_)
        return int(np.argmax(inside)) if inside.any() else None

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.marked.token_to_word(token)

    def token_to_chars(self, token_index: int) -> tuple[int, int] | None:
        if self.marked.token_to_chars(token_index) is None:
            return None
        starts, stops = self._spans
        return int(starts[token_index]), int(stops[token_index])

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> tuple[int, int] | None:
        tokens = self.marked.word_to_tokens(word_index, sequence_index)
        if tokens is None:
            return None
        starts, stops = self._spans
        return int(starts[tokens[0]]), int(stops[tokens[1] - 1])

    # Changes

    def pad(self, *args: Any, **kwargs: Any) -> None:
        self.marked.pad(*args, **kwargs)
        self._forget()

    def truncate(self, *args: Any, **kwargs: Any) -> None:
        self.marked.truncate(*args, **kwargs)
        self._forget()

    def _forget(self) -> None:
        for name in ("_ids", "_tokens", "_spans", "overflowing", "number_tokens"):
            self.__dict__.pop(name, None)


def _first_tokens(leaf: Leaf, where: Ints, stops: Ints) -> tuple[Ints, Ints, Ints]:
    """Likewise where numbers stay text: the token in which each number begins, if it was not cut off; the first number of several."""
    token = np.searchsorted(np.maximum.accumulate(stops), leaf.starts, "right") if len(stops) else np.zeros(len(leaf), np.int64)
    begins = np.append(np.concatenate([[0], stops[:-1]]) if len(stops) else [], np.inf)
    there = (token < len(where)) & (begins[token] < leaf.stops)
    tokens, first = np.unique(token[there], return_index=True)
    return where[tokens], np.flatnonzero(there)[first] + leaf.first, np.zeros(len(tokens), np.int64)
