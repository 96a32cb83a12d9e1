"""Automata of spelled-out numbers: :class:`Continuation`, a table of states and symbols;
:class:`Language`, which builds one; and :class:`Decimals`, the numbers that a grammar reads (rule A
of :mod:`numtok.numbers.grammar`), character by character or in groups of digits.

The rule is said again here because a model writes numbers symbol by symbol: before a symbol is
chosen, the automaton tells which ones lead to a number. :func:`numtok.extract` needs all of it. The
numbers of the default grammar; in brackets the states in which a number may end::

                   .                              0-9
       +----------------------> (leading) -------------------+
       |                                                     v
    (begin) --0-9--> [integer] --- . ---> (point) --0-9--> [fraction]
                        | , and             ^
                        | 3 digits          | .
                        v                   |
                    [grouped] --------------+

    [integer], [grouped], (point), [fraction] --- e or E ---> (exponent) --0-9--> [power]

A sign may stand at (begin) and at (exponent), once. A comma may follow [integer] if that has at most
three digits and is not 0, and [grouped] again; [power] has at most three digits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.numbers.grammar import Grammar

NEVER = -1
EXPONENT_DIGITS = 3  # the largest power of ten that a float64 holds is 308

Part = Callable[[int], int]  # from the state after it to the state before it


@dataclass(frozen=True, eq=False)
class Continuation:
    """Automaton of the symbols of a spelled-out number."""

    # int16[states, symbols], the state after each symbol, ``NEVER`` where it may not follow.
    # Numbers begin in state 0.
    following: npt.NDArray[np.int16]
    # bool[states], whether what is written is a number. Without brackets around it, it ends where
    # nothing may follow.
    ends: npt.NDArray[np.bool_]

    @functools.cached_property
    def to_end(self) -> npt.NDArray[np.int64]:
        """int64[states]: with how many symbols, at least, what is written becomes a number; 0 where
        it is one.
        """
        found, before = np.where(self.ends, 0, len(self.ends)), None
        # each turn settles the states that are one symbol further away
        while before is None or (found < before).any():
            before = found
            # [states, symbols]
            onward = np.where(self.following == NEVER, len(self.ends), found[self.following])
            found = np.minimum(found, onward.min(1) + 1)
        return found


class Language:
    """Sequences of symbols, put together from parts, the last one first: an automaton that may be
    in several states at once.
    """

    END, NOTHING = 0, 1  # states: a whole sequence; none at all

    def __init__(self) -> None:
        # of each state: the symbols that lead onward, None if nothing has to be written; to where
        self._states: list[tuple[Any, tuple[int, ...]]] = [(None, ()), (None, ())]
        self._known: dict[Hashable, int] = {}

    def one(self, symbols: range | tuple[int, ...]) -> Part:
        """Accept one of these symbols."""
        return lambda after: self._state(symbols, {after} if symbols else set())

    def either(self, *parts: Part) -> Part:
        """Accept one of the parts."""
        return lambda after: self._state(None, {part(after) for part in parts})

    def maybe(self, *parts: Part) -> Part:
        """Accept the parts, one after the other, or nothing."""
        return self.either(self.then(*parts), lambda after: after)

    def then(self, *parts: Part) -> Part:
        """Accept the parts, one after the other."""
        return lambda after: functools.reduce(lambda state, part: part(state), parts[::-1], after)

    def many(self, part: Part) -> Part:
        """Accept the part any number of times."""

        def before(after: int) -> int:
            if after == self.NOTHING:
                return after
            again = len(self._states)
            self._states.append((None, (after,)))
            self._states[again] = (None, (part(again), after))
            return again

        return before

    def _state(self, symbols: Any, onward: set[int]) -> int:
        """Return the state from which these symbols lead to the states ``onward``. Equal arguments
        give the same state.
        """
        if not (onward := onward - {self.NOTHING}):
            return self.NOTHING
        key = symbols, tuple(sorted(onward))
        if key not in self._known:
            self._known[key] = len(self._states)
            self._states.append(key)
        return self._known[key]

    def continuation(self, part: Part, symbols: int) -> Continuation:
        """Build the automaton of sequences of this part, for an alphabet of so many symbols."""
        reached = functools.cache(self._reached)
        begin = reached(part(self.END))
        # symbols that nothing tells apart have one column
        told = list(dict.fromkeys(one for one, _ in self._states if one is not None))
        member = np.zeros((len(told), symbols), np.bool_)
        for row, chosen in zip(member, told, strict=True):
            row[list(chosen)] = True
        kinds, kind = np.unique(member, axis=1, return_inverse=True)  # [told, kinds], [symbols]
        columns = {one: np.flatnonzero(row).tolist() for one, row in zip(told, kinds, strict=True)}
        rows, following = {begin: 0}, []
        for state in (order := [begin]):
            onward: list[set[int]] = [set() for _ in range(kinds.shape[1])]
            for one in state:
                chosen, after = self._states[one]
                for column in columns[chosen] if chosen is not None else ():
                    onward[column] |= reached(*after)
            for other in filter(None, map(frozenset, onward)):
                if other not in rows:
                    rows[other] = len(order)
                    order.append(other)
            following.append([rows.get(frozenset(other), NEVER) for other in onward])
        ends = np.array([self.END in state for state in order])
        return Continuation(np.array(following, np.int16)[:, kind.reshape(-1)], ends)

    def _reached(self, state: int) -> frozenset[int]:
        """Return the states that this state leads to without a symbol: those that wait for a
        symbol, and the end.
        """
        symbols, onward = self._states[state]
        if symbols is not None or state == self.END:
            return frozenset([state])
        return frozenset().union(*map(self._reached, onward))


class Decimals(Language):
    """The decimals that a grammar reads, with ``.`` for the point whatever its mark.

    The first of several groups is not a lone 0. Where the comma is the decimal mark, 0.123 is not
    grouped and 192.168.100.200 an address: groups begin with no zero there, and there are at most
    three.

    Args:
        alphabet: digits, or groups of them, and marks.
        grammar: what numbers are.
        group: the most digits of a symbol.
        left: whether the digits before the point are cut from the left, as those behind it are.
        backwards: whether the mantissa is written from the last symbol to the first.
    """

    def __init__(
        self,
        alphabet: Sequence[str],
        grammar: Grammar,
        group: int = 1,
        left: bool = False,
        backwards: bool = False,
    ) -> None:
        super().__init__()
        self._alphabet, self._grammar = tuple(alphabet), grammar
        self._group, self._left, self._backwards = group, left, backwards
        self._points = grammar.decimal == ","  # whether points may be separators
        marks = (
            mark if mark in alphabet and mark != "." else "," for mark in grammar.grouping or ""
        )
        self._separators = tuple(dict.fromkeys(marks))

    def number(self, exponent_digits: int | None = EXPONENT_DIGITS) -> Part:
        """Accept any number; with None, one with any number of digits in its exponent."""
        integer, fraction = self._integer(None), self._fraction(None)
        mantissas = [integer, self._mantissa(integer, fraction)]
        if self._grammar.leading_dot:
            mantissas.append(fraction)
        before_exponent = self._mantissa(integer, self.mark("."))
        return self._number(mantissas, before_exponent, exponent_digits)

    def counted(self, whole: int, fraction: int | None) -> Part:
        """Accept a number that has so many digits before its point, and behind it; None: no point."""
        integer, nothing = self._integer(whole), self.either()
        if fraction is None:
            return self._number([integer], nothing)
        if fraction == 0:
            return self._number([], self._mantissa(integer, self.mark(".")))
        if whole == 0:
            integer = self.then() if self._grammar.leading_dot else nothing
        return self._number([self._mantissa(integer, self._fraction(fraction))], nothing)

    def mark(self, marks: str) -> Part:
        """Accept one of these characters."""
        return self.one(tuple(map(self._alphabet.index, marks)))

    def _number(
        self,
        mantissas: Sequence[Part],
        before_exponent: Part,
        exponent_digits: int | None = EXPONENT_DIGITS,
    ) -> Part:
        """Accept a number with sign and exponent; ``before_exponent`` is a mantissa that needs an
        exponent.
        """
        sign = self.maybe(self.mark("+-"))
        lengths = [None] if exponent_digits is None else range(1, exponent_digits + 1)
        powers = (self._run(length, self._left) for length in lengths)
        exponent = self.then(self.mark("eE"), sign, self.either(*powers))
        if not self._grammar.exponent:
            exponent = self.either()
        with_exponent = self.then(self.either(*mantissas, before_exponent), exponent)
        unsigned = self.either(*mantissas, with_exponent)
        return self.then(sign, unsigned) if self._grammar.signs else unsigned

    def _mantissa(self, *parts: Part) -> Part:
        return self.then(*(parts[::-1] if self._backwards else parts))

    def _fraction(self, count: int | None) -> Part:
        return self._mantissa(self.mark("."), self._run(count, left=True))

    def _integer(self, count: int | None) -> Part:
        """Accept so many digits, None for any number of them, with and without separators."""
        forms = [self._run(count, self._left)] if count != 0 else []
        for mark in self._separators:
            forms += self._separated(mark, count, 3, 0, 1 if self._points else None)
            if self._grammar.lakhs:
                forms += self._separated(mark, count, 2, 1, None)
        return self.either(*forms)

    def _separated(
        self, mark: str, count: int | None, size: int, least: int, most: int | None
    ) -> Iterator[Part]:
        """Accept up to ``size`` digits, ``least`` to ``most`` times as many again, and three at the
        end.
        """
        separator = self.mark(mark)
        again = self._mantissa(separator, self._run(size, self._left))
        last = self._mantissa(separator, self._run(3, self._left))
        for first in range(1, size + 1):
            low, high = least, most
            if count is not None:
                low, rest = divmod(count - 3 - first, size)
                if rest or low < least or (most is not None and low > most):
                    continue
                high = low
            further = [self.many(again)] if high is None else [self.maybe(again)] * (high - low)
            begin = self._run(first, self._left, nonzero=self._points or first == 1)
            yield self._mantissa(begin, *[again] * low, *further, last)

    def _run(self, count: int | None, left: bool, nonzero: bool = False) -> Part:
        """Accept so many digits, None for any number of them, cut in groups from one side."""
        size = self._group
        if count is None:
            full, last = self.many(self._digits(size)), range(1, size + 1)
            short = self.either(*map(self._digits, last))
            return self.then(full, short) if left else self.then(short, full)
        sizes = [size] * (count // size)
        rest = [count % size] if count % size else []
        sizes = sizes + rest if left else rest + sizes
        return self._mantissa(self._digits(sizes[0], nonzero), *map(self._digits, sizes[1:]))

    def _digits(self, count: int, nonzero: bool = False) -> Part:
        """Accept a symbol of so many digits, the first of which is not 0 if it is to be
        ``nonzero``.
        """
        return self.one(
            tuple(
                symbol
                for symbol, one in enumerate(self._alphabet)
                if len(one) == count and one.isdigit() and not (nonzero and one[0] == "0")
            )
        )
