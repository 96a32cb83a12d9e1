"""What may follow what in decimals, character by character or in groups of digits: those that a
grammar reads, in either order of the digits. Rule A of :mod:`numtok.numbers.grammar`: digits,
perhaps grouped, a fraction, an exponent of at most :data:`EXPONENT_DIGITS` digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.numbers.grammar import Grammar
from numtok.representations.as_written import LOWER_E, POINT, UPPER_E
from numtok.representations.base import NEVER, Continuation

DIGITS = "0123456789"
EXPONENT_DIGITS = 3  # the largest power of ten that a float64 holds is 308
Characters = dict[str, str]  # characters to the state after them
# What may come within a run of digits: any group, as it begins or all of its groups were full; a
# full one; none.
ANY, FULL, NONE = range(3)
States = npt.NDArray[np.int64]


def continuation_of(alphabet: Sequence[str], grammar: Grammar, order: str) -> Continuation:
    """Of decimals as the grammar reads them, a symbol a character, the mantissa's digits in this
    order; ``.`` is the point, whatever its mark.

    Where the comma is the decimal mark, 0.123 is not grouped and 192.168.100.200 an address: groups
    begin with no zero there, and after them are at most two.
    """
    marks = dict.fromkeys(
        mark if mark in alphabet and mark != "." else "," for mark in grammar.grouping or ""
    )
    groups = _Groups(tuple(marks), grammar.lakhs, grammar.decimal == ",")
    exponent = {"eE": "exponent"} if grammar.exponent else {}
    mantissa = (_forwards if order == "msd" else _backwards)(groups, grammar.leading_dot)
    first = mantissa.pop("first")
    ends = {state for state in mantissa if state.endswith("!")}
    rules: dict[str, Characters] = {
        "begin": first | ({"+-": "signed"} if grammar.signs else {}),
        "signed": first,
    }
    rules |= {
        state: following | (exponent if state in ends else {})
        for state, following in mantissa.items()
    }
    if order == "msd":
        rules["point"] = rules["point"] | exponent
    if exponent:
        powers = [f"power {count}!" for count in range(1, EXPONENT_DIGITS + 1)]
        rules |= {
            "exponent": {"+-": "exponent's sign", DIGITS: powers[0]},
            "exponent's sign": {DIGITS: powers[0]},
        }
        rules |= {power: {DIGITS: behind} for power, behind in itertools.pairwise(powers)} | {
            powers[-1]: {}
        }
    by_symbol = {
        state: [
            ([alphabet.index(one) for one in characters], behind)
            for characters, behind in following.items()
        ]
        for state, following in rules.items()
    }
    return Continuation.of(
        by_symbol, [state for state in rules if state.endswith("!")], len(alphabet)
    )


class _Groups(NamedTuple):
    """How digits are grouped: the separators, all of one number the same; whether by two before the
    last three; whether points may be separators.
    """

    marks: tuple[str, ...]
    lakhs: bool
    points: bool

    def behind(self, name: str) -> Characters:
        """Each separator, and the state of this name after it."""
        return {mark: name.format(mark) for mark in self.marks}


def _forwards(groups: _Groups, leading_dot: bool) -> dict[str, Characters]:
    """The states of a mantissa as it is written, and what begins one, ``first``; where it may end,
    the name has an exclamation mark.
    """
    point, ungrouped = {".": "point"}, {"0": "digits!"} if groups.points else {}
    short, long = (
        groups.behind("{} two or three" if groups.lakhs else "{} three"),
        groups.behind("{} three"),
    )
    states: dict[str, Characters] = {
        "first": {DIGITS: "1 digit!"} | ungrouped | ({".": "leading point"} if leading_dot else {}),
        "1 digit!": {DIGITS: "2 digits!"} | short | point,
        "2 digits!": {DIGITS: "3 digits!"} | short | point,
        "3 digits!": {DIGITS: "digits!"} | long | point,
        "digits!": {DIGITS: "digits!"} | point,
        "point": {DIGITS: "fraction!"},
        "leading point": {DIGITS: "fraction!"},
        "fraction!": {DIGITS: "fraction!"},
    }
    for mark in groups.marks:
        again = {mark: f"{mark} last three" if groups.points else f"{mark} three"}
        states |= _run(
            [f"{mark} three", f"{mark} 1 of three", f"{mark} 2 of three", f"{mark} three!"],
            again | point,
        )
        if groups.points or groups.lakhs:
            states |= _run(
                [f"{mark} last three", f"{mark} 1 of last", f"{mark} 2 of last", f"{mark} last!"],
                point,
            )
        if groups.lakhs:
            two = {mark: f"{mark} two"}
            states |= _run(
                [f"{mark} two or three", f"{mark} 1 of either", f"{mark} 2 of either"],
                {DIGITS: f"{mark} three!"} | two,
            )
            states |= _run(
                [f"{mark} two", f"{mark} 1 of two", f"{mark} 2 of two"],
                {DIGITS: f"{mark} last!"} | two,
            )
    return states


def _backwards(groups: _Groups, leading_dot: bool) -> dict[str, Characters]:
    """The same from the last digit to the first: the digits before a point, if one follows, were a
    fraction.
    """
    point, first = {".": "point!" if leading_dot else "point"}, groups.behind("{} first")
    states: dict[str, Characters] = {
        "first": {DIGITS: "1 digit!"},
        "1 digit!": {DIGITS: "2 digits!"} | point,
        "2 digits!": {DIGITS: "3 digits!"} | point,
        "3 digits!": {DIGITS: "digits!"} | first | point,
        "digits!": {DIGITS: "digits!"} | point,
        point["."]: {DIGITS: "1 whole!"},
        "1 whole!": {DIGITS: "2 whole!"},
        "2 whole!": {DIGITS: "3 whole!"},
        "3 whole!": {DIGITS: "whole!"} | first,
        "whole!": {DIGITS: "whole!"},
    }
    for mark in groups.marks:
        three, two = {mark: f"{mark} three"}, {mark: f"{mark} two"} if groups.lakhs else {}
        states |= _ending(mark, ["first", "1", "2", "3"], [{}, two, three], groups.points)
        states |= _ending(
            mark,
            ["three", "1 more", "2 more", "3 more"],
            [{}, {}, {} if groups.points else three],
            groups.points,
        )
        if groups.lakhs:
            states |= _ending(mark, ["two", "1 of two", "2 of two"], [{}, two], groups.points)
    return states


def _run(names: Sequence[str], last: Characters) -> dict[str, Characters]:
    """The states after one digit after the other, and what else follows the last."""
    return {state: {DIGITS: behind} for state, behind in itertools.pairwise(names)} | {
        names[-1]: last
    }


def _ending(
    mark: str, names: Sequence[str], others: Sequence[Characters], points: bool
) -> dict[str, Characters]:
    """The same where each digit may be the first of the number: it may end there, but not, where
    ``points`` separate, after a zero.
    """

    def digit(name: str) -> Characters:
        return (
            {"123456789": f"{mark} {name}!", "0": f"{mark} {name}"}
            if points
            else {DIGITS: f"{mark} {name}!"}
        )

    states = {f"{mark} {names[0]}": digit(names[1])}
    for name, behind, other in zip(names[1:], [*names[2:], None], others, strict=True):
        onward = (digit(behind) if behind else {}) | other
        states |= {f"{mark} {name}!": onward} | ({f"{mark} {name}": onward} if points else {})
    return states


def in_groups(characters: Continuation, group: int, left: bool) -> Continuation:
    """Of groups of at most so many digits, in front of the point cut from the left or from the
    right.
    """
    # [states, symbols], [symbols]
    walked, width = _walked(characters.following.astype(np.int64), group)
    count, symbol = len(walked), np.arange(len(width))
    # [cut from the left, ANY ... NONE, states, symbols]
    following = np.full((2, 3, *walked.shape), NEVER, np.int64)
    for from_left in (0, 1):
        # after each symbol
        cut = np.where(
            symbol == POINT, 1, np.where(np.isin(symbol, (LOWER_E, UPPER_E)), int(left), from_left)
        )
        inside = np.where(width == group, ANY, NONE) if from_left else FULL
        behind = count * (3 * cut + np.where(width > 0, inside, ANY))
        for run, may_come in (
            (ANY, width >= 0),
            (FULL, (width == 0) | (width == group)),
            (NONE, width == 0),
        ):
            following[from_left, run] = np.where(
                may_come & (walked != NEVER), walked + behind, NEVER
            )
    return used(
        following.reshape(-1, len(width)), np.tile(characters.ends, 6), count * 3 * int(left)
    )


def _walked(following: States, group: int) -> tuple[States, npt.NDArray[np.int64]]:
    """(the state of the characters after each symbol, [states, symbols]; the digits of each
    symbol, 0 for a mark).
    """
    digits, marks = following[:, :10], following[:, 10:]
    tables, widths = [digits, marks], [1, 0]
    for width in range(2, group + 1):
        last = digits if width == 2 else tables[-1]  # [states, 10 ** (width - 1)]
        tables.append(
            np.where(last[..., None] == NEVER, NEVER, digits[last]).reshape(len(following), -1)
        )
        widths.append(width)
    return np.concatenate(tables, 1), np.repeat(widths, [table.shape[1] for table in tables])


def used(following: States, ends: npt.NDArray[np.bool_], begin: int) -> Continuation:
    """Of states from which a number can be ended, those that ``begin`` leads to, which becomes the
    first.
    """
    alive, before = ends, -1
    while alive.sum() > before:
        before = alive.sum()
        onward = (following != NEVER) & alive[following]
        alive = ends | onward.any(1)
    following = np.where(onward, following, NEVER)
    order, new = [begin], np.full(len(ends), NEVER, np.int16)
    new[begin] = 0
    for state in order:
        for other in np.unique(following[state]).tolist():
            if other != NEVER and new[other] == NEVER:
                new[other] = len(order)
                order.append(other)
    kept = following[order]
    return Continuation(np.where(kept == NEVER, np.int16(NEVER), new[kept]), ends[order])
