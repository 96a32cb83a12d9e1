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

**One idea**, :class:`Scientific`: a number is three integers, sign, mantissa and exponent, and as
many fields, each a symbol of an alphabet of its own. The four differ in which of the three, or
which digits of the mantissa, are one field; a field that holds several is a number in mixed radix.

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
import operator
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.numbers.automaton import Continuation, Language
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.representations import decimals
from numtok.representations.base import Mask, Spelled, SpelledOut, Symbols

MAX_SYMBOLS = 2**16
MAX_DECADE = 10**6
# ASCII that stands beside digits and changes none, but for the decimal mark, which is one of it
BESIDE_DIGITS = b",._' ()"
SIGN, DIGIT, MANTISSA = "sign", "digit", "mantissa"
SIGNED, EXPONENT, WHOLE = "signed mantissa", "exponent", "whole number"

Ints = npt.NDArray[np.int64]
IntOrInts = Any


class Scientific(SpelledOut):
    """Sign, mantissa and power of the first digit, in as many fields for every number."""

    bracketed: ClassVar[bool] = False
    shares_vocabulary = False
    base: int = 10

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """Kinds of the symbols of a number, in order. Fields of one kind have the same symbols."""

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Number of symbols of each kind of field, in the order of the alphabet."""

    @property
    @abstractmethod
    def precision(self) -> int:
        """Digits of the mantissa."""

    @property
    @abstractmethod
    def powers(self) -> tuple[int, int]:
        """The smallest and the largest power of the first digit."""

    @property
    def power_of_zero(self) -> int:
        """Power of the first digit that zero is written with, or the nearest one of ``powers``."""
        return 0

    @abstractmethod
    def forms(self) -> list[list[range]]:
        """Return the values that each field has in nonzero numbers; several such lists where one
        field depends on another.
        """

    @abstractmethod
    def pack(self, minus: IntOrInts, mantissa: IntOrInts, power: IntOrInts) -> list[IntOrInts]:
        """Return the values of the fields: of n numbers, int64[n] each, or of one number."""

    @abstractmethod
    def unpack(self, values: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
        """Return sign, mantissa and power of the values of the fields: inverse of :meth:`pack`."""

    @property
    def length(self) -> int:
        return len(self.fields)

    @property
    def n_symbols(self) -> int:
        """Number of symbols of the alphabet."""
        return sum(self.sizes.values())

    @property
    def first_symbols(self) -> range:
        return self._symbols(self.fields[0])

    def _symbols(self, field: str) -> range:
        """Return the symbols of a kind of field."""
        kinds = list(self.sizes)
        first = sum(self.sizes[kind] for kind in kinds[: kinds.index(field)])
        return range(first, first + self.sizes[field])

    def fits(self, numbers: Numbers) -> Mask:
        mantissa, power = self.rounded(numbers)
        low, high = self.powers
        return np.asarray((mantissa == 0) | ((power >= low) & (power <= high)))

    def encode(self, numbers: Numbers) -> Spelled:
        mantissa, power = self.rounded(numbers)
        (low, high), largest = self.powers, self.base**self.precision - 1
        mantissa[(power > high) & (mantissa > 0)] = largest
        mantissa[(power < low) & (mantissa > 0)] = largest // self.base + 1
        power = np.where(mantissa == 0, self.power_of_zero, power).clip(low, high)
        values = self.pack(numbers.negative.astype(np.int64), mantissa, power)
        symbols = memory.empty(len(numbers) * self.length, np.uint16).reshape(-1, self.length)
        for place, (first, value) in enumerate(zip(_first_symbols(self), values, strict=True)):
            symbols[:, place] = first + value
        return Spelled(symbols.reshape(-1), np.arange(len(numbers) + 1) * self.length)

    @property
    def exact_digit_range(self) -> range:
        low, high = self.powers
        return range(low, high if self.base == 10 else low)  # to round may add to the power

    def encode_one(self, written: bytes, decimal: str) -> Symbols | None:
        """Encode one number with Python's decimals, ten times as fast as :meth:`encode`."""
        if not written.isascii():
            return None
        plain = written.translate(None, BESIDE_DIGITS.replace(decimal.encode(), b""))
        plain = plain.lower().replace(b"d", b"e")  # of 1.5D+03
        context = _rounding(self.precision)
        number = context.create_decimal(plain.decode().replace(decimal, "."))
        minus, power = written[0] in b"-(", number.adjusted() if number else self.power_of_zero
        mantissa = abs(int(number.scaleb(self.precision - 1 - power, context)))
        values = self.pack(int(minus), mantissa, power)
        return np.array([*map(operator.add, _first_symbols(self), values)], np.uint16)

    def decode(self, spelled: Spelled) -> pa.LargeStringArray:
        """Decode symbols to the text of each number. Symbols that are no number, such as a mantissa
        alone, are returned as their strings, one after the other.
        """
        whole = np.diff(spelled.offsets) == self.length
        places = spelled.offsets[:-1][whole][:, None] + np.arange(self.length)
        table, ids_of_fields = (
            spelled.symbols[places].astype(np.int64),
            map(self._symbols, self.fields),
        )
        values, valid = [], np.ones(len(table), np.bool_)
        for symbols, field in zip(table.T, ids_of_fields, strict=True):
            valid &= (symbols >= field.start) & (symbols < field.stop)
            values.append(symbols - field.start)
        whole[whole] = valid
        texts = self.numbers(*self.unpack([one[valid] for one in values])).rows.array
        if whole.all():
            return texts
        spoken, rows = texts.to_pylist()[::-1], pairwise(spelled.offsets.tolist())
        return pa.array(
            [
                spoken.pop() if good else "".join(self.alphabet[s] for s in spelled.symbols[a:b])
                for good, (a, b) in zip(whole.tolist(), rows, strict=True)
            ],
            pa.large_string(),
        )

    def rounded(self, numbers: Numbers) -> tuple[Ints, Ints]:
        """Return (mantissa of ``precision`` digits or 0, power of its first digit), int64[n]."""
        return decimals.rounded(numbers, self.precision)

    def numbers(self, minus: Ints, mantissa: Ints, power: Ints) -> Numbers:
        """Return the numbers of a sign, a mantissa and the power of its first digit."""
        digits = decimals.split(mantissa, power - self.precision + 1)
        return Numbers.from_digits(minus == 1, *digits)

    def continuation(self, grammar: Grammar) -> Continuation:
        """Return the automaton of the sequences that :meth:`encode` writes: a nonzero mantissa has
        no leading zeros, and zero has one exponent. Negative numbers are left out where the grammar
        reads no signs.
        """
        language, ids_of_fields = Language(), [*map(self._symbols, self.fields)]
        zeros = self.encode(Numbers.parse(["0", "-0"])).symbols.reshape(2, -1).tolist()
        forms: list[list[Any]] = [[range(symbol, symbol + 1) for symbol in zero] for zero in zeros]
        for form in self.forms():
            forms.append([s[v.start : v.stop] for s, v in zip(ids_of_fields, form, strict=True)])
        if not grammar.signs:
            minus = {one for one, text in enumerate(self.alphabet) if text.startswith("-")}
            forms = [[tuple(s for s in first if s not in minus), *rest] for first, *rest in forms]
        parts = (language.then(*map(language.one, form)) for form in forms)
        return language.continuation(language.either(*parts), self.n_symbols)


