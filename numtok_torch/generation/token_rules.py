"""Which tokens may follow which in numbers that are spelled out: the continuation of a
representation over the tokens of a tokenizer.

In: a tokenizer. Out: tables over states and columns. State 0 is text, the others are those of a
    number; a column is a symbol, or what all tokens of one kind share. What may follow which symbol
    is said by the representation (:meth:`numtok.representations.Representation.continuation`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from numtok import Tokenizer
from numtok.representations.continuation import NEVER, Continuation
from numtok.tokenizer.spelling import Spelling

TEXT = 0  # the state outside of numbers

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TokenRules:
    """See the module.

    Attributes:
        column: int64[ids], the column of each token up to the last one of numbers; all other tokens
            have the last column.
        after: int64[states, columns], the state behind a token; TEXT behind one that does not
            belong to the number.
        allowed: bool[states, columns], which tokens may come.
        begins: bool[columns], those that begin a number, wherever they come, as behind TEXT.
            leaves: those behind which there is text, wherever they come.
        to_text: int64[states], the fewest tokens until there is text again.
        length: tokens of each number, if all have the same; else None.
        brackets: how many tokens of a number are brackets.
    """

    column: Ints
    after: Ints
    allowed: Mask
    begins: Mask
    leaves: Mask
    to_text: Ints
    length: int | None
    brackets: int


def has_rules(tokenizer: Tokenizer) -> bool:
    """Whether its numbers are spelled out, and their representation says how they go on."""
    return tokenizer.representations[0].continuation(tokenizer.grammar) is not None


def rules_of(tokenizer: Tokenizer) -> TokenRules | None:
    """Those of a tokenizer; None where :func:`has_rules` says no."""
    representation = tokenizer.representations[0]
    continuation, spelling = (
        representation.continuation(tokenizer.grammar),
        Spelling.of(representation, tokenizer.tokens),
    )
    if continuation is None or spelling is None:
        return None
    if not spelling.bracketed:
        return _unbracketed(continuation, spelling)
    return _bracketed(
        continuation, spelling, ~np.isin(spelling.ids, list(tokenizer.own_tokens.values()))
    )


def _bracketed(continuation: Continuation, spelling: Spelling, in_text: Mask) -> TokenRules:
    """Columns: the symbols, ``[NUM]``, ``[/NUM]``, others.

    State s of a number is s + 1, and the symbols ``in_text`` are tokens of the text too.
    """
    states, symbols = continuation.following.shape
    opening, closing, others = range(symbols, symbols + 3)
    after, allowed = (
        np.full((states + 1, symbols + 3), TEXT, np.int64),
        np.zeros((states + 1, symbols + 3), np.bool_),
    )
    after[1:, :symbols] = np.where(
        continuation.following == NEVER, TEXT, continuation.following + 1
    )
    after[TEXT, opening] = 1
    allowed[1:, :symbols], allowed[1:, closing] = continuation.following != NEVER, continuation.ends
    allowed[TEXT] = np.append(in_text, [True, False, True])
    plain, spaced, end = spelling.brackets
    column = _columns(
        [*spelling.ids, plain, spaced, end], [*range(symbols), opening, opening, closing], others
    )
    to_text = np.append(0, continuation.to_end + 1)
    return TokenRules(
        column,
        after,
        allowed,
        _only(after, opening),
        _only(after, closing, others),
        to_text,
        None,
        brackets=2,
    )


def _unbracketed(continuation: Continuation, spelling: Spelling) -> TokenRules:
    """Columns: the symbols, those that begin a number once more with a space before them, others.

    Nothing but numbers has these symbols.
    """
    states, symbols = continuation.following.shape
    first = np.array(spelling.first)
    spaced = symbols + np.arange(len(spelling.spaced))
    others = symbols + len(spaced)
    possible = continuation.following != NEVER
    complete = continuation.ends & ~possible.any(1)
    after, allowed = (
        np.full((states, others + 1), TEXT, np.int64),
        np.zeros((states, others + 1), np.bool_),
    )
    after[:, :symbols] = np.where(
        possible & ~complete[continuation.following], continuation.following, TEXT
    )
    after[TEXT, spaced] = after[TEXT, first[: len(spaced)]]
    allowed[:, :symbols], allowed[TEXT, spaced], allowed[TEXT, others] = possible, True, True
    column = _columns([*spelling.ids, *spelling.spaced], range(others), others)
    to_text = np.where(np.arange(states) == TEXT, 0, continuation.to_end)
    return TokenRules(
        column,
        after,
        allowed,
        _only(after, *first, *spaced),
        _only(after, others),
        to_text,
        spelling.length,
        brackets=0,
    )


def _columns(ids: list[int], columns: list[int] | range, others: int) -> Ints:
    """int64[ids]: the column of each id, ``others`` for those not named; an id of -1 is none."""
    known = {
        int(number): column for number, column in zip(ids, columns, strict=True) if number >= 0
    }
    column = np.full(max(known) + 1, others, np.int64)
    column[list(known)] = list(known.values())
    return column


def _only(table: Ints, *columns: int) -> Mask:
    """bool[columns]: True for these."""
    chosen = np.zeros(table.shape[1], np.bool_)
    chosen[list(columns)] = True
    return chosen
