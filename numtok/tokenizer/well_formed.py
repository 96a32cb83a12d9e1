"""Numbers written token by token stay numbers: which tokens may follow, as a table of states and
columns.

The first states are those of text (:mod:`numtok.numbers.text_boundaries`), the others are inside a
number; a column is a symbol, or all tokens whose text is alike. Which symbol may follow which says
the representation (:meth:`numtok.representations.SpelledOut.continuation`). After ``.`` or ``)`` a
sign or a decimal mark of a number would not be read, so the states inside a number are there three
times: for any number, for those without a sign, and for those that begin with a digit. The state of
a row is read from its ids at each step, so rows may be padded, reordered or left out.

Where numbers are tokens of the text, a token may be read in several ways: the point of ``12.`` goes
on to a fraction, or ends a sentence. There a state is the set of all readings (:class:`_TextRules`),
and a token may follow if one of them lets it. What is kept to is then that each number is written in
the groups of the representation, by its tokens alone: no ``42`` that is one word of the vocabulary.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays.cached import cached_property
from numtok.numbers.automaton import NEVER, Continuation
from numtok.numbers.text_boundaries import NUMBER, OTHER_TEXT, STATES, around, may_begin
from numtok.representations import END_NUM, SingleToken, SpelledOut
from numtok.tokenizer.token_texts import token_texts
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.vocabulary import Ids, first_ids

LONGEST = 40  # characters of the largest integer of 128 bits, and a sign
FAR = 30_000  # more tokens than any number needs

ONE_SYMBOL = Continuation(np.array([[1], [NEVER]], np.int16), ends=np.array([False, True]))

NO_SYMBOLS = np.empty(0, np.int64)

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NumberRules:
    """Automaton of the tokens that a model may write next, so that its numbers are well formed."""

    column: Ints  # int64[ids + 1], the column of each token; that of ids beyond stands last
    after: Ints  # int64[states, columns], the state after a token
    allowed_next: Mask  # bool[states, columns], which tokens may come
    settles: Mask  # bool[columns], those after which the state is the same whatever it was
    to_text: Ints  # int64[states], the fewest tokens until there is text
    inside: Mask  # bool[states], whether the last token belongs to a number that may go on
    goes_on: Mask  # bool[states, columns], whether a token goes on with that number
    lengthens: Mask  # bool[states, columns], whether it does so and cannot be text
    length: int | None  # tokens of each number, if all have the same; else None
    brackets: int  # how many tokens of a number are brackets

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> NumberRules | None:
        """Return the rules of a tokenizer; None where every token may follow every other."""
        return _rules_of(tokenizer)

    def allowed(
        self, ids: Ints, width: int, longest: int = LONGEST, max_length: Any = None
    ) -> Mask:
        """Return bool[rows, width]: which tokens may follow int64[rows, seq] ids. A token beyond
        those of the tokenizer is text.

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
        if self.length is None and self.brackets:
            room = longest + self.brackets - written
        if max_length is not None:
            room = np.minimum(room, max_length - ids.shape[1])
        # what cannot end in time ends as soon as it can
        room = np.clip(np.maximum(room, self.to_text[state]), 1, FAR)
        rows: Mask = self._needed[state] <= room[:, None]  # (rows, columns)
        if self.length is None and not self.brackets:
            rows &= ~(self.lengthens[state] & (written >= longest)[:, None])
        columns = self.column[np.minimum(np.arange(width), len(self.column) - 1)]
        return rows[:, columns]

    def step(self, state: Ints, ids: Ints) -> tuple[Ints, Mask, Mask]:
        """Return (the states after one more token each, which tokens belong to another number than
        the token before, and which to a number), of int64[rows] states, 0 at first, and ids.
        Of ``1,2.5`` the point is the first token that belongs to 2.5: before it, 1,2 may become 1,200.
        """
        column = self.column[np.minimum(ids, len(self.column) - 1)]
        after, goes_on = self.after[state, column], self.goes_on[state, column]
        inside = self.inside[after]
        return after, inside & ~goes_on, inside

    @cached_property
    def _needed(self) -> Ints:
        """int64[states, columns]: the fewest tokens until there is text after this one."""
        return np.where(self.allowed_next, 1 + self.to_text[self.after], FAR + 1)

    def _state(self, columns: Ints) -> tuple[Ints, Ints]:
        """Return (state, how many tokens of its number are there), int64[rows] each."""
        seq = columns.shape[1]
        places = np.arange(seq)
        start = np.where(self.settles[columns], places, 0).max(-1, initial=0)  # (rows,)
        state, written = np.full_like(start, OTHER_TEXT), np.zeros_like(start)
        for at in range(int(start.min(initial=seq)), seq):
            column = columns[:, at]
            on = np.where(self.goes_on[state, column], written, 0) + 1
            state = np.where(start <= at, self.after[state, column], OTHER_TEXT)  # (rows,)
            written = np.where(self.inside[state], on, 0)
        return state, written


