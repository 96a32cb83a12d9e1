"""An automaton in the notations of other programs: a regular expression, and grammars of llama.cpp
and xgrammar (GBNF) and of llguidance (Lark).

A state of the automaton becomes an expression: what may follow it. In a grammar each state is a
rule, which ends with the name of another. In a regular expression the states that follow are
written out each time, and the same atom several times in a row once, with how often: ``[0-9]{2}``.
"""

from __future__ import annotations

import graphlib
import re
from collections.abc import Callable, Sequence

from numtok.errors import FormatError
from numtok.number_format.bounded_decimals import DIGITS
from numtok.numbers.automaton import NEVER, Continuation

LONGEST_REGEX = 100_000  # characters; engines take seconds for more

# An expression: atoms in a row, and how often each may stand there, at least and at most.
Sequenced = tuple[tuple[str, int, int], ...]


def to_gbnf(automaton: Continuation, alphabet: str) -> str:
    """Return the grammar of an automaton for llama.cpp and xgrammar."""
    return _rules(automaton, alphabet, "{} ::= {}", "[{}]", lambda n: f"s{n}" if n else "root")


def to_lark(automaton: Continuation, alphabet: str) -> str:
    """Return the grammar of an automaton for llguidance. Its rules are terminals, which become one
    lexeme.
    """
    return "start: S0\n" + _rules(automaton, alphabet, "{}: {}", "/[{}]/", "S{}".format)


def _rules(
    automaton: Continuation, alphabet: str, rule: str, digits: str, name: Callable[[int], str]
) -> str:
    """Return a rule for each state that others may follow, in the notation of a grammar."""
    onward = [_onward(row, alphabet) for row in automaton.following]
    lines = []
    for state, targets in enumerate(onward):
        choices = [
            f"{atom} {name(to)}" if onward[to] else atom
            for to, characters in targets.items()
            for atom in _atoms(characters, _quoted, digits)
        ]
        if choices:
            one_of = f"({' | '.join(choices)}){'?' if automaton.ends[state] else ''}"
            lines.append(rule.format(name(state), one_of) + "\n")
    return "".join(lines)


def _quoted(character: str) -> str:
    return '"' + character.replace("\\", "\\\\").replace('"', '\\"') + '"'


def to_regex(automaton: Continuation, alphabet: str) -> str:
    """Return the regular expression of an automaton; alternatives stand in a group."""
    onward = [_onward(row, alphabet) for row in automaton.following]
    written: dict[int, Sequenced] = {}
    for state in graphlib.TopologicalSorter(dict(enumerate(onward))).static_order():
        choices = [
            _joined((atom, 1, 1), written[to])
            for to, characters in onward[state].items()
            for atom in _atoms(characters, _escaped, "[{}]")
        ]
        written[state] = _either(choices, bool(automaton.ends[state]))
        if len(_write(written[state])) > LONGEST_REGEX:
            raise FormatError(
                f"the regular expression would have more than {LONGEST_REGEX} characters; take"
                " gbnf(), ebnf() or lark(), which name what is used several times"
            )
    return _write(written[0])


def _escaped(character: str) -> str:
    return re.escape(character) if character in ".+" else character


def _onward(following: Sequence[int], alphabet: str) -> dict[int, str]:
    """Return the states that may follow, and by which characters."""
    targets: dict[int, str] = {}
    for character, to in zip(alphabet, map(int, following), strict=True):
        if to != NEVER:
            targets[to] = targets.get(to, "") + character
    return targets


def _atoms(characters: str, literal: Callable[[str], str], some_digits: str) -> list[str]:
    """Return one atom for all digits, and one for each other character."""
    digits = "".join(character for character in DIGITS if character in characters)
    atoms = [literal(one) for one in characters if one not in DIGITS]
    if len(digits) == 1:
        return [literal(digits), *atoms]
    return [some_digits.format(_ranges(digits)), *atoms] if digits else atoms


def _ranges(digits: str) -> str:
    """Return ``0124`` as ``0-24``."""
    runs: list[str] = []
    for digit in digits:
        if runs and int(runs[-1][-1]) + 1 == int(digit):
            runs[-1] += digit
        else:
            runs.append(digit)
    return "".join(run if len(run) < 3 else f"{run[0]}-{run[-1]}" for run in runs)


def _joined(first: tuple[str, int, int], rest: Sequenced) -> Sequenced:
    """Return one after the other, the same atom on both sides written once."""
    if not rest or first[0] != rest[0][0]:
        return (first, *rest)
    (atom, low, high), (_, more, most) = first, rest[0]
    return ((atom, low + more, high + most), *rest[1:])


def _either(choices: list[Sequenced], may_end: bool) -> Sequenced:
    """Return one of the choices, or nothing where the number may end."""
    if not choices:
        return ()
    if len(choices) == 1 and not may_end:
        return choices[0]
    if len(choices) == 1 and len(choices[0]) == 1 and choices[0][0][1] <= 1:
        return ((choices[0][0][0], 0, choices[0][0][2]),)
    return ((f"(?:{'|'.join(map(_write, choices))})", 0 if may_end else 1, 1),)


def _write(expression: Sequenced) -> str:
    times = {(1, 1): "", (0, 1): "?"}
    return "".join(
        atom + times.get((low, high), f"{{{low}}}" if low == high else f"{{{low},{high}}}")
        for atom, low, high in expression
    )
