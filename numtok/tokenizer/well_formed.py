"""Numbers written token by token stay numbers: which tokens may follow, as a table of states and
columns.

State 0 is text, the last one is text directly after a number, the others are inside a number; a
column is a symbol, or all tokens of one kind. Which symbol may follow which says the representation
(:meth:`numtok.representations.SpelledOut.continuation`). The state of a row is read from its ids at
each step, so rows may be padded, reordered or left out.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.representations import END_NUM, SingleToken, SpelledOut
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
        representation, tokens = tokenizer.representations[0], tokenizer.tokens
        spelling, touching = Spelling.of(representation, tokens), numbers_touch(tokenizer)
        plain, spaced = (ids.tolist() for ids in first_ids(tokens, spelling))
        if isinstance(representation, SingleToken):
            return None if touching else _rules(ONE_SYMBOL, plain, spaced, (), touching, length=1)
        if spelling is None or not isinstance(representation, SpelledOut):
            return None
        if (continuation := representation.continuation(tokenizer.grammar)) is None:
            return None
        ids, length = spelling.ids.tolist(), spelling.length
        if not spelling.bracketed:
            return _rules(continuation, ids, spaced, (), touching, length=length)
        in_text = np.flatnonzero(~np.isin(ids, list(tokenizer.own_tokens.values())))
        continuation = _in_brackets(continuation)
        ids = [*ids, *plain, tokens[END_NUM]]
        return _rules(continuation, ids, spaced, in_text, touching, brackets=2)

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


def _in_brackets(inside: Continuation) -> Continuation:
    """Of numbers with two symbols more around them."""
    states, symbols = inside.following.shape
    opening, closing, end = symbols, symbols + 1, states + 1
    following = np.full((states + 2, symbols + 2), NEVER, np.int16)
    following[0, opening] = 1
    following[1:end, :symbols] = np.where(inside.following == NEVER, NEVER, inside.following + 1)
    following[1:end, closing][inside.ends] = end
    return Continuation(following, np.arange(states + 2) == end)


def _rules(
    continuation: Continuation,
    ids: Sequence[int],
    spaced: Sequence[int],
    in_text: Sequence[int] | Ints,
    touching: bool,
    length: int | None = None,
    brackets: int = 0,
) -> NumberRules:
    """Columns: the symbols, whose tokens have these ids; those that begin a number once more, with a
    space before them; all others. A number begins in TEXT, the state 0 of the continuation; the
    symbols ``in_text`` are tokens of the text too.
    """
    following, possible = continuation.following, continuation.following != NEVER
    states, symbols = following.shape
    first = np.flatnonzero(possible[0])
    with_space, others = symbols + np.arange(len(spaced)), symbols + len(spaced)
    after = np.full((states + 1, others + 1), TEXT, np.int64)
    allowed = np.zeros((states + 1, others + 1), np.bool_)
    complete = continuation.ends & ~possible.any(1)
    onward = np.where(complete[following], states, following)  # the last state is behind a number
    after[:-1, :symbols] = np.where(possible, onward, TEXT)
    after[TEXT, with_space] = after[TEXT, first[: len(spaced)]]
    allowed[:-1, :symbols] = possible
    allowed[TEXT, [*with_space, others, *in_text]] = True
    after[-1], allowed[-1] = after[TEXT], allowed[TEXT]
    allowed[-1, first] &= touching
    column = np.full(max([*ids, *spaced]) + 2, others, np.int64)
    column[[*ids, *spaced]] = np.arange(others)
    begins, leaves = np.zeros((2, others + 1), np.bool_)
    begins[[*first, *with_space]], leaves[others] = True, True
    to_text = np.array([0, *continuation.to_end[1:], 0])
    return NumberRules(column, after, allowed, begins, leaves, to_text, length, brackets)
