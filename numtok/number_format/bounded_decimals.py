"""Decimals between two bounds, digit by digit, as an automaton that is exact whatever the bounds.

A text of ``f`` fraction digits is read as an integer in units of 10**-f. Which digits may follow
depends on whether all digits so far are those of the lower or of the upper bound, and on the
remainder by the step. All of them together are a finite language, so that every text ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from numtok.errors import FormatError
from numtok.numbers.automaton import Language, Part

DIGITS = "0123456789"
MOST_POSITIONS = 200_000  # (digits, remainder by the step) that a format may have to look at
LARGEST_EXPONENT = 308  # the largest power of ten that a float64 holds

# After some digits: their remainder by the step, and whether all are those of the low bound, and of
# the high one.
Key = tuple[int, bool, bool]


@dataclass(frozen=True)
class Mantissa:
    """Integers from ``low`` to ``high`` that are multiples of ``step``."""

    low: int
    high: int
    step: int

    def is_empty(self) -> bool:
        """Whether there are none."""
        return -(-self.low // self.step) * self.step > self.high


@dataclass(frozen=True)
class Shape:
    """Numbers without their sign, bounded on both sides.

    Attributes:
        decimals: the most digits behind the point.
        digits: the most digits in all, a lone 0 before the point not counted.
        step: what numbers are multiples of; None for any.
        grouping: what separates groups of three digits before the point; empty for nothing.
        exponent: whether there is scientific notation too.
    """

    decimals: int
    digits: int
    step: Fraction | None
    grouping: str
    exponent: bool

    def mantissa(
        self, low: Fraction, high: Fraction, power: int, within: tuple[int, int]
    ) -> Mantissa:
        """Return the integers within these two that give, times 10**power, a multiple of the step
        between the bounds.
        """
        unit = Fraction(10) ** power
        multiple = 1 if self.step is None else (self.step / unit).numerator
        least, most = math.ceil(low / unit), math.floor(high / unit)
        return Mantissa(max(least, within[0]), min(most, within[1]), multiple)


class BoundedDecimals(Language):
    """Automata of decimals. A symbol is a position in ``alphabet``."""

    def __init__(self, alphabet: str) -> None:
        super().__init__()
        self.alphabet = alphabet
        self._positions = 0

    def texts(self, *texts: str) -> Part:
        """Accept one of these texts."""
        return self.words([self.alphabet.index(one) for one in text] for text in texts)

    def unsigned(self, shape: Shape, low: Fraction, high: Fraction, zero: bool) -> Part:
        """Accept every number of a shape from ``low`` to ``high``, which are not negative; 0 only where
        ``zero``.
        """
        parts = list(self._plain(shape, low, high, zero))
        if shape.exponent:
            parts += self._scientific(shape, low, high)
        return self.either(*parts)

    def _plain(self, shape: Shape, low: Fraction, high: Fraction, zero: bool) -> Iterator[Part]:
        """Yield numbers without an exponent, one part for each number of digits before the point."""
        longest = min(shape.digits, max(1, len(str(math.floor(high)))))
        for whole in range(1, longest + 1):
            decimals = min(shape.decimals, shape.digits - whole)
            least = 10 ** (whole - 1 + decimals)
            mantissa = shape.mantissa(low, high, -decimals, (least, 10 * least - 1))
            yield self._digits(mantissa, whole, decimals, shape.grouping)
        decimals = min(shape.decimals, shape.digits)  # 0.05: the 0 is not counted
        mantissa = shape.mantissa(low, high, -decimals, (0 if zero else 1, 10**decimals - 1))
        yield self._digits(mantissa, 1, decimals, "")

    def _scientific(self, shape: Shape, low: Fraction, high: Fraction) -> Iterator[Part]:
        """Yield numbers as ``d.ddde-x``: one digit before the point, which is not 0. Most exponents allow
        every mantissa, so those that allow the same ones go together.
        """
        decimals = min(shape.decimals, shape.digits - 1)
        exponents: dict[Mantissa, list[str]] = {}
        digits = 10**decimals, 10 ** (decimals + 1) - 1
        for exponent in range(-LARGEST_EXPONENT, LARGEST_EXPONENT + 1):
            mantissa = shape.mantissa(low, high, exponent - decimals, digits)
            if not mantissa.is_empty():
                exponents.setdefault(mantissa, []).append(f"e{exponent}")
        for mantissa, texts in exponents.items():
            yield self.then(self._digits(mantissa, 1, decimals, ""), self.texts(*texts))

    def _digits(self, mantissa: Mantissa, whole: int, decimals: int, grouping: str) -> Part:
        """Accept the digits of one of these integers: ``whole`` of them, and after a point up to
        ``decimals`` more, of which zeros at the end may be left out.
        """
        if mantissa.is_empty():
            return self.either()
        length, step = whole + decimals, mantissa.step
        low, high = (str(one).zfill(length) for one in (mantissa.low, mantissa.high))
        # numbers that the digits still to come can give, and the modulus of the remainder before
        powers = [10**left for left in range(length, -1, -1)]
        moduli = [step // math.gcd(step, power) for power in powers]

        def onward(at: int, key: Key) -> Iterator[tuple[int, Key]]:
            """Yield each digit behind which there is a multiple of the step, and where it leads."""
            rest, is_low, is_high = key
            first, last = int(low[at]) if is_low else 0, int(high[at]) if is_high else 9
            for digit in range(first, last + 1):
                to = (rest * 10 + digit) % moduli[at + 1]
                if -to * powers[at + 1] % step < powers[at + 1]:
                    yield digit, (to, is_low and digit == first, is_high and digit == last)

        def parts(at: int, key: Key, states: dict[Key, int]) -> Iterator[Part]:
            """Yield what may follow the first ``at`` digits, given the states after one more."""
            if at >= whole and key[0] == 0 and not (key[1] and low[at:].strip("0")):
                yield self.then()
            digits: dict[int, list[int]] = {}
            for digit, to in onward(at, key) if at < length else ():
                digits.setdefault(states[to], []).append(digit)
            is_group = 0 < at < whole and (whole - at) % 3 == 0
            mark = "." if at == whole else grouping if is_group else ""
            for state, some in digits.items():
                yield self.then(self.texts(mark), self.one(tuple(some)), _at(state))

        def build(after: int) -> int:
            levels: list[set[Key]] = [{(0, True, True)}]
            for at in range(length):
                self._count(len(levels[at]))
                levels.append({to for key in levels[at] for _, to in onward(at, key)})
            states: dict[Key, int] = {}
            for at in range(length, -1, -1):
                states = {key: self.either(*parts(at, key, states))(after) for key in levels[at]}
            return states[0, True, True]

        return build

    def _count(self, more: int) -> None:
        self._positions += more
        if self._positions > MOST_POSITIONS:
            raise FormatError(
                f"this format needs an automaton of more than {MOST_POSITIONS} states; take a step"
                " that divides a power of ten, narrower bounds or fewer digits"
            )


def _at(state: int) -> Callable[[int], int]:
    return lambda after: state
