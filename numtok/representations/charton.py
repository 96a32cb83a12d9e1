"""The Charton encodings, P10, P1000, B1999 and FP15: a sign, a few significant digits and a power
of ten, in one to five tokens of their own.

In: n numbers. Out: symbols, the same count for every number; no tensor. Inverse: the number rounded
    to ``digits`` significant digits, exact for every number that has no more. Linear Algebra with
    Transformers (Charton 2021), section 3; xVal (Golkar et al. 2023), table 1. What they have in
    common is here; each has a file of its own.

=======  ====================  ==============  ========================  =============  =====================
class    −60.2, integer form   decimal form    symbols, 16 exponents     and for zero   symbols per number
=======  ====================  ==============  ========================  =============  =====================
P10      ``- 6 0 2 E-1``       ``- 6 0 2 e+1``  2 + 10 + 16 = 28         none           2 + digits
P1000    ``- 602 E-1``         ``- 6.02 e+1``   2 + 900 + 16 = 918       1              3
B1999    ``-602 E-1``          ``-6.02 e+1``    1800 + 16 = 1816         2              2
FP15     ``-602E-1``           ``-6.02e+1``     1800 * 16 = 28800        2              1
=======  ====================  ==============  ========================  =============  =====================

**Rounding** is from the decimal as written, to nearest, halves to even: 1.245 is 124E-2, 1.2450001
is 125E-2. **Zero** is as long as every other number, ``+ 0 0 0 E0``, ``+ 000 E0``, ``000 E0`` or
``000E0``, and minus zero is another number. **Out of range**, after rounding, is what ``overflow``
says; ``"clip"`` gives the largest magnitude, or the smallest that is not zero.

**Differences from the authors' code** (LAWT). There zero is shorter (``+ 0 E0``), and the sign of
minus zero is lost; the decimal is first rounded to a double, so that ties go either way; P10, P1000
and B1999 have the exponents E-100 to E100, with smaller numbers turned into zero; FP15 has N100e0
to N999e15 for our 100E-9 to 999E6, shorter mantissas for smaller numbers, and one symbol for
everything larger, which reads back as 1e9.

**Tokens.** The vocabulary is not shared with the source tokenizer, where 602 may be a token of the
text: ``- 602 E-1`` is the added tokens ``[NUM:-] [NUM:602] [NUM:E-1]``. ``len(alphabet)`` are
added, and for byte-level BPE a second form with a space for each of ``first_symbols``.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import allocating_kernel
from numtok.errors import RepresentationError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import decimals
from numtok.representations.base import Mask, Spelled, SpelledOut
from numtok.representations.continuation import Continuation, Rules

FORMS = ("integer", "decimal")
MAX_SYMBOLS = 2**16
MAX_DECADE = 10**6

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Charton(SpelledOut):
    """What the four have in common.

    Attributes:
        digits: significant digits.
        decades: the smallest and the largest power of ten of the first digit: (-7, 8) is 16
            exponents, for zero and 1e-7 <= abs(x) < 1e9.
        form: ``"integer"``, −602 and E-1, or ``"decimal"``, −6.02 and e+1.
        overflow: for numbers outside the decades.
    """

    digits: int = 3
    decades: tuple[int, int] = (-7, 8)
    form: str = "integer"
    overflow: str = "text"
    bracketed: ClassVar[bool] = False
    shares_vocabulary: ClassVar[bool] = False
    positional: ClassVar[tuple[str, ...]] = ("digits",)

    def __post_init__(self) -> None:
        self._check_overflow()
        if self.form not in FORMS:
            raise RepresentationError(
                f"{self.name}: form={self.form!r} is unknown; use one of"
                f" {', '.join(map(repr, FORMS))}"
            )
        if not 1 <= self.digits <= 18:
            raise RepresentationError(f"{self.name}: digits={self.digits} must be from 1 to 18")
        if self.decades[0] > self.decades[1]:
            raise RepresentationError(
                f"{self.name}: decades={self.decades} must be the smallest and the largest power of"
                " ten, such as (-7, 8)"
            )
        if max(map(abs, self.decades)) > MAX_DECADE:
            raise RepresentationError(
                f"{self.name}: decades={self.decades} must be within ±{MAX_DECADE:,}"
            )
        if self.n_symbols > MAX_SYMBOLS:
            raise RepresentationError(
                f"{self.name}: {self.digits} digits and {self.n_exponents} exponents need"
                f" {self.n_symbols:,} symbols, more than {MAX_SYMBOLS:,}; take fewer digits, fewer"
                " decades, or p10"
            )

    @property
    @abstractmethod
    def n_symbols(self) -> int:
        """How many symbols the alphabet has."""

    @property
    def n_exponents(self) -> int:
        return self.decades[1] - self.decades[0] + 1

    @property
    def n_mantissas(self) -> int:
        """Zero included."""
        return 9 * int(10 ** (self.digits - 1)) + 1

    @property
    def exponent_of_zero(self) -> int:
        """As an index: the exponent 0, or the nearest to it."""
        shift = self.digits - 1 if self.form == "integer" else 0
        return (
            min(max(0, self.decades[0] - shift), self.decades[1] - shift) + shift - self.decades[0]
        )

    @property
    def symbol_values(self) -> tuple[tuple[str, float] | None, ...]:
        return tuple(map(_value, self.alphabet))

    def fits(self, numbers: Numbers) -> Mask:
        mantissa, decade = self._rounded(numbers)
        return np.asarray(
            (mantissa == 0) | ((decade >= self.decades[0]) & (decade <= self.decades[1]))
        )

    def encode(self, numbers: Numbers) -> Spelled:
        mantissa, decade = self._rounded(numbers)
        low, high = self.decades
        smallest = 10 ** (self.digits - 1)
        _clip(mantissa, decade, low, high, smallest, self.exponent_of_zero)
        minus = numbers.negative.astype(np.int64)
        symbols = self.symbols_of(minus, mantissa, decade)
        count = symbols.shape[1]
        return Spelled(symbols.reshape(-1), np.arange(len(numbers) + 1) * count)

    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        """Each number as text; symbols that are no number, such as a mantissa alone, as they are,
        one behind the other.
        """
        assert self.length is not None
        whole = np.diff(spelled.offsets) == self.length
        table = spelled.symbols[
            spelled.offsets[:-1][whole][:, None] + np.arange(self.length)
        ].astype(np.int64)  # [numbers, length]
        minus, mantissa, decade, valid = self.read_table(table)
        values, offsets, exponent = decimals.split(
            mantissa, decade + self.decades[0] - self.digits + 1
        )
        texts = Numbers.from_digits(minus, values, offsets, exponent).rows.array
        whole[whole] = valid
        if whole.all():
            return texts
        spoken = texts.filter(pa.array(valid)).to_pylist()[::-1]
        starts = spelled.offsets.tolist()
        return pa.array(
            [
                (
                    spoken.pop()
                    if good
                    else "".join(
                        self.alphabet[symbol] for symbol in spelled.symbols[first:last].tolist()
                    )
                )
                for good, first, last in zip(whole.tolist(), starts[:-1], starts[1:], strict=True)
            ],
            pa.large_string(),
        )

    def _rounded(self, numbers: Numbers) -> tuple[Ints, Ints]:
        """(mantissa of ``digits`` digits or 0, power of ten of its first digit), int64[n] each."""
        mantissa, decade = (
            memory.empty(len(numbers), np.int64),
            memory.empty(len(numbers), np.int64),
        )
        decimals.round_to(
            numbers.digits, numbers.digit_offsets, numbers.exponent, self.digits, mantissa, decade
        )
        return mantissa, decade

    @abstractmethod
    def symbols_of(self, minus: Ints, mantissa: Ints, decade: Ints) -> npt.NDArray[np.uint16]:
        """uint16[n, length]; ``decade`` counts from the smallest."""

    @abstractmethod
    def read_table(self, table: Ints) -> tuple[Mask, Ints, Ints, Mask]:
        """The inverse of :meth:`symbols_of`: (minus, mantissa, decade, whether each row is a
        number).
        """

    def continuation(self, grammar: Grammar) -> Continuation:
        """As :meth:`encode` spells: a mantissa that is not zero has no leading zeros, and zero has
        one exponent.
        """
        return Continuation.of(self.rules(), ["end"], self.n_symbols)

    @abstractmethod
    def rules(self) -> Rules:
        """Which symbols may follow which; the state ``"end"`` is that of whole numbers."""

    def rules_of_exponents(self) -> Rules:
        """Behind a mantissa, and behind that of zero; the exponents are the last symbols."""
        first = self.n_symbols - self.n_exponents
        zero = first + self.exponent_of_zero
        return {
            "mantissa": [(range(first, self.n_symbols), "end")],
            "zero": [(range(zero, zero + 1), "end")],
            "end": [],
        }

    def code_of(self, mantissa: Ints) -> Ints:
        """0 for zero, and 1 for the smallest mantissa."""
        return np.maximum(mantissa - (self.n_mantissas // 9 - 1), 0)

    def mantissa_of(self, code: Ints) -> Ints:
        """The inverse of :meth:`code_of`."""
        return np.where(code > 0, code + (self.n_mantissas // 9 - 1), 0)


@functools.lru_cache(maxsize=32)
def mantissas(digits: int, form: str) -> tuple[str, ...]:
    """Zero, then the others in order."""
    written = (f"{mantissa:0{digits}d}" for mantissa in (0, *range(10 ** (digits - 1), 10**digits)))
    return tuple(
        f"{text[0]}.{text[1:]}".rstrip(".") if form == "decimal" else text for text in written
    )


def exponents(digits: int, decades: tuple[int, int], form: str) -> tuple[str, ...]:
    """From the smallest to the largest."""
    every = range(decades[0], decades[1] + 1)
    return tuple(
        f"e{decade:+d}" if form == "decimal" else f"E{decade - digits + 1}" for decade in every
    )


def with_signs(mantissas: tuple[str, ...]) -> tuple[str, ...]:
    """Each mantissa, followed by the same with a minus."""
    return tuple(sign + mantissa for mantissa in mantissas for sign in ("", "-"))


def _value(symbol: str) -> tuple[str, float] | None:
    """Mantissas are compared with mantissas, exponents with exponents; a sign alone with nothing.

    ``-602E-1`` as a whole is a mantissa.
    """
    if symbol in "+-":
        return None
    return (
        ("exponents", float(symbol[1:]))
        if symbol[0] in "eE"
        else ("mantissas", float(Decimal(symbol)))
    )


@allocating_kernel
def _clip(mantissa, decade, low, high, smallest, zero):  # type: ignore[no-untyped-def]
    """Bring every number into the decades, and count ``decade`` from ``low``; zero has its own."""
    for i in range(mantissa.size):
        if mantissa[i] == 0:
            decade[i] = zero + low
        elif decade[i] < low:
            mantissa[i], decade[i] = smallest, low
        elif decade[i] > high:
            mantissa[i], decade[i] = smallest * 10 - 1, high
        decade[i] -= low
