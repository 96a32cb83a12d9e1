"""How a number that is spelled out may go on: a small automaton over the symbols of its
representation.

In: the rules of a representation, by the names of their states. Out: a table of states and symbols,
    which whoever writes numbers symbol by symbol, such as
a model, can be held to: each number that it lets through reads back as one, and is spelled in the
    same symbols when it is encoded again.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Rules = Mapping[
    str, Sequence[tuple[Iterable[int], str]]
]  # state to (symbols, the state behind each of them)

NEVER = -1


@dataclass(frozen=True, eq=False)
class Continuation:
    """What may follow what in a number.

    Attributes:
        following: int16[states, symbols], the state behind each symbol, ``NEVER`` where it may not
            follow. Numbers begin in state 0.
        ends: bool[states], whether what is written is a number. Without brackets around it, it ends
            where nothing may follow.
    """

    following: npt.NDArray[np.int16]
    ends: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, rules: Rules, ends: Collection[str], symbols: int) -> Continuation:
        """From the rules of each state, the first of which begins a number, for an alphabet of so
        many symbols.
        """
        names = list(rules)
        following = np.full((len(names), symbols), NEVER, np.int16)
        for row, name in zip(following, names, strict=True):
            for allowed, state in rules[name]:
                row[list(allowed)] = names.index(state)
        return cls(following, np.array([name in ends for name in names], np.bool_))

    @functools.cached_property
    def to_end(self) -> npt.NDArray[np.int64]:
        """int64[states]: with how many symbols, at least, what is written becomes a number; 0 where
        it is one.
        """
        found = np.where(self.ends, 0, len(self.ends))
        for _ in range(
            len(self.ends)
        ):  # each turn settles the states that are one symbol further away
            onward = np.where(
                self.following == NEVER, len(self.ends), found[self.following]
            )  # [states, symbols]
            found = np.minimum(found, onward.min(1) + 1)
        return found
