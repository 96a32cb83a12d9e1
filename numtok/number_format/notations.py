"""The texts of an automaton in the notations of other programs: a regular expression, and grammars
of llama.cpp and xgrammar (GBNF) and of llguidance (Lark).

A state of the automaton becomes an expression: what may follow it. In a grammar a state that
several lead to is a rule of its own, so that a grammar is no longer than the automaton; in a regular
expression it is written out each time. The same atom several times in a row is written once, with
how often: ``[0-9]{2}``.
"""

from __future__ import annotations

import graphlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numtok.errors import FormatError
from numtok.number_format.bounded_decimals import DIGITS
from numtok.numbers.automaton import NEVER, Continuation

LONGEST_REGEX = 100_000  # characters; engines take seconds for more
WRITTEN_OUT = 24  # characters; an expression that is no longer is no rule of its own
# characters; a longer expression is a rule of its own: llama.cpp and llguidance refuse deep nesting
NESTED = 100

# An expression: atoms in a row, and how often each may stand there, at least and at most.
Sequenced = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Notation:
    """Notation of expressions: of regular expressions, or of a language of grammars.

    Attributes:
        literal: writes one character.
        digits: writes one of some digits, given as the inside of a character class.
        group: what an expression in parentheses begins with.
        between: what stands between atoms.
        rule: writes the name of a state; None where there are no rules, as in regular expressions.
    """

    literal: Callable[[str], str]
    digits: Callable[[str], str]
    group: str
    between: str
    rule: Callable[[int], str] | None


def _quoted(character: str) -> str:
    return '"' + character.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(character: str) -> str:
    return re.escape(character) if character in ".+" else character


REGEX = Notation(_escaped, "[{}]".format, "(?:", "", None)
GBNF = Notation(_quoted, "[{}]".format, "(", " ", lambda state: f"s{state}" if state else "root")
LARK = Notation(_quoted, "/[{}]/".format, "(", " ", lambda state: f"S{state}")


def to_regex(automaton: Continuation, alphabet: str) -> str:
    """Return the regular expression of an automaton; alternatives stand in a group."""
    return _write(_expressions(automaton, alphabet, REGEX)[0], REGEX)


def to_gbnf(automaton: Continuation, alphabet: str) -> str:
    """Return the grammar of an automaton for llama.cpp and xgrammar."""
    return _rules(automaton, alphabet, GBNF, " ::=")


def to_lark(automaton: Continuation, alphabet: str) -> str:
    """Return the grammar of an automaton for llguidance. Its rules are terminals, which become one
    lexeme.
    """
    return "start: S0\n" + _rules(automaton, alphabet, LARK, ":")


def _rules(automaton: Continuation, alphabet: str, notation: Notation, is_written: str) -> str:
    expressions = _expressions(automaton, alphabet, notation)
    name = notation.rule or str
    lines = (
        f"{name(state)}{is_written} {_write(expressions[state], notation)}\n"
        for state in sorted(expressions)
    )
    return "".join(lines)


def _expressions(
    automaton: Continuation, alphabet: str, notation: Notation
) -> dict[int, Sequenced]:
    """Return what may follow each state that is a rule; without rules, what may follow the first."""
    onward = [_onward(row, alphabet) for row in automaton.following]
    led_to = Counter(to for targets in onward for to in targets)
    written: dict[int, Sequenced] = {}
    rules: dict[int, Sequenced] = {}
    for state in graphlib.TopologicalSorter(dict(enumerate(onward))).static_order():
        choices = [
            _joined(((atom, 1, 1),), written[to])
            for to, characters in onward[state].items()
            for atom in _atoms(characters, notation)
        ]
        expression = _either(choices, bool(automaton.ends[state]), notation)
        text = _write(expression, notation)
        if notation.rule is None and len(text) > LONGEST_REGEX:
            raise FormatError(
                f"the regular expression would have more than {LONGEST_REGEX} characters; take"
                " gbnf(), ebnf() or lark(), which name what is used several times"
            )
        written[state] = expression
        longest = WRITTEN_OUT if led_to[state] > 1 else NESTED
        if notation.rule and (state == 0 or len(text) > longest):
            rules[state] = expression
            written[state] = ((notation.rule(state), 1, 1),)
    return rules if notation.rule else {0: written[0]}


def _onward(following: Sequence[int], alphabet: str) -> dict[int, str]:
    """Return the states that may follow, and by which characters."""
    targets: dict[int, str] = {}
    for character, to in zip(alphabet, map(int, following), strict=True):
        if to != NEVER:
            targets[to] = targets.get(to, "") + character
    return targets


def _atoms(characters: str, notation: Notation) -> list[str]:
    """Return one atom for all digits, and one for each other character."""
    digits = "".join(character for character in DIGITS if character in characters)
    atoms = [notation.literal(one) for one in characters if one not in DIGITS]
    if len(digits) == 1:
        return [notation.literal(digits), *atoms]
    return [notation.digits(_ranges(digits)), *atoms] if digits else atoms


def _ranges(digits: str) -> str:
    """Return ``0124`` as ``0-24``."""
    runs: list[str] = []
    for digit in digits:
        if runs and int(runs[-1][-1]) + 1 == int(digit):
            runs[-1] += digit
        else:
            runs.append(digit)
    return "".join(run if len(run) < 3 else f"{run[0]}-{run[-1]}" for run in runs)


def _joined(first: Sequenced, rest: Sequenced) -> Sequenced:
    """Return one after the other, the same atom on both sides written once."""
    if not rest or first[-1][0] != rest[0][0]:
        return first + rest
    (atom, low, high), (_, more, most) = first[-1], rest[0]
    return (*first[:-1], (atom, low + more, high + most), *rest[1:])


def _either(choices: list[Sequenced], may_end: bool, notation: Notation) -> Sequenced:
    """Return one of the choices, or nothing where the number may end."""
    if not choices:
        return ()
    if len(choices) == 1 and not may_end:
        return choices[0]
    if len(choices) == 1 and len(choices[0]) == 1 and choices[0][0][1] <= 1:
        return ((choices[0][0][0], 0, choices[0][0][2]),)
    inside = "|".join(_write(choice, notation) for choice in choices)
    return ((f"{notation.group}{inside})", 0 if may_end else 1, 1),)


def _write(expression: Sequenced, notation: Notation) -> str:
    times = {(1, 1): "", (0, 1): "?"}
    return notation.between.join(
        atom + times.get((low, high), f"{{{low}}}" if low == high else f"{{{low},{high}}}")
        for atom, low, high in expression
    )
