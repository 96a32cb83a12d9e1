"""Finite automata over numbered symbols: :class:`Continuation`, a table of states and symbols, and
:class:`Language`, from which one is made.

What spells numbers out is written in them: the symbols of a representation
(:mod:`numtok.representations.symbol_grammar`) and the characters of a number format
(:mod:`numtok.number_format`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays.cached import cached_property

NEVER = -1

Part = Callable[[int], int]  # from the state after it to the state before it


@dataclass(frozen=True, eq=False)
class Continuation:
    """Automaton of the symbols of a spelled-out number."""

    # int16[states, symbols] (int32 where int16 is too small), the state after each symbol, ``NEVER``
    # where it may not follow. Numbers begin in state 0.
    following: npt.NDArray[np.signedinteger[Any]]
    # bool[states], whether what is written is a number. Without brackets around it, it ends where
    # nothing may follow.
    ends: npt.NDArray[np.bool_]

    @cached_property
    def to_end(self) -> npt.NDArray[np.int64]:
        """int64[states]: with how many symbols, at least, what is written becomes a number; 0 where
        it is one.
        """
        distance, before = np.where(self.ends, 0, len(self.ends)), None
        # each turn settles the states that are one symbol further away
        while before is None or (distance < before).any():
            before = distance
            # [states, symbols]
            onward = np.where(self.following == NEVER, len(self.ends), distance[self.following])
            distance = np.minimum(distance, onward.min(1) + 1)
        return distance

    def minimal(self) -> Continuation:
        """Return the least automaton of the same sequences, with its states in the order in which
        symbols reach them: equal sequences give equal tables. Moore's partition refinement.
        """
        kind = self.ends.astype(np.int64)  # (states,), states of one kind may be one state
        while True:
            # (states, symbols + 1)
            after = np.where(self.following == NEVER, NEVER, kind[self.following])
            rows = np.column_stack([kind, after])
            _, first, refined = np.unique(rows, axis=0, return_index=True, return_inverse=True)
            if len(first) == kind.max() - kind.min() + 1:
                break
            kind = refined.reshape(-1)
        kind -= kind.min()
        _, first = np.unique(kind, return_index=True)
        order = dict.fromkeys([int(kind[0])])  # as a set that keeps its order
        for one in (queue := list(order)):
            for other in kind[self.following[first[one]][self.following[first[one]] != NEVER]]:
                if int(other) not in order:
                    order[int(other)] = None
                    queue.append(int(other))
        chosen = first[queue]
        renumbered = np.full(len(first), NEVER)
        renumbered[queue] = np.arange(len(queue))
        following = self.following[chosen]
        onward = np.where(following == NEVER, NEVER, renumbered[kind[following]])
        return Continuation(onward.astype(self.following.dtype), self.ends[chosen])


class Language:
    """Sequences of symbols, put together from parts, the last one first: an automaton that may be
    in several states at once.
    """

    END, NOTHING = 0, 1  # states: a whole sequence; none at all

    def __init__(self) -> None:
        # of each state: the symbols that lead onward, None if nothing has to be written; to where
        self._states: list[tuple[Any, tuple[int, ...]]] = [(None, ()), (None, ())]
        self._state_of: dict[Hashable, int] = {}

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

    def words(self, words: Iterable[Sequence[int]]) -> Part:
        """Accept one of these sequences of symbols."""
        return self.either(*(self.then(*(self.one((symbol,)) for symbol in w)) for w in words))

    def _state(self, symbols: Any, onward: set[int]) -> int:
        """Return the state from which these symbols lead to the states ``onward``. Equal arguments
        give the same state.
        """
        if not (onward := onward - {self.NOTHING}):
            return self.NOTHING
        key = symbols, tuple(sorted(onward))
        if key not in self._state_of:
            self._state_of[key] = len(self._states)
            self._states.append(key)
        return self._state_of[key]

    def continuation(self, part: Part, symbols: int) -> Continuation:
        """Build the automaton of sequences of this part, for an alphabet of so many symbols."""
        reached = functools.cache(self._reached)
        begin = reached(part(self.END))
        # symbols that nothing tells apart have one column
        sets = list(dict.fromkeys(one for one, _ in self._states if one is not None))
        member = np.zeros((len(sets), symbols), np.bool_)
        for row, chosen in zip(member, sets, strict=True):
            row[list(chosen)] = True
        kinds, kind = np.unique(member, axis=1, return_inverse=True)  # [sets, kinds], [symbols]
        columns = {one: np.flatnonzero(row).tolist() for one, row in zip(sets, kinds, strict=True)}
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
        kind_of_state = np.int16 if len(order) <= np.iinfo(np.int16).max else np.int32
        table: npt.NDArray[Any] = np.array(following, kind_of_state)
        return Continuation(table[:, kind.reshape(-1)], ends)

    def _reached(self, state: int) -> frozenset[int]:
        """Return the states that this state leads to without a symbol: those that wait for a
        symbol, and the end.
        """
        symbols, onward = self._states[state]
        if symbols is not None or state == self.END:
            return frozenset([state])
        return frozenset().union(*map(self._reached, onward))