@dataclass(frozen=True)
class Charton(Scientific):
    """Base of P10, P1000, B1999 and FP15. Their options are described at :class:`P10`."""

    digits: int = 3
    decades: tuple[int, int] = (-7, 8)
    form: str = "integer"
    overflow: str = "text"
    positional = ("digits",)
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
    def precision(self) -> int:
        return self.digits

    @property
    def powers(self) -> tuple[int, int]:
        return self.decades

    @property
    def power_of_zero(self) -> int:
        low, high = self.decades
        return min(max(self.digits - 1 if self.form == "integer" else 0, low), high)

    @property
    def n_exponents(self) -> int:
        """Number of powers of ten."""
        return self.decades[1] - self.decades[0] + 1

    @property
    def n_mantissas(self) -> int:
        """Zero included."""
        return 9 * int(10 ** (self.digits - 1)) + 1

    @property
    def sizes(self) -> dict[str, int]:
        sizes = {
            SIGN: 2,
            DIGIT: 10,
            MANTISSA: self.n_mantissas,
            SIGNED: 2 * self.n_mantissas,
            EXPONENT: self.n_exponents,
            WHOLE: 2 * (self.n_mantissas - 1) * self.n_exponents + 2,
        }
        return {field: sizes[field] for field in dict.fromkeys(self.fields)}

    @property
    def alphabet(self) -> tuple[str, ...]:
        return _alphabet(self)

    @property
    def symbol_values(self) -> tuple[tuple[str, float] | None, ...]:
        return tuple(map(_value, self.alphabet))

    def forms(self) -> list[list[range]]:
        """Return all values, from those of the smallest number on."""
        smallest = self.pack(*np.array([[0], [10 ** (self.digits - 1)], [self.decades[0]]]))
        sizes = [self.sizes[field] for field in self.fields]
        return [[range(int(one[0]), size) for one, size in zip(smallest, sizes, strict=True)]]

    def rank(self, mantissa: IntOrInts) -> IntOrInts:
        """Return the rank of a mantissa: 0 for zero, 1 for the smallest other mantissa."""
        return (mantissa > 0) * (mantissa - self.n_mantissas // 9 + 1)

    def mantissa(self, rank: Ints) -> Ints:
        """Return the mantissa of a rank: the inverse of :meth:`rank`."""
        return np.where(rank > 0, rank + self.n_mantissas // 9 - 1, 0)


@dataclass(frozen=True)
class P10(Charton):
    """``- 6 0 2 E-1``: sign, digits one by one, exponent.

    Attributes:
        digits: significant digits, to which numbers are rounded, halves to even.
        decades: the smallest and the largest power of ten of the first digit: (-7, 8) holds zero
            and 1e-7 <= abs(x) < 1e9.
        form: ``"integer"``, −602 and E-1, or ``"decimal"``, −6.02 and e+1.
        overflow: for numbers outside the decades.

    Example:
        >>> import numtok
        >>> p10 = numtok.P10()
        >>> encoded = p10.encode(numtok.Numbers.parse(["-60.2"]))
        >>> [p10.alphabet[symbol] for symbol in encoded.symbols]
        ['-', '6', '0', '2', 'E-1']
    """

    name = "p10"

    @property
    def fields(self) -> tuple[str, ...]:
        return (SIGN, *[DIGIT] * self.digits, EXPONENT)

    def pack(self, minus: IntOrInts, mantissa: IntOrInts, power: IntOrInts) -> list[IntOrInts]:
        return [minus, *in_base(mantissa, 10, self.digits), power - self.decades[0]]

    def unpack(self, values: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
        minus, *digits, exponent = values
        return minus, from_base(digits, 10), exponent + self.decades[0]


@dataclass(frozen=True)
class P1000(Charton):
    """``- 602 E-1``: sign, mantissa, exponent. Options as of :class:`numtok.P10`.

    Example:
        >>> import numtok
        >>> p1000 = numtok.P1000()
        >>> encoded = p1000.encode(numtok.Numbers.parse(["-60.2"]))
        >>> [p1000.alphabet[symbol] for symbol in encoded.symbols]
        ['-', '602', 'E-1']
    """

    name = "p1000"
    fields = (SIGN, MANTISSA, EXPONENT)

    def pack(self, minus: IntOrInts, mantissa: IntOrInts, power: IntOrInts) -> list[IntOrInts]:
        return [minus, self.rank(mantissa), power - self.decades[0]]

    def unpack(self, values: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
        minus, rank, exponent = values
        return minus, self.mantissa(rank), exponent + self.decades[0]


@dataclass(frozen=True)
class B1999(Charton):
    """``-602 E-1``: signed mantissa, exponent. Options as of :class:`numtok.P10`.

    Example:
        >>> import numtok
        >>> b1999 = numtok.B1999()
        >>> encoded = b1999.encode(numtok.Numbers.parse(["-60.2"]))
        >>> [b1999.alphabet[symbol] for symbol in encoded.symbols]
        ['-602', 'E-1']
    """

    name = "b1999"
    fields = (SIGNED, EXPONENT)

    def pack(self, minus: IntOrInts, mantissa: IntOrInts, power: IntOrInts) -> list[IntOrInts]:
        return [2 * self.rank(mantissa) + minus, power - self.decades[0]]

    def unpack(self, values: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
        signed, exponent = values
        return signed % 2, self.mantissa(signed // 2), exponent + self.decades[0]


@dataclass(frozen=True)
class FP15(Charton):
    """``-602E-1``: the whole number in one token. Options as of :class:`numtok.P10`.

    Example:
        >>> import numtok
        >>> fp15 = numtok.FP15()
        >>> encoded = fp15.encode(numtok.Numbers.parse(["-60.2"]))
        >>> [fp15.alphabet[symbol] for symbol in encoded.symbols]
        ['-602E-1']
    """

    name = "fp15"
    fields = (WHOLE,)

    def pack(self, minus: IntOrInts, mantissa: IntOrInts, power: IntOrInts) -> list[IntOrInts]:
        rank = self.rank(mantissa)
        whole = (power - self.decades[0]) * (self.n_mantissas - 1) + rank
        return [2 * (rank > 0) * whole + minus]

    def unpack(self, values: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
        minus, whole = values[0] % 2, values[0] // 2
        exponent, rank = np.divmod(np.maximum(whole - 1, 0), self.n_mantissas - 1)
        mantissa = self.mantissa(np.where(whole > 0, rank + 1, 0))
        return minus, mantissa, exponent + self.decades[0]


@functools.lru_cache(maxsize=16)
def _first_symbols(encoding: Scientific) -> tuple[int, ...]:
    """Return the first symbol of each field's kind."""
    return tuple(encoding._symbols(field).start for field in encoding.fields)


@functools.lru_cache(maxsize=16)
def _rounding(digits: int) -> Context:
    """Return a decimal context that rounds to so many significant digits, halves to even."""
    return Context(digits, ROUND_HALF_EVEN, MIN_EMIN, MAX_EMAX)


def in_base(values: IntOrInts, base: int, width: int) -> list[IntOrInts]:
    """Return the last ``width`` digits of int64[n] or of one number, most significant first."""
    return [values // base**k % base for k in reversed(range(width))]


def from_base(digits: Sequence[Ints], base: int) -> Ints:
    """Return the integers of digits: the inverse of :func:`in_base`."""
    return functools.reduce(lambda value, digit: value * base + digit, digits)


@functools.lru_cache(maxsize=16)
def _alphabet(encoding: Charton) -> tuple[str, ...]:
    """Return the symbols, field by field."""
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
        zero_at = encoding.power_of_zero - encoding.decades[0]
        zeros = [zero + exponents[zero_at] for zero in signed[:2]]
        symbols[WHOLE] = [*zeros, *(m + exponent for exponent in exponents for m in signed[2:])]
    return tuple(one for field in dict.fromkeys(encoding.fields) for one in symbols[field])


def _value(symbol: str) -> tuple[str, float] | None:
    """Return the kind and the value of a symbol: mantissas are compared with mantissas, exponents
    with exponents; a sign alone with nothing.

    ``-602E-1`` as a whole is a mantissa.
    """
    if symbol in "+-":
        return None
    if symbol[0] in "eE":
        return "exponents", float(symbol[1:])
    return "mantissas", float(Decimal(symbol))
