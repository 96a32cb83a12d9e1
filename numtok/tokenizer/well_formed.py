"""Numbers written token by token stay numbers: which tokens may follow, as a table of states and
columns.

State 0 is text, the last one is text directly after a number, the others are inside a number; a
column is a symbol, or all tokens of one kind. Which symbol may follow which says the representation
(:meth:`numtok.representations.SpelledOut.continuation`). The state of a row is read from its ids at
each step, so rows may be padded, reordered or left out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.representations import SingleToken, SpelledOut
from numtok.representations.continuation import NEVER, Continuation
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.vocabulary import Spelling, first_ids

TEXT = 0  # the state outside of numbers
LONGEST = 40  # characters of the largest integer of 128 bits, and a sign
FAR = 30_000  # more tokens than any number needs

ONE_SYMBOL = Continuation(np.array([[1], [NEVER]], np.int16), ends=np.array([False, True]))

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NumberRules:
    """See the module. The last state is that of text directly after a number."""

    column: Ints  # int64[ids + 1], the column of each token; that of ids beyond stands last
    after: Ints  # int64[states, columns], the state after a token
    allowed_next: Mask  # bool[states, columns], which tokens may come
    begins: Mask  # bool[columns], those that begin a number in any state
    leaves: Mask  # bool[columns], those after which there is text in any state
    to_text: Ints  # int64[states], the fewest tokens until there is text
    length: int | None  # tokens of each number, if all have the same; else None
    brackets: int  # how many tokens of a number are brackets

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> NumberRules | None:
        """Those of a tokenizer; None where anything may follow."""
        representation = tokenizer.representations[0]
        spelling = Spelling.of(representation, tokenizer.tokens)
        touching = numbers_touch(tokenizer)
        if isinstance(representation, SingleToken):
            plain, spaced = first_ids(tokenizer.tokens, None)
            spelling = Spelling(plain, range(len(plain)), spaced, 1, (-1, -1, -1))
            return None if touching else _unbracketed(ONE_SYMBOL, spelling, touching)
        if spelling is None or not isinstance(representation, SpelledOut):
            return None
        if (continuation := representation.continuation(tokenizer.grammar)) is None:
            return None
        if not spelling.bracketed:
            return _unbracketed(continuation, spelling, touching)
        in_text = ~np.isin(spelling.ids, list(tokenizer.own_tokens.values()))
        return _bracketed(continuation, spelling, in_text, touching)

    def allowed(
        self, ids: Ints, width: int, longest: int = LONGEST, max_length: Any = None
    ) -> Mask:
        """bool[rows, width]: which tokens may follow int64[rows, seq] ids. A token beyond those of
        the tokenizer is text.

        Args:
            ids: the prompt, padded or not, and what was written.
            width: how many tokens the model scores.
            longest: symbols that a number has at most, brackets not included; one that is longer
                ends as soon as it can. Not for numbers that all have the same length.
            max_length: how many tokens a row has at most, or int64[rows]: no number is begun that
                could not end by then. None: a row may be cut within a number.
        """
        state, written = self._state(self.column[np.minimum(ids, len(self.column) - 1)])
        room = np.full(len(ids), FAR)
        if self.length is None:
            room = longest + self.brackets - written
        if max_length is not None:
            room = np.minimum(room, max_length - ids.shape[1])
        # what cannot end in time ends as soon as it can
        room = np.clip(np.maximum(room, self.to_text[state]), 1, FAR)
        rows: Mask = self._needed[state] <= room[:, None]  # (rows, columns)
        columns = self.column[np.minimum(np.arange(width), len(self.column) - 1)]
        return rows[:, columns]

    @functools.cached_property
    def _needed(self) -> Ints:
        """int64[states, columns]: the fewest tokens until there is text after this one."""
        return np.where(self.allowed_next, 1 + self.to_text[self.after], FAR + 1)

    def _state(self, columns: Ints) -> tuple[Ints, Ints]:
        """(state, how many tokens of its number are there), int64[rows] each."""
        seq = columns.shape[1]
        places = np.arange(seq)
        start = np.where(self.begins[columns], places, -1).max(-1)  # (rows,)
        inside = start > np.where(self.leaves[columns], places, -1).max(-1)  # (rows,)
        if self.length is not None:
            inside &= start >= seq - self.length
        written = np.where(inside, seq - start, 0)  # (rows,)
        state = np.zeros_like(start)
        for at in range(seq - int(written.max(initial=0)), seq):
            moved = self.after[state, columns[:, at]]
            state = np.where(inside & (start <= at), moved, TEXT)  # (rows,)
        return state, np.where(self.to_text[state] == 0, 0, written)


def numbers_touch(tokenizer: Tokenizer) -> bool:
    """Whether encoded text has a number directly after another, in the form without a space: as a
    BERT's has, which writes a space there.
    """
    both, one = tokenizer.encode("0 0"), tokenizer.encode("0")
    if len(both.number_index) < 2:
        return True  # no numbers to the grammar: there is nothing to say
    spelling = Spelling.of(tokenizer.representations[0], tokenizer.tokens)
    second = int(both.number_index[1])
    plain, _ = first_ids(tokenizer.tokens, spelling)
    return second == len(one.input_ids) and both.input_ids[second] in plain


class _Table:
    """Rules in the making: of text, so many states inside of numbers, and text after a number."""

    def __init__(self, inside: int, columns: int) -> None:
        self.behind = inside + 1
        self.after = np.full((inside + 2, columns), TEXT, np.int64)
        self.allowed = np.zeros((inside + 2, columns), np.bool_)

    def rules(
        self,
        ids: Iterable[int],
        columns: Iterable[int],
        plain: Iterable[int],
        spaced: Iterable[int],
        to_text: Ints,
        touching: bool,
        **known: Any,
    ) -> NumberRules:
        """With ``ids`` in their ``columns``, all others in the last; numbers begin in the columns
        ``plain`` and ``spaced``.
        """
        last, plain = self.after.shape[1] - 1, list(plain)
        self.after[self.behind], self.allowed[self.behind] = self.after[TEXT], self.allowed[TEXT]
        self.allowed[self.behind, plain] &= touching
        pairs = {int(one): at for one, at in zip(ids, columns, strict=True) if one >= 0}
        column = np.full(max(pairs) + 2, last, np.int64)
        column[list(pairs)] = list(pairs.values())
        begins, leaves = np.zeros((2, last + 1), np.bool_)
        begins[[*plain, *spaced]], leaves[last] = True, True
        to_text = np.concatenate([[0], to_text, [0]])
        return NumberRules(column, self.after, self.allowed, begins, leaves, to_text, **known)


def _bracketed(
    continuation: Continuation, spelling: Spelling, in_text: Mask, touching: bool
) -> NumberRules:
    """Columns: the symbols, ``[NUM]``, `` [NUM]``, ``[/NUM]``, others. State s of a number is s +
    1, and the symbols ``in_text`` are tokens of the text too.
    """
    following = continuation.following
    states, symbols = following.shape
    plain, spaced, closing = range(symbols, symbols + 3)
    table = _Table(states, symbols + 4)
    inside = slice(1, states + 1)
    table.after[inside, :symbols] = np.where(following == NEVER, TEXT, following + 1)
    table.after[inside, closing] = table.behind
    table.after[TEXT, [plain, spaced]] = 1
    table.allowed[inside, :symbols] = following != NEVER
    table.allowed[inside, closing] = continuation.ends
    table.allowed[TEXT] = np.append(in_text, [True, True, False, True])
    return table.rules(
        [*spelling.ids, *spelling.brackets],
        range(symbols + 3),
        [plain],
        [spaced],
        continuation.to_end + 1,
        touching,
        length=None,
        brackets=2,
    )


def _unbracketed(continuation: Continuation, spelling: Spelling, touching: bool) -> NumberRules:
    """Columns: the symbols, those that begin a number once more with a space before them, others.
    Nothing but numbers has these symbols; a number begins in TEXT, its state 0.
    """
    following = continuation.following
    states, symbols = following.shape
    first = np.array(spelling.first)
    spaced = symbols + np.arange(len(spelling.spaced))
    others = symbols + len(spaced)
    table = _Table(states - 1, others + 1)
    possible = following != NEVER
    complete = continuation.ends & ~possible.any(1)
    table.after[:states, :symbols] = np.where(
        possible, np.where(complete[following], table.behind, following), TEXT
    )
    table.after[TEXT, spaced] = table.after[TEXT, first[: len(spaced)]]
    table.allowed[:states, :symbols] = possible
    table.allowed[TEXT, spaced] = table.allowed[TEXT, others] = True
    return table.rules(
        [*spelling.ids, *spelling.spaced],
        range(others),
        first,
        spaced,
        continuation.to_end[1:],
        touching,
        length=spelling.length,
        brackets=0,
    )