@functools.lru_cache(maxsize=2)  # generate asks for them at every call
def _rules_of(tokenizer: Tokenizer) -> NumberRules | None:
    representation, tokens = tokenizer.representations[0], tokenizer.tokens
    spelling = tokenizer.spelling
    if spelling is not None and isinstance(representation, SpelledOut) and spelling.reading:
        inside = representation.continuation(tokenizer.grammar)
        return None if inside is None else _TextRules(tokenizer, inside, spelling.ids).rules()
    unspaced, _ = (ids.tolist() for ids in first_ids(tokens, spelling))
    if isinstance(representation, SingleToken):
        return _rules(tokenizer, [ONE_SYMBOL] * 3, unspaced, length=1)
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
        return _rules(tokenizer, numbers, ids, length=length)
    in_text = np.flatnonzero(~np.isin(ids, list(tokenizer.own_tokens.values())))
    numbers = [_in_brackets(continuation) for continuation in numbers]
    ids = [*ids, *unspaced, tokens[END_NUM]]
    return _rules(tokenizer, numbers, ids, in_text, brackets=2)


def numbers_touch(tokenizer: Tokenizer) -> bool:
    """Whether encoded text has a number directly after another, in the form without a space: as BERT's
    and T5's have, where decoding writes a space (``NumberSpaces``).
    """
    both, one = tokenizer.encode("0 0"), tokenizer.encode("0")
    if len(both.number_index) < 2:
        return True  # no numbers to the grammar: there is nothing to say
    second = int(both.number_index[1])
    unspaced, _ = first_ids(tokenizer.tokens, tokenizer.spelling)
    return second == len(one.input_ids) and both.input_ids[second] in unspaced


def _in_brackets(inside: Continuation) -> Continuation:
    """Return the automaton of numbers between two further symbols, the brackets."""
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
    in_text: Ints = NO_SYMBOLS,
    length: int | None = None,
    brackets: int = 0,
) -> NumberRules:
    """Build the table of rules. Columns: the symbols, whose tokens have these ids; those that begin
    a number once more, with a space before them; each kind of text. A number begins in a state of
    text, which takes the place of the state 0 of the continuation. ``numbers`` are any, those
    without a sign, and those that begin with a digit. The symbols ``in_text`` are tokens of the text
    too.
    """
    unspaced, spaced = first_ids(tokenizer.tokens, tokenizer.spelling)
    texts = token_texts(tokenizer.config)
    text = around(tokenizer.grammar, [*texts, " "])  # the last is that of ids beyond
    (outside, kinds), symbols = text.after.shape, numbers[0].following.shape[1]
    begins = _begins(tokenizer, text.after[:, text.which[-1]])
    first = np.flatnonzero(np.isin(ids, unspaced))
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
        for columns, (which, may) in zip((first, with_space), begins, strict=True):
            rows, one = np.flatnonzero(which == of)[:, None], first[: len(columns)]
            after[rows, columns] = np.where(possible[0, one], onward[0, one], OTHER_TEXT)
            allowed[rows, columns] = possible[0, one] & may[rows]
        begin += size
    column = others + text.which
    column[[*ids, *spaced]] = np.arange(others)
    settles = (after == after[0]).all(0)
    to_text = np.concatenate([np.zeros(outside, np.int64), *(one.to_end[1:] for one in numbers)])
    goes_on = np.zeros(after.shape, np.bool_)
    goes_on[outside:, :symbols] = allowed[outside:, :symbols]
    lengths = goes_on, np.zeros(after.shape, np.bool_), length
    return NumberRules(column, after, allowed, settles, to_text, to_text > 0, *lengths, brackets)


def _begins(tokenizer: Tokenizer, after_space: Ints) -> list[tuple[Ints, Mask]]:
    """Return (int64[states], which of the automata ``numbers`` of :func:`_rules` a number begins in
    after each state of text; bool[states], whether it may) for numbers without a space before them
    and with one. ``after_space``: int64[states], the state after a space.
    """
    begins = may_begin(tokenizer.grammar, tokenizer.carries_sign)
    which = 2 - begins.mark.astype(np.int64) - begins.sign
    with_space = which[after_space], begins.digit[after_space]
    return [with_space if numbers_touch(tokenizer) else (which, begins.digit), with_space]


