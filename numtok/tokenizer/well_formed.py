"""Numbers written token by token stay numbers: which tokens may follow, as a table of states and
columns.

The first states are those of text (:mod:`numtok.numbers.neighbours`), the others are inside a
number; a column is a symbol, or all tokens whose text is alike. Which symbol may follow which says
the representation (:meth:`numtok.representations.SpelledOut.continuation`). After ``.`` or ``)`` a
sign or a decimal mark of a number would not be read, so the states inside a number are there three
times: for any number, for those without a sign, and for those that begin with a digit. The state of
a row is read from its ids at each step, so rows may be padded, reordered or left out.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.numbers.neighbours import NUMBER, OTHER_TEXT, around, may_begin
from numtok.representations import END_NUM, SingleToken, SpelledOut
from numtok.representations.continuation import NEVER, Continuation
from numtok.tokenizer.token_texts import token_texts
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.vocabulary import Spelling, first_ids

LONGEST = 40  # characters of the largest integer of 128 bits, and a sign
FAR = 30_000  # more tokens than any number needs

ONE_SYMBOL = Continuation(np.array([[1], [NEVER]], np.int16), ends=np.array([False, True]))

NO_SYMBOLS = np.empty(0, np.int64)

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NumberRules:
    """See the module."""

    column: Ints  # int64[ids + 1], the column of each token; that of ids beyond stands last
    after: Ints  # int64[states, columns], the state after a token
    allowed_next: Mask  # bool[states, columns], which tokens may come
    begins: Mask  # bool[columns], those that begin a number in any state
    settles: Mask  # bool[columns], those after which the state is the same whatever it was
    to_text: Ints  # int64[states], the fewest tokens until there is text
    length: int | None  # tokens of each number, if all have the same; else None
    brackets: int  # how many tokens of a number are brackets

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> NumberRules | None:
        """Those of a tokenizer; None where anything may follow."""
        return _rules_of(tokenizer)

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
        number = np.where(self.begins[columns], places, -1).max(-1)  # (rows,)
        start = np.where(self.settles[columns], places, 0).max(-1, initial=0)  # (rows,)
        state = np.full_like(start, OTHER_TEXT)
        for at in range(int(start.min(initial=seq)), seq):
            moved = self.after[state, columns[:, at]]
            state = np.where(start <= at, moved, OTHER_TEXT)  # (rows,)
        return state, np.where(self.to_text[state] == 0, 0, seq - number)


@functools.lru_cache(maxsize=2)  # generate asks for them at every call
def _rules_of(tokenizer: Tokenizer) -> NumberRules | None:
    representation, tokens = tokenizer.representations[0], tokenizer.tokens
    spelling, touching = Spelling.of(representation, tokens), numbers_touch(tokenizer)
    plain, spaced = (ids.tolist() for ids in first_ids(tokens, spelling))
    if isinstance(representation, SingleToken):
        return _rules(
            tokenizer, [ONE_SYMBOL] * 3, plain, plain, spaced, NO_SYMBOLS, touching, length=1
        )
    if spelling is None or not isinstance(representation, SpelledOut):
        return None
    unsigned = replace(tokenizer.grammar, signs=False)
    numbers = []
    for grammar in (tokenizer.grammar, unsigned, replace(unsigned, leading_dot=False)):
        if (continuation := representation.continuation(grammar)) is None:
            return None
        numbers.append(continuation)
    ids, length = spelling.ids.tolist(), spelling.length
    if not spelling.bracketed:
        return _rules(tokenizer, numbers, ids, plain, spaced, NO_SYMBOLS, touching, length=length)
    in_text = np.flatnonzero(~np.isin(ids, list(tokenizer.own_tokens.values())))
    numbers = [_in_brackets(continuation) for continuation in numbers]
    ids = [*ids, *plain, tokens[END_NUM]]
    return _rules(tokenizer, numbers, ids, plain, spaced, in_text, touching, brackets=2)


def numbers_touch(tokenizer: Tokenizer) -> bool:
    """Whether encoded text has a number directly after another, in the form without a space: as BERT's
    and T5's have, where decoding writes a space (:mod:`numtok.tokenizer.number_spaces`).
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
    tokenizer: Tokenizer,
    numbers: Sequence[Continuation],
    ids: Sequence[int],
    plain: Sequence[int],
    spaced: Sequence[int],
    in_text: Ints,
    touching: bool,
    length: int | None = None,
    brackets: int = 0,
) -> NumberRules:
    """Columns: the symbols, whose tokens have these ids; those that begin a number (``plain``) once
    more, with a space before them (``spaced``); each kind of text. A number begins in a state of text, which takes the place
    of the state 0 of the continuation. ``numbers`` are any, those without a sign, and those that
    begin with a digit. The symbols ``in_text`` are tokens of the text too.
    """
    texts = token_texts(tokenizer.config)
    text = around(tokenizer.grammar, [*texts, " "])  # the last is that of ids beyond
    (outside, kinds), symbols = text.after.shape, numbers[0].following.shape[1]
    blank = text.after[:, text.which[-1]]  # the state after a space
    begins = may_begin(tokenizer.grammar, tokenizer.carries_sign)
    may_follow, which = begins.digit, 2 - begins.mark.astype(np.int64) - begins.sign
    may_follow_space, which_after_space = may_follow[blank], which[blank]
    if touching:
        may_follow, which = may_follow_space, which_after_space
    first = np.flatnonzero(np.isin(ids, plain))
    others = symbols + len(spaced)
    with_space = np.arange(symbols, others)
    sizes = [len(continuation.ends) - 1 for continuation in numbers]
    after = np.full((outside + sum(sizes), others + kinds), OTHER_TEXT, np.int64)
    allowed = np.zeros(after.shape, np.bool_)
    after[:, others:] = text.after[OTHER_TEXT]  # within a number: none may follow
    after[:outside, others:], allowed[:outside, others:] = text.after, text.allowed
    like = text.which[np.asarray(ids, np.int64)[in_text]]
    after[:outside, in_text] = text.after[:, like]
    allowed[:outside, in_text] = text.allowed[:, like]
    begin = outside
    for of, (continuation, size) in enumerate(zip(numbers, sizes, strict=True)):
        following, possible = continuation.following, continuation.following != NEVER
        complete = continuation.ends & ~possible.any(1)
        onward = np.where(complete[following], NUMBER, following + begin - 1)
        inside = slice(begin, begin + size)
        after[inside, :symbols] = np.where(possible, onward, OTHER_TEXT)[1:]
        allowed[inside, :symbols] = possible[1:]
        for columns, some, may in (
            (first, which, may_follow),
            (with_space, which_after_space, may_follow_space),
        ):
            rows, one = np.flatnonzero(some == of)[:, None], first[: len(columns)]
            after[rows, columns] = np.where(possible[0, one], onward[0, one], OTHER_TEXT)
            allowed[rows, columns] = possible[0, one] & may[rows]
        begin += size
    column = others + text.which
    column[[*ids, *spaced]] = np.arange(others)
    begun = np.zeros(others + kinds, np.bool_)
    begun[[*first, *with_space]] = True
    settles = (after == after[0]).all(0)
    to_text = np.concatenate([np.zeros(outside, np.int64), *(one.to_end[1:] for one in numbers)])
    return NumberRules(column, after, allowed, begun, settles, to_text, length, brackets)
