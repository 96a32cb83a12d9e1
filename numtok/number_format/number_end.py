"""Where a number ends that stands in front of other text.

A number that is whole ends at the next character, unless that character goes on with it. ``100.`` may
still become 100.5, and ``1e`` 1e5, so a mark is looked through: a digit behind it makes another
number of it, anything else ends the number before the mark.

Whole numbers of the format that become another one which the format does not hold, as 999 followed
by a 9, are not counted as 999.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from numtok.number_format.bounded_decimals import DIGITS
from numtok.number_format.number_format import NumberFormat
from numtok.numbers.automaton import NEVER

MARKS, EXPONENTS, SIGNS = ".,", "eE", "+-"

# What a state is made of: the state of the format's automaton, NEVER where the characters go on with
# no number; how many of them stand behind the last whole number, None if there is none; and which
# kind of character the last of them is.
Reading = tuple[int, int | None, str]
BEFORE: Reading = (-2, None, "")  # in front of the number


class NumberEnds:
    """An automaton over the text that begins with a number, as one table.

    Args:
        number_format: which numbers may stand there.
        leading_space: whether one space may stand before the number.

    Attributes:
        alphabet: the bytes with a column of their own, each as the character of its number; all
            others share the last one.
        table: int64[states, len(alphabet) + 1], the state after each byte.
        start, ended, nowhere: states: at first; behind a number, whatever follows; where no number of
            the format can stand any more.
        behind: for each state, how many bytes stand behind the last whole number.
    """

    ended, nowhere, start = 0, 1, 2

    def __init__(self, number_format: NumberFormat, leading_space: bool = True) -> None:
        characters, self._automaton = number_format.in_utf8()
        self._leading_space = leading_space
        self.alphabet = "".join(dict.fromkeys(f"{characters}{DIGITS}{MARKS}{EXPONENTS}{SIGNS} "))
        columns = [*self.alphabet, "\0"]
        states: dict[Reading | int, int] = {one: one for one in (self.ended, self.nowhere)}
        states[BEFORE] = self.start
        rows = [[self.ended] * len(columns), [self.nowhere] * len(columns)]
        for reading in (order := [BEFORE]):
            row = [self._after(reading, character) for character in columns]
            for after in row:
                if not isinstance(after, int) and after not in states:
                    states[after] = len(states)
                    order.append(after)
            rows.append([states[after] for after in row])
        self.table: npt.NDArray[np.int64] = np.array(rows, np.int64)
        self.behind = [0, 0, *(reading[1] or 0 for reading in order)]

    def _after(self, reading: Reading, character: str) -> Reading | int:
        """Return the reading after one more character, or the state ``ended`` or ``nowhere``."""
        if reading == BEFORE:
            reading = (0, None, "")
            if character == " " and self._leading_space:
                return reading
        state, behind, kind = reading
        column = self.alphabet.find(character)
        following = self._automaton.following
        if state != NEVER:
            goes_on = 0 <= column < following.shape[1]
            state = int(following[state, column]) if goes_on else NEVER
        if state != NEVER and self._automaton.ends[state]:
            return state, 0, ""
        if behind is None or character in DIGITS:
            return self.nowhere if state == NEVER else (state, None, "")
        if not kind and character in MARKS:
            return state, behind + 1, "mark"
        if not kind and character in EXPONENTS:
            return state, behind + 1, "exponent"
        if kind == "exponent" and character in SIGNS:
            return state, behind + 1, "mark"
        return self.ended if state == NEVER else (state, behind + 1, "mark")
