"""The arguments of one call: its texts, in whatever nesting the caller gave them, and which of them
belong together.

In: ``text`` and ``text_pair`` as transformers takes them. Out: a flat list of strings, the same
    nesting with other strings, and for each row that
will be encoded its sequences: one, or two for a pair, each of one text, or of words if it was
    split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from numtok.errors import InputError
from numtok.hf.marks import MarkedText

# a str, or a list or tuple of trees; likewise with the place of each string among all of the call
Tree = Any


class Call(NamedTuple):
    """The arguments of one call.

    Attributes:
        text, pair: the texts. with_streams: whether to return the number streams.
        options: the others, as the base class hands them to its ``_encode_plus``.
    """

    text: Tree
    pair: Tree
    with_streams: bool
    options: Mapping[str, Any]


class CallTexts:
    """The texts of one call.

    Attributes:
        strings: all of them. split: whether they are words. batched: whether ``text`` is a batch.

    Raises:
        InputError: if something is not a text.
    """

    def __init__(self, text: Tree, pair: Tree, split: bool) -> None:
        self.strings: list[str] = []
        self.split = split
        self._text, self._pair = text, pair
        self._text_places = self._placed(text)
        self._pair_places = None if pair is None else self._placed(pair)
        many = isinstance(text, list | tuple)
        self.batched = many and (not split or (bool(text) and isinstance(text[0], list | tuple)))

    def _placed(self, tree: Tree) -> Tree:
        if isinstance(tree, str):
            self.strings.append(tree)
            return len(self.strings) - 1
        if not isinstance(tree, list | tuple):
            raise InputError(f"expected text, got {type(tree).__name__}")
        return [self._placed(branch) for branch in tree]

    @property
    def one_each(self) -> bool:
        """Whether every row is one text."""
        return self._pair_places is None and all(
            isinstance(place, int)
            for place in (self._text_places if self.batched else [self._text_places])
        )

    def rebuilt(self, strings: Sequence[str]) -> tuple[Tree, Tree]:
        """``text`` and ``text_pair`` with other strings."""
        return _rebuilt(self._text, self._text_places, strings), _rebuilt(
            self._pair, self._pair_places, strings
        )

    def rows(self, marked: Sequence[MarkedText]) -> Iterator[list[list[MarkedText]]]:
        """For each row in order, its sequences."""
        for sequences in self._rows():
            yield [[marked[place] for place in _flat(sequence)] for sequence in sequences]

    def _rows(self) -> Iterator[list[Tree]]:
        if self.batched and self._pair_places is not None:
            yield from (
                [first, second]
                for first, second in zip(self._text_places, self._pair_places, strict=False)
            )
        elif self.batched:
            yield from (self._sequences(row) for row in self._text_places)
        elif self._pair:  # as in transformers, an empty one is none
            yield [self._text_places, self._pair_places]
        else:
            yield self._sequences(self._text_places)

    def _sequences(self, row: Tree) -> list[Tree]:
        """A row is one sequence, or a pair within the batch."""
        if isinstance(row, int):
            return [row]
        if self.split and all(isinstance(word, int) for word in row):
            return [row]
        return list(row)


def _rebuilt(tree: Tree, places: Tree, strings: Sequence[str]) -> Tree:
    if tree is None:
        return None
    if isinstance(places, int):
        return strings[places]
    branches = [
        _rebuilt(branch, below, strings) for branch, below in zip(tree, places, strict=True)
    ]
    return tuple(branches) if isinstance(tree, tuple) else branches


def _flat(tree: Tree) -> list[int]:
    return (
        [tree] if isinstance(tree, int) else [place for branch in tree for place in _flat(branch)]
    )
