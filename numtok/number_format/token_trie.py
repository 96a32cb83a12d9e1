"""The texts of tokens as a trie that an automaton steps through at once: from one state, the state
after every token.

In: texts by token id, and the characters that an automaton knows. Out: int64[nodes], the state at
each node of the trie, one array operation for each character of the longest token.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from numtok.errors import FormatError
from numtok.tokenizer.token_texts import beside_others

Ints = npt.NDArray[np.int64]


class Table(Protocol):
    """int64[states, columns] of an automaton, the state after each character."""

    def __getitem__(self, index: tuple[Ints, Ints], /) -> Ints: ...


class TokenTrie:
    """A trie of tokens. Node 0 is the root, parents come before their children.

    Args:
        texts: (id, text) of each token.
        alphabet: the characters that have a column in the automaton.
        outside: whether there is a last column for all other characters: a token ends with the
            first of them, and one without text is such a character. If not, tokens that hold others
            are left out, and so are those without text.

    Attributes:
        ids: int64[tokens], the ids of the tokens that are in the trie.
        node: int64[tokens], the node where each of them ends.
        texts: the text of each node, without what was cut off.
    """

    def __init__(
        self, texts: Iterable[tuple[int, str]], alphabet: str, outside: bool = False
    ) -> None:
        columns = {character: column for column, character in enumerate(alphabet)}
        last = len(alphabet)
        nodes: dict[tuple[int, int], int] = {}
        depths, written, ids, ends = [0], [""], [], []
        for number, text in texts:
            path = [columns.get(character, last) for character in text] or [last]
            if last in path:
                if not outside:
                    continue
                path = path[: path.index(last) + 1]
            at = 0
            for depth, column in enumerate(path):
                to = nodes.setdefault((at, column), len(depths))
                if to == len(depths):
                    depths.append(depth + 1)
                    written.append(text[: depth + (column < last)])
                at = to
            ids.append(number)
            ends.append(at)
        order = np.argsort(depths, kind="stable")
        rank = np.argsort(order)
        before = np.array([(0, 0), *nodes], np.int64)[order]  # (nodes, 2)
        self.parent: Ints = rank[before[:, 0]]
        self._column = before[:, 1]
        self._levels = np.cumsum(np.bincount(depths)).tolist()
        self.ids: Ints = np.array(ids, np.int64)
        self.node: Ints = rank[np.array(ends, np.int64)]
        self.texts = [written[node] for node in order.tolist()]

    def states(self, table: Table, state: int) -> Ints:
        """Return int64[nodes], the state at each node if the root is in ``state``.

        Args:
            table: int64[states, columns], the state after each character.
            state: of the automaton.
        """
        states = np.full(len(self.parent), state)
        for start, stop in zip(self._levels, self._levels[1:], strict=False):
            states[start:stop] = table[states[self.parent[start:stop]], self._column[start:stop]]
        return states

    def single_characters(self) -> set[int]:
        """Return the columns of the characters that are tokens of their own."""
        single = self.node[self.parent[self.node] == 0]
        return set(self._column[single].tolist())


def token_bytes_of(tokenizer: Any) -> list[tuple[int, str]]:
    """Return (id, UTF-8) of each token, each byte as the character of its number."""
    return [(number, content.decode("latin-1")) for number, content in token_contents_of(tokenizer)]


def token_contents_of(tokenizer: Any) -> list[tuple[int, bytes]]:
    """Return (id, UTF-8) of each token of any tokenizer, as it stands beside others; special tokens
    have none. A character may be cut between tokens.

    Args:
        tokenizer: of transformers, a ``tokenizers.Tokenizer``, or a ``numtok.Tokenizer``.

    Raises:
        FormatError: for anything else, and for a tokenizer whose numbers have tokens of their own,
            as ``[NUM]``.
    """
    _check_numbers_are_text(getattr(tokenizer, "numtok", tokenizer))
    if hasattr(tokenizer, "own_tokens"):  # of numtok
        own_ids = set(tokenizer.own_tokens.values())
        contents = _contents(tokenizer.config)
        return [(number, b"" if number in own_ids else content) for number, content in contents]
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(fast, "to_str"):
        return _contents(json.loads(fast.to_str()))
    if hasattr(tokenizer, "decode") and hasattr(tokenizer, "all_special_ids"):
        return _decoded(tokenizer)
    raise FormatError(
        f"a tokenizer of transformers or tokenizers is needed, got {type(tokenizer).__name__}"
    )


def _check_numbers_are_text(tokenizer: Any) -> None:
    """Raise a FormatError if the numbers of a ``numtok.Tokenizer`` have tokens of their own."""
    if getattr(tokenizer, "own_tokens", None):
        first = tokenizer.representations[0]
        if not first.stays_text:
            raise FormatError(
                f"{first.name} writes numbers in tokens of its own, and only those in the tokens of"
                " the text can be held to figures; take Subword() or Digits(1, brackets=False)"
            )


def _contents(config: dict[str, Any]) -> list[tuple[int, bytes]]:
    special = {token["id"] for token in config["added_tokens"] if token["special"]}
    return [
        (number, b"" if number in special else content)
        for number, content in beside_others(config).items()
    ]


def _decoded(tokenizer: Any) -> list[tuple[int, bytes]]:
    """Return the contents of a tokenizer in Python: what a token adds to the text of another."""
    options = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
    [*_, first] = tokenizer("a", add_special_tokens=False)["input_ids"]
    before = tokenizer.decode([first], **options)
    special = set(tokenizer.all_special_ids)
    texts = (
        "" if number in special else tokenizer.decode([first, number], **options)[len(before) :]
        for number in range(len(tokenizer))
    )
    return [(number, text.encode("utf-8", "replace")) for number, text in enumerate(texts)]
