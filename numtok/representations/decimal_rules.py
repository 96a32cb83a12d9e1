"""Decimals character by character, as rules of what may follow what: those that a grammar reads, in either order of the digits.

In: an alphabet of characters, a grammar and an order. Out: a :class:`Continuation`. Rule A of :mod:`numtok.numbers.grammar`: digits, perhaps grouped from
the point on to the left, a fraction, an exponent; ``2.e3`` too, though not backwards. An exponent has at most :data:`EXPONENT_DIGITS` digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from numtok.numbers.grammar import Grammar
from numtok.representations.continuation import Continuation

DIGITS = "0123456789"
EXPONENT_DIGITS = 3  # the largest power of ten that a float64 holds is 308

Characters = dict[str, str]  # characters to the state behind them


def continuation_of(alphabet: Sequence[str], grammar: Grammar, order: str) -> Continuation:
    """Of decimals as the grammar reads them, a symbol a character, the mantissa's digits in this order."""
    separator = (grammar.grouping if grammar.grouping in alphabet else ",") if grammar.grouping else ""
    exponent = {"eE": "exponent"} if grammar.exponent else {}
    of_mantissa = _forwards if order == "msd" else _backwards
    mantissa = of_mantissa({separator: "separator"} if separator else {}, grammar.leading_dot)
    first = mantissa.pop("first")
    ends = {state for state in mantissa if state.endswith("!")}
    rules: dict[str, Characters] = {"begin": first | ({"+-": "signed"} if grammar.signs else {}), "signed": first}
    rules |= {state: following | (exponent if state in ends else {}) for state, following in mantissa.items()}
    if order == "msd":
        rules["point"] = rules["point"] | exponent
    if exponent:
        powers = [f"power {count}!" for count in range(1, EXPONENT_DIGITS + 1)]
        rules |= {"exponent": {"+-": "exponent's sign", DIGITS: powers[0]}, "exponent's sign": {DIGITS: powers[0]}}
        rules |= {power: {DIGITS: behind} for power, behind in itertools.pairwise(powers)} | {powers[-1]: {}}
    by_symbol = {
        state: [([alphabet.index(one) for one in characters], behind) for characters, behind in following.items()]
        for state, following in rules.items()
    }
    return Continuation.of(by_symbol, [state for state in rules if state.endswith("!")], len(alphabet))


def _forwards(separator: Characters, leading_dot: bool) -> dict[str, Characters]:
    """The states of a mantissa as it is written, and what begins one, ``first``; where it may end, the name has an exclamation mark."""
    point = {".": "point"}
    return {
        "first": {DIGITS: "1 digit!"} | ({".": "leading point"} if leading_dot else {}),
        "1 digit!": {DIGITS: "2 digits!"} | separator | point,
        "2 digits!": {DIGITS: "3 digits!"} | separator | point,
        "3 digits!": {DIGITS: "digits!"} | separator | point,
        "digits!": {DIGITS: "digits!"} | point,
        "separator": {DIGITS: "1 of group"},
        "1 of group": {DIGITS: "2 of group"},
        "2 of group": {DIGITS: "group!"},
        "group!": separator | point,
        "point": {DIGITS: "fraction!"},
        "leading point": {DIGITS: "fraction!"},
        "fraction!": {DIGITS: "fraction!"},
    }


def _backwards(separator: Characters, leading_dot: bool) -> dict[str, Characters]:
    """The same from the last digit to the first: the digits before a point, if one follows, were a fraction, and groups of three are known by it."""
    point = {".": "point!" if leading_dot else "point"}
    return {
        "first": {DIGITS: "1 digit!"},
        "1 digit!": {DIGITS: "2 digits!"} | point,
        "2 digits!": {DIGITS: "3 digits!"} | point,
        "3 digits!": {DIGITS: "digits!"} | separator | point,
        "digits!": {DIGITS: "digits!"} | point,
        point["."]: {DIGITS: "1 whole!"},
        "1 whole!": {DIGITS: "2 whole!"},
        "2 whole!": {DIGITS: "3 whole!"},
        "3 whole!": {DIGITS: "whole!"} | separator,
        "whole!": {DIGITS: "whole!"},
        "separator": {DIGITS: "1 of group!"},
        "1 of group!": {DIGITS: "2 of group!"},
        "2 of group!": {DIGITS: "3 of group!"},
        "3 of group!": separator,
    }
