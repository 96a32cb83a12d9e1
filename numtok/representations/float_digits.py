"""Sign, exponent and mantissa as digits of any base, each a token of its own: RegressLM's tokens.

In: n numbers, ±b^e · d_0.d_1 … in base b. Out: 2 + E + M symbols each, no tensor: the sign, the
    sign of e, the E digits of abs(e), the M digits of the mantissa; −60.2 is ``- E+ 1 6 0 2 0``.
    Inverse: the number rounded to M digits of base b, to nearest, halves to even. RegressLM
    (google-deepmind/regress-lm, ``IEEEFloatTokenizer`` of regress_lm/tokenizers.py); its
    ``P10Tokenizer`` is :class:`~numtok.P10` with four digits and decades from -7 to 13.

Zero is ``+ E+ 0 0 0 0 0``, and minus zero another number. **Differences from the authors' code**:
there both signs are the same tokens, while here one that is a number's first is no other, so that
numbers side by side can be told apart; there digits beyond the last are cut off, minus zero is
zero, and what is too small becomes zero, with ``-`` for the sign of the exponent, where ``"clip"``
takes the smallest number that is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, Context, Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from numtok.numbers.numbers import Numbers
from numtok.representations.charton import (
    DIGIT,
    SIGN,
    IntOrInts,
    Ints,
    Scientific,
    from_base,
    in_base,
)

MOST_EXPONENTS = 4096
MOST_MANTISSAS = 10**18
EXPONENT_SIGN = "sign of the exponent"
_DIGITS = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)  # more than any mantissa tells apart
# No half of a last digit has as many digits, so that numbers of a million can be cut off here. The
# last one says whether something was (ROUND_05UP), and no number becomes such a half.
_MOST_READ = Context(prec=5000, rounding=ROUND_05UP, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class FloatDigits(Scientific):
    """``- E+ 1 6 0 2 0``: sign, sign of the exponent, its digits, those of the mantissa.

    Attributes:
        base: b, of all digits, 2 to 36.
        exponent_digits: E; exponents reach from -(b^E - 1) to b^E - 1.
        mantissa_digits: M, to which numbers are rounded, halves to even.
        overflow: for numbers beyond these exponents.

    Example:
        >>> import numtok
        >>> floats = numtok.FloatDigits()
        >>> encoded = floats.encode(numtok.Numbers.parse(["-60.2"]))
        >>> [floats.alphabet[symbol] for symbol in encoded.symbols]
        ['-', 'E+', '1', '6', '0', '2', '0']
    """

    base: int = 10
    exponent_digits: int = 1
    mantissa_digits: int = 4
    overflow: str = "text"
    name = "float_digits"
    positional = ("base", "exponent_digits", "mantissa_digits")

    def __post_init__(self) -> None:
        super().__post_init__()
        base, exponent, mantissa = self.base, self.exponent_digits, self.mantissa_digits
        # of digits so many that powers are no long ones
        allowed = 2 <= base <= 36 and 1 <= exponent <= 12 and 1 <= mantissa <= 60
        if not (allowed and base**exponent <= MOST_EXPONENTS and base**mantissa <= MOST_MANTISSAS):
            raise self.refused(
                f"base={base} must be from 2 to 36, exponent_digits={exponent} and"
                f" mantissa_digits={mantissa} at least 1, with at most {MOST_EXPONENTS:,} exponents"
                f" and {MOST_MANTISSAS:,} mantissas"
            )

    @property
    def fields(self) -> tuple[str, ...]:
        return (SIGN, EXPONENT_SIGN, *[DIGIT] * (self.exponent_digits + self.mantissa_digits))

    @property
    def sizes(self) -> dict[str, int]:
        return {SIGN: 2, EXPONENT_SIGN: 2, DIGIT: self.base}

    @property
    def alphabet(self) -> tuple[str, ...]:
        return ("+", "-", "E+", "E-", *map(str, range(self.base)))

    @property
    def symbol_values(self) -> tuple[tuple[str, float] | None, ...]:
        return (None,) * 4 + tuple(("digits", float(digit)) for digit in range(self.base))

    @property
    def precision(self) -> int:
        return self.mantissa_digits

    @property
    def powers(self) -> tuple[int, int]:
        largest = int(self.base**self.exponent_digits) - 1
        return -largest, largest

    def pack(self, minus: IntOrInts, mantissa: IntOrInts, power: IntOrInts) -> list[IntOrInts]:
        exponent = in_base(abs(power), self.base, self.exponent_digits)
        digits = in_base(mantissa, self.base, self.mantissa_digits)
        return [minus, (power < 0) * 1, *exponent, *digits]

    def unpack(self, values: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
        minus, below, *digits = values
        power = from_base(digits[: self.exponent_digits], self.base)
        mantissa = from_base(digits[self.exponent_digits :], self.base)
        return minus, mantissa, np.where(below == 1, -power, power)

    def forms(self) -> list[list[range]]:
        """Return the values of the fields; the exponent of none is ``- 0``."""
        zero, other, any_digit = range(1), range(1, self.base), range(self.base)
        mantissa = [other, *[any_digit] * (self.mantissa_digits - 1)]
        last = self.exponent_digits - 1
        below = [[*[zero] * k, other, *[any_digit] * (last - k)] for k in range(last + 1)]
        signed = [[zero, *[any_digit] * (last + 1)], *([other[:1], *one] for one in below)]
        return [[range(2), *exponent, *mantissa] for exponent in signed]

    def rounded(self, numbers: Numbers) -> tuple[Ints, Ints]:
        """Round to mantissa and power, as base ten does. A number beyond all powers gets some power
        beyond them.
        """
        if self.base == 10:
            return super().rounded(numbers)
        digits = [self._digits(_MOST_READ.plus(one.copy_abs())) for one in numbers.to_decimal()]
        mantissa, power = np.array(digits, np.int64).reshape(-1, 2).T.copy()
        return mantissa, power

    def _digits(self, value: Decimal) -> tuple[int, int]:
        """Return (mantissa, power of its first digit) of one number that is not negative."""
        if not value:
            return 0, 0
        power = int(np.floor(value.adjusted() / np.log10(self.base)))
        if abs(power) > self.powers[1] + 8:
            return 1, power
        exact, high = Fraction(value), int(self.base**self.mantissa_digits)
        while True:
            mantissa = round(exact * Fraction(self.base) ** (self.mantissa_digits - 1 - power))
            if high // self.base <= mantissa < high:
                return mantissa, power
            power += 1 if mantissa >= high else -1

    def numbers(self, minus: Ints, mantissa: Ints, power: Ints) -> Numbers:
        if self.base == 10:
            return super().numbers(minus, mantissa, power)
        shift, values = self.mantissa_digits - 1, []
        for negative, digits, first in zip(
            *map(np.ndarray.tolist, (minus, mantissa, power)), strict=True
        ):
            scale = _DIGITS.power(self.base, first - shift)
            values.append(f"{'-' * negative}{_DIGITS.normalize(_DIGITS.multiply(digits, scale))}")
        return Numbers.parse(pa.array(values, pa.large_string()))
