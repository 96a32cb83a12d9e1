"""The Charton encodings, P10, P1000, B1999 and FP15: a sign, a few significant digits and a power
of ten, in one to five tokens of their own.

In: n numbers. Out: symbols, the same count for every number; no tensor. Inverse: the number rounded
to ``digits`` significant digits, exact for every number that has no more. Linear Algebra with
Transformers (Charton 2021), section 3; xVal (Golkar et al. 2023), table 1.

=======  ====================  ==============  ========================  =============  =====================
class    −60.2, integer form   decimal form    symbols, 16 exponents     and for zero   symbols per number
=======  ====================  ==============  ========================  =============  =====================
P10      ``- 6 0 2 E-1``       ``- 6 0 2 e+1``  2 + 10 + 16 = 28         none           2 + digits
P1000    ``- 602 E-1``         ``- 6.02 e+1``   2 + 900 + 16 = 918       1              3
B1999    ``-602 E-1``          ``-6.02 e+1``    1800 + 16 = 1816         2              2
FP15     ``-602E-1``           ``-6.02e+1``     1800 * 16 = 28800        2              1
=======  ====================  ==============  ========================  =============  =====================

**One idea.** A number is three integers: sign, mantissa and exponent. The four differ in which of
them, or which digits of the mantissa, make up one symbol (:attr:`Charton.fields`); a symbol that
holds several is a number in mixed radix.

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
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import decimals
from numtok.representations.base import Continuation, Mask, Spelled, SpelledOut

MAX_SYMBOLS = 2**16
MAX_DECADE = 10**6
SIGN, DIGIT, MANTISSA = "sign", "digit", "mantissa"
SIGNED, EXPONENT, WHOLE = "signed mantissa", "exponent", "whole number"

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Charton(SpelledOut):
    """What the four have in common."""

    digits: int = 3  # significant digits
    # the smallest and the largest power of ten of the first digit: (-7, 8) is 16 exponents, for
    # zero and 1e-7 <= abs(x) < 1e9
    decades: tuple[int, int] = (-7, 8)
    form: str = "integer"  # ``"integer"``, −602 and E-1, or ``"decimal"``, −6.02 and e+1
    overflow: str = "text"  # for numbers outside the decades
    bracketed: ClassVar[bool] = False
    shares_vocabulary: ClassVar[bool] = False
    positional: ClassVar[tuple[str, ...]] = ("digits",)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"form": ("integer", "decimal")}
    limits: ClassVar[Mapping[str, tuple[int, int]]] = {"digits": (1, 18)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decades[0] > self.decades[1]:
            raise self.refused(
                f"decades={self.decades} must be the smallest and the largest power of ten, such as"
                " (-7, 8)"
            )
        if max(map(abs, self.decades)) > MAX_DECADE:
            raise self.refused(f"decades={self.decades} must be within ±{MAX_DECADE:,}")
        if self.n_symbols > MAX_SYMBOLS:
            raise self.refused(
                f"{self.digits} digits and {self.n_exponents} exponents need {self.n_symbols:,}"
                f" symbols, more than {MAX_SYMBOLS:,}; take fewer digits, fewer decades, or p10"
            )

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """What each symbol of a number holds; fields of one kind have the same symbols."""

    @property
    def length(self) -> int:
        return len(self.fields)

    @property
    def n_exponents(self) -> int:
        """How many powers of ten there are."""
        return self.decades[1] - self.decades[0] + 1

    @property
    def n_mantissas(self) -> int:
        """Zero included."""
        return 9 * int(10 ** (self.digits - 1)) + 1

    @property
    def n_symbols(self) -> int:
        """How many symbols the alphabet has."""
        return sum(map(self._size, dict.fromkeys(self.fields)))

    @property
    def alphabet(self) -> tuple[str, ...]:
        return _alphabet(self)

    @property
    def first_symbols(self) -> range:
        return range(self._size(self.fields[0]))

    @property
    def exponent_of_zero(self) -> int:
        """As an index: the exponent 0, or the nearest to it."""
        low, high = self.decades
        shift = self.digits - 1 if self.form == "integer" else 0
        return min(max(shift, low), high) - low

    @property
    def symbol_values(self) -> tuple[tuple[str, float] | None, ...]:
        return tuple(map(_value, self.alphabet))

    def fits(self, numbers: Numbers) -> Mask:
        mantissa, decade = decimals.rounded(numbers, self.digits)
        low, high = self.decades
        return np.asarray((mantissa == 0) | ((decade >= low) & (decade <= high)))

    def encode(self, numbers: Numbers) -> Spelled:
        mantissa, decade = decimals.rounded(numbers, self.digits)
        low, high = self.decades
        largest = 10**self.digits - 1
        mantissa[(decade > high) & (mantissa > 0)] = largest
        mantissa[(decade < low) & (mantissa > 0)] = largest // 10 + 1
        exponent = decade.clip(low, high) - low
        exponent[mantissa == 0] = self.exponent_of_zero
        minus = numbers.negative.astype(np.int64)
        first, values = self._first(), self._values(minus, mantissa, exponent)
        symbols = memory.empty(len(minus) * self.length, np.uint16).reshape(-1, self.length)
        for place, (field, value) in enumerate(zip(self.fields, values, strict=True)):
            symbols[:, place] = first[field] + value
        return Spelled(symbols.reshape(-1), np.arange(len(numbers) + 1) * self.length)

    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        """Each number as text; symbols that are no number, such as a mantissa alone, as they are,
        one after the other.
        """
        whole = np.diff(spelled.offsets) == self.length
        rows = spelled.offsets[:-1][whole][:, None] + np.arange(self.length)
        minus, mantissa, exponent, valid = self._read(spelled.symbols[rows].astype(np.int64))
        values, offsets, exponent = decimals.split(
            mantissa, exponent + self.decades[0] - self.digits + 1
        )
        texts = Numbers.from_digits(minus, values, offsets, exponent).rows.array
        whole[whole] = valid
        if whole.all():
            return texts
        spoken = texts.filter(pa.array(valid)).to_pylist()[::-1]
        starts, symbols = spelled.offsets.tolist(), spelled.symbols.tolist()
        return pa.array(
            [
                spoken.pop() if good else "".join(self.alphabet[s] for s in symbols[first:last])
                for good, first, last in zip(whole.tolist(), starts[:-1], starts[1:], strict=True)
            ],
            pa.large_string(),
        )

    def continuation(self, grammar: Grammar) -> Continuation:
        """As :meth:`encode` spells: a mantissa that is not zero has no leading zeros, and zero has
        one exponent.
        """
        first = self._first()
        rules: dict[str, list[tuple[range, str]]] = {}
        known = False  # whether the symbols so far tell zero from other numbers
        for place, field in enumerate(self.fields):
            low, high = first[field], first[field] + self._size(field)
            zeros = low + {SIGN: 0, SIGNED: 2, WHOLE: 0, EXPONENT: 0}.get(field, 1)
            state = f"{place}" if place else "begin"
            last = place == self.length - 1
            other, zero = ("end", "end") if last else (f"{place + 1}", f"{place + 1} zero")
            if known:
                one = low + self.exponent_of_zero if field == EXPONENT else low
                rules[f"{state} zero"] = [(range(one, one + 1), zero)]
                rules[state] = [(range(low, high), other)]
            else:
                rules[state] = [(range(zeros, high), other)]
                if zeros > low:
                    rules[state].append((range(low, zeros), zero))
            known = known or zeros > low
        return Continuation.of(rules | {"end": []}, ["end"], self.n_symbols)

    def _size(self, field: str) -> int:
        """How many symbols a field has."""
        return {
            SIGN: 2,
            DIGIT: 10,
            MANTISSA: self.n_mantissas,
            SIGNED: 2 * self.n_mantissas,
            EXPONENT: self.n_exponents,
            WHOLE: 2 * (self.n_mantissas - 1) * self.n_exponents + 2,
        }[field]

    def _first(self) -> dict[str, int]:
        """The first symbol of each kind of field."""
        first, total = {}, 0
        for field in dict.fromkeys(self.fields):
            first[field] = total
            total += self._size(field)
        return first

    def _values(self, minus: Ints, mantissa: Ints, exponent: Ints) -> list[Ints]:
        """What each field holds, int64[n] each."""
        if DIGIT in self.fields:
            return [minus, *np.unravel_index(mantissa, (10,) * self.digits), exponent]
        rank = np.maximum(mantissa - self.n_mantissas // 9 + 1, 0)  # 0 for zero, 1 for the smallest
        if WHOLE in self.fields:
            whole = (exponent * (self.n_mantissas - 1) + rank) * (rank > 0)
            return [2 * whole + minus]
        return [minus, rank, exponent] if SIGN in self.fields else [2 * rank + minus, exponent]

    def _read(self, table: Ints) -> tuple[Mask, Ints, Ints, Mask]:
        """The inverse of :meth:`_values`, and whether each row is a number."""
        minus, mantissa, exponent = (np.zeros(len(table), np.int64) for _ in range(3))
        valid = np.ones(len(table), np.bool_)
        first = self._first()
        for place, field in enumerate(self.fields):
            value = table[:, place] - first[field]
            valid &= (value >= 0) & (value < self._size(field))
            if field in (SIGN, SIGNED, WHOLE):
                value, minus = value // 2, value % 2
            if field == WHOLE:
                exponent, value = np.divmod(value - 1, self.n_mantissas - 1)
                exponent, value = np.maximum(exponent, 0), (value + 1) * (table[:, place] > 1)
            if field == DIGIT:
                mantissa = 10 * mantissa + value
            elif field == EXPONENT:
                exponent = value
            elif field != SIGN:
                mantissa = np.where(value > 0, value + self.n_mantissas // 9 - 1, 0)
        return minus == 1, mantissa, exponent, valid


@dataclass(frozen=True)
class P10(Charton):
    """``- 6 0 2 E-1``: sign, digits one by one, exponent.

    Attributes:
        digits: significant digits, to which numbers are rounded, halves to even.
        decades: the smallest and the largest power of ten of the first digit: (-7, 8) holds zero
            and 1e-7 <= abs(x) < 1e9.
        form: ``"integer"``, −602 and E-1, or ``"decimal"``, −6.02 and e+1.
        overflow: for numbers outside the decades.
    """

    name: ClassVar[str] = "p10"

    @property
    def fields(self) -> tuple[str, ...]:
        return (SIGN, *[DIGIT] * self.digits, EXPONENT)


@dataclass(frozen=True)
class P1000(Charton):
    """``- 602 E-1``: sign, mantissa, exponent. Options as of :class:`numtok.P10`."""

    name: ClassVar[str] = "p1000"
    fields = (SIGN, MANTISSA, EXPONENT)


@dataclass(frozen=True)
class B1999(Charton):
    """``-602 E-1``: signed mantissa, exponent. Options as of :class:`numtok.P10`."""

    name: ClassVar[str] = "b1999"
    fields = (SIGNED, EXPONENT)


@dataclass(frozen=True)
class FP15(Charton):
    """``-602E-1``: the whole number in one token. Options as of :class:`numtok.P10`."""

    name: ClassVar[str] = "fp15"
    fields = (WHOLE,)


@functools.lru_cache(maxsize=16)
def _alphabet(encoding: Charton) -> tuple[str, ...]:
    """The symbols, field by field."""
    count, decimal = encoding.digits, encoding.form == "decimal"
    written = () if DIGIT in encoding.fields else (0, *range(10 ** (count - 1), 10**count))
    mantissas = [f"{m:0{count}d}" for m in written]
    if decimal:
        mantissas = [f"{text[0]}.{text[1:]}".rstrip(".") for text in mantissas]
    decades = range(encoding.decades[0], encoding.decades[1] + 1)
    exponents = [f"e{d:+d}" if decimal else f"E{d - count + 1}" for d in decades]
    signed = [sign + mantissa for mantissa in mantissas for sign in ("", "-")]
    symbols = {
        SIGN: ["+", "-"],
        DIGIT: list("0123456789"),
        MANTISSA: mantissas,
        SIGNED: signed,
        EXPONENT: exponents,
    }
    if WHOLE in encoding.fields:
        zeros = [zero + exponents[encoding.exponent_of_zero] for zero in signed[:2]]
        symbols[WHOLE] = [*zeros, *(m + exponent for exponent in exponents for m in signed[2:])]
    return tuple(one for field in dict.fromkeys(encoding.fields) for one in symbols[field])


def _value(symbol: str) -> tuple[str, float] | None:
    """Mantissas are compared with mantissas, exponents with exponents; a sign alone with nothing.

    ``-602E-1`` as a whole is a mantissa.
    """
    if symbol in "+-":
        return None
    if symbol[0] in "eE":
        return "exponents", float(symbol[1:])
    return "mantissas", float(Decimal(symbol))