class _TextRules:
    """The rules for numbers that are tokens of the text, with these ``ids`` for the symbols of
    ``inside``.

    A reading of what is written is a state of text, or, ``outside`` more than the state of
    ``inside``, a number that has begun. A state of the rules is a tuple of readings, the number that
    began first in front; state 0 is other text.
    """

    def __init__(self, tokenizer: Tokenizer, inside: Continuation, ids: Ids) -> None:
        texts = [*token_texts(tokenizer.config), " "]  # the last is that of ids beyond
        self.inside, self.ids = inside, ids
        self.text = around(tokenizer.grammar, texts)
        self.outside, self.kinds = self.text.after.shape
        self.symbols = len(ids)
        self.like = self.text.which[ids]  # the kind of text of each symbol
        begins = may_begin(tokenizer.grammar, tokenizer.carries_sign)
        # a sign or a mark in front of the digits, in a token with a space: `` -`` of GPT-2
        begins.digit[[STATES.index("-"), STATES.index(".")]] = True
        self.may_begin = begins.digit  # bool[states], a digit may begin a number there
        of = {"-": begins.sign, "+": begins.sign, tokenizer.grammar.decimal: begins.mark}
        # bool[symbols, states]
        self.symbol_begins = [of.get(texts[id].strip(), begins.digit) for id in ids.tolist()]
        self.holds_number = self._holds_number(tokenizer, texts)
        self.state_of: dict[tuple[int, ...], int] = {(OTHER_TEXT,): 0}

    def _holds_number(self, tokenizer: Tokenizer, texts: Sequence[str]) -> Mask:
        """Return bool[states, kinds]: whether a number begins within such a text after each state."""
        held = np.zeros((self.outside, self.kinds), np.bool_)
        _, examples = np.unique(self.text.which, return_index=True)
        begins = [
            (kind, texts[example][: match.start()])
            for kind, example in enumerate(examples.tolist())
            for match in re.finditer(r"(?<!\d)\d", texts[example])
        ]
        before = around(tokenizer.grammar, [text for _, text in begins])
        for (kind, _), which in zip(begins, before.which.tolist(), strict=True):
            held[:, kind] |= self.may_begin[before.after[:, which]]
        return held

    def rules(self) -> NumberRules:
        """Build the table of all states that can be reached."""
        # symbols that nothing tells apart
        alike = np.concatenate([self.inside.following, self.like[None]])
        _, symbols, which = np.unique(alike, axis=1, return_index=True, return_inverse=True)
        columns = [*symbols.tolist(), *range(self.symbols, self.symbols + self.kinds)]
        rows = []
        for readings in (order := list(self.state_of)):
            rows.append([self._step(readings, column, order) for column in columns])
        table = np.array(rows, np.int64)  # (states, columns, 4)
        spread = [*which.reshape(-1).tolist(), *range(len(symbols), len(columns))]
        after, allowed, goes_on, lengthens = np.moveaxis(table[:, spread], 2, 0)
        column = self.symbols + self.text.which
        column[self.ids] = np.arange(self.symbols)
        to_text = np.array([not any(map(self._ends, readings)) for readings in order], np.int64)
        inside = np.array([readings[0] >= self.outside for readings in order])
        masks = allowed.astype(np.bool_), (after == after[0]).all(0) & ~goes_on.any(0)
        lengths = goes_on.astype(np.bool_), lengthens.astype(np.bool_)
        return NumberRules(column, after, *masks, to_text, inside, *lengths, None, brackets=0)

    def _ends(self, reading: int) -> bool:
        """Whether text may follow."""
        return reading < self.outside or bool(self.inside.ends[reading - self.outside])

    def _step(
        self, readings: tuple[int, ...], column: int, order: list[tuple[int, ...]]
    ) -> tuple[int, bool, bool, bool]:
        """Return (the state after a token, whether it may follow, whether it goes on with the
        number that began first, and whether it cannot be text then); new states are added to
        ``order``.
        """
        numbers: list[int] = []
        texts: list[int] = []
        is_symbol = column < self.symbols
        kind = int(self.like[column]) if is_symbol else column - self.symbols
        for reading in readings:
            state = reading - self.outside
            if is_symbol and state >= 0:
                numbers.append(self._onward(state, column))
        goes_on = bool(numbers) and numbers[0] != NEVER
        before = [NUMBER if one >= self.outside else one for one in readings if self._ends(one)]
        for state in before:
            if is_symbol and self.symbol_begins[column][state]:
                numbers.append(self._onward(0, column))
            if self.text.allowed[state, kind] and not self.holds_number[state, kind]:
                texts.append(int(self.text.after[state, kind]))
        onward = [one for one in numbers if one != NEVER] + texts
        last = before[-1] if before else OTHER_TEXT
        reached = tuple(dict.fromkeys(onward)) or (int(self.text.after[last, kind]),)
        if reached not in self.state_of:
            self.state_of[reached] = len(order)
            order.append(reached)
        return self.state_of[reached], bool(onward), goes_on, goes_on and not texts

    def _onward(self, state: int, symbol: int) -> int:
        """Return the reading after a symbol of a number in this state of ``inside``, or NEVER."""
        following = int(self.inside.following[state, symbol])
        return NEVER if following == NEVER else self.outside + following
