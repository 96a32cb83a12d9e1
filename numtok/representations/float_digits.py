"""Sign, exponent and mantissa as digits of any base, each a token of its own: RegressLM's tokens.

In: n numbers, ±b^e · d_0.d_1 … in base b. Out: 2 + E + M symbols each, no tensor: the sign, the
    sign of e, the E digits of abs(e), the M digits of the mantissa; −60.2 is ``- E+ 1 6 0 2 0``.
    Inverse: the number rounded to M digits of base b, to nearest, halves to even. RegressLM
    (google-deepmind/regress-lm, ``IEEEFloatTokenizer`` of regress_lm/tokenizers.py); its
    ``P10Tokenizer`` is :class:`~numtok.P10` with four digits and decades from -7 to 13.

Zero is ``+ E+ 0 0 0 0 0``, and minus zero another number. **Differences from the authors' code**:
there both signs are the same tokens,
while here one that is a number's first is no other, so that numbers side by side are told apart;
there digits beyond the last are cut off, minus zero is zero, and what is too small becomes zero,
with ``-`` for the sign of the exponent, where ``"clip"`` takes the smallest number that is held.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import decimals
from numtok.representations.base import Continuation, Mask, Spelled, SpelledOut

MOST_EXPONENTS = 4096
MOST_MANTISSAS = 10**18
# more digits than any mantissa tells apart; those of a million need not all be looked at
_DIGITS = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
SIGNS, FIRST_DIGIT = 2, 4  # the first symbols: + and -, E+ and E-, the digits

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FloatDigits(SpelledOut):
    """``- E+ 1 6 0 2 0``: sign, sign of the exponent, its digits, those of the mantissa.

    Attributes:
        base: b, of all digits, 2 to 36.
        exponent_digits: E; exponents reach from -(b^E - 1) to b^E - 1.
        mantissa_digits: M, to which numbers are rounded, halves to even.
        overflow: for numbers beyond these exponents.
    """

    base: int = 10
    exponent_digits: int = 1
    mantissa_digits: int = 4
    overflow: str = "text"
    name: ClassVar[str] = "float_digits"
    bracketed: ClassVar[bool] = False
    shares_vocabulary: ClassVar[bool] = False
    positional: ClassVar[tuple[str, ...]] = ("base", "exponent_digits", "mantissa_digits")

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
    def alphabet(self) -> tuple[str, ...]:
        return ("+", "-", "E+", "E-", *map(str, range(self.base)))

    @property
    def length(self) -> int:
        return 2 + self.exponent_digits + self.mantissa_digits

    @property
    def first_symbols(self) -> range:
        return range(SIGNS)

    @property
    def symbol_values(self) -> tuple[tuple[str, float] | None, ...]:
        return (*(None,) * FIRST_DIGIT, *(("digits", float(digit)) for digit in range(self.base)))

    @property
    def largest_exponent(self) -> int:
        """b^E - 1."""
        return int(self.base**self.exponent_digits) - 1

    def fits(self, numbers: Numbers) -> Mask:
        mantissa, exponent = self._rounded(numbers)
        return np.asarray((mantissa == 0) | (np.abs(exponent) <= self.largest_exponent))

    def encode(self, numbers: Numbers) -> Spelled:
        mantissa, exponent = self._rounded(numbers)
        largest, count = self.base**self.mantissa_digits - 1, len(numbers)
        mantissa[(exponent > self.largest_exponent) & (mantissa > 0)] = largest
        mantissa[(exponent < -self.largest_exponent) & (mantissa > 0)] = largest // self.base + 1
        exponent = np.clip(exponent, -self.largest_exponent, self.largest_exponent)
        exponent[mantissa == 0] = 0
        symbols = np.empty((count, self.length), np.uint16)
        symbols[:, 0], symbols[:, 1] = numbers.negative, SIGNS + (exponent < 0)
        digits = (_in_base(np.abs(exponent), self.base, self.exponent_digits),
                  _in_base(mantissa, self.base, self.mantissa_digits))  # fmt: skip
        symbols[:, 2:] = np.concatenate(digits, 1) + FIRST_DIGIT
        return Spelled(symbols.reshape(-1), np.arange(count + 1) * self.length)

    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        starts, symbols = spelled.offsets.tolist(), spelled.symbols.tolist()
        parts = [symbols[a:b] for a, b in itertools.pairwise(starts)]
        values = [self._value(part) for part in parts]
        told = Numbers.parse([str(one) for one in values if one is not None]).format().to_pylist()
        told.reverse()
        texts = [
            "".join(self.alphabet[one] for one in part) if value is None else told.pop()
            for part, value in zip(parts, values, strict=True)
        ]
        return pa.array(texts, pa.large_string())

    def continuation(self, grammar: Grammar) -> Continuation:
        """As :meth:`encode` spells: a mantissa without leading zeros, but for zero, whose exponent
        is ``+ 0``; no exponent is ``- 0``.
        """
        signs, zero = range(SIGNS), range(FIRST_DIGIT, FIRST_DIGIT + 1)
        digits = range(FIRST_DIGIT, FIRST_DIGIT + self.base)
        others = digits[1:]
        rules: dict[str, list[tuple[range, str]]] = {"begin": [(signs, "sign of e")]}
        rules["sign of e"] = [(range(2, 3), "+ zeros 0"), (range(3, 4), "- zeros 0")]
        last = self.exponent_digits - 1
        for k in range(self.exponent_digits):
            onward = "mantissa" if k == last else f"e {k + 1}"
            for sign in "+-":
                zeros = "may be zero" if k == last else f"{sign} zeros {k + 1}"
                rules[f"{sign} zeros {k}"] = [(others, onward)]
                if sign == "+" or k < last:
                    rules[f"{sign} zeros {k}"].append((zero, zeros))
            rules[f"e {k}"] = [(digits, onward)]
        rules["mantissa"] = [(others, "m 1")]
        rules["may be zero"] = [(others, "m 1"), (zero, "0 1")]
        for k in range(1, self.mantissa_digits):
            rules |= {f"m {k}": [(digits, f"m {k + 1}")], f"0 {k}": [(zero, f"0 {k + 1}")]}
        ends = [f"{kind} {self.mantissa_digits}" for kind in "m0"]
        return Continuation.of(rules | {end: [] for end in ends}, ends, len(self.alphabet))

    def _rounded(self, numbers: Numbers) -> tuple[Ints, Ints]:
        """(mantissa of M digits or 0, exponent of its first digit), int64[n] each; beyond the
        exponents there are, some exponent beyond them.
        """
        if self.base == 10:
            return decimals.rounded(numbers, self.mantissa_digits)
        mantissa, exponent = (memory.empty(len(numbers), np.int64) for _ in range(2))
        for k, value in enumerate(numbers.to_decimal()):
            mantissa[k], exponent[k] = self._digits(_DIGITS.plus(value.copy_abs()))
        return mantissa, exponent

    def _digits(self, value: Decimal) -> tuple[int, int]:
        """The same of one number that is not negative."""
        if not value:
            return 0, 0
        exponent = int(np.floor(value.adjusted() / np.log10(self.base)))
        if abs(exponent) > self.largest_exponent + 8:
            return 1, exponent
        _, digits, power = value.as_tuple()
        whole = int("".join(map(str, digits)))
        high = int(self.base**self.mantissa_digits)
        while True:
            shift = self.mantissa_digits - 1 - exponent
            mantissa = _scaled(whole, 10, int(power), self.base, shift)
            if high // self.base <= mantissa < high:
                return mantissa, exponent
            exponent += 1 if mantissa >= high else -1

    def _value(self, symbols: list[int]) -> Decimal | None:
        """What symbols say; None if they are no number."""
        sign, digits = symbols[:2], [one - FIRST_DIGIT for one in symbols[2:]]
        if len(symbols) != self.length or sign[0] > 1 or sign[1] not in (2, 3) or min(digits) < 0:
            return None
        exponent = mantissa = 0
        for digit in digits[: self.exponent_digits]:
            exponent = exponent * self.base + digit
        for digit in digits[self.exponent_digits :]:
            mantissa = mantissa * self.base + digit
        power = (-exponent if sign[1] == 3 else exponent) - self.mantissa_digits + 1
        value = _DIGITS.normalize(_DIGITS.multiply(mantissa, _DIGITS.power(self.base, power)))
        return value.copy_negate() if sign[0] else value


def _in_base(values: Ints, base: int, width: int) -> Ints:
    """int64[n] to the last ``width`` digits, [n, width], most significant first."""
    powers = np.array([base**k for k in reversed(range(width))], np.int64)
    return np.asarray(values[:, None] // powers % base)


def _scaled(whole: int, first: int, power: int, second: int, shift: int) -> int:
    """Whole · first^power · second^shift as an integer, to nearest, halves to even."""
    above, below = whole, 1
    for base, exponent in ((first, power), (second, shift)):
        above *= base ** max(exponent, 0)
        below *= base ** max(-exponent, 0)
    quotient, rest = divmod(above, below)
    return quotient + ((2 * rest, quotient & 1) > (below, 0))
