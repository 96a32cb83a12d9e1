"""Exact decimals and their conversions, held to rational arithmetic and to Python's own decimal."""

import decimal
import math
import random
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scanned import rows_of

import numtok
from numtok import Numbers

# ---- References, written from IEEE 754 and from the docstring of `format`


def rounded(value, significand_bits, smallest, largest):
    """``value`` rounded once to nearest even, in a format with subnormals: multiples of
    2**smallest, overflow at 2**largest.
    """
    sign = -1.0 if value.is_signed() else 1.0
    if not value or value.adjusted() < -400:
        return sign * 0.0
    if value.adjusted() > 400:
        return sign * math.inf
    magnitude = abs(Fraction(value))
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1  # now 2**exponent <= magnitude < 2**(exponent + 1)
    unit = max(exponent - significand_bits + 1, smallest)
    significand = round(magnitude / Fraction(2) ** unit)  # a Fraction rounds halves to even
    return sign * (
        math.inf if significand >= 2 ** (largest - unit) else math.ldexp(significand, unit)
    )


def canonical(value):
    """``format`` in the terms of the decimal module."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) + exponent  # digits before the decimal point
    if not value and exponent > 0:
        return "-0" if sign else "0"
    plain = point >= -5 and (exponent <= 0 or point <= 21)
    return f"{value:f}" if plain else f"{value:e}"


def bits(values):
    """The bit patterns, so that 0 and -0 differ."""
    return [int(value) for value in values.view(f"uint{values.itemsize * 8}")]


def check(literals):
    """Every conversion of every literal."""
    numbers, decimals = Numbers.parse(literals), [Decimal(literal) for literal in literals]
    exact = [value.as_tuple() for value in decimals]
    assert [value.as_tuple() for value in numbers.to_decimal()] == exact
    assert numbers.is_zero().tolist() == [not value for value in decimals]
    doubles = np.array([rounded(value, 53, -1074, 1024) for value in decimals], np.float64)
    singles = np.array([rounded(value, 24, -149, 128) for value in decimals], np.float32)
    assert bits(numbers.to_float64()) == bits(doubles)
    assert bits(numbers.to_float32()) == bits(singles)
    held = [
        bool(np.isfinite(single)) and bool(single or not value)
        for single, value in zip(singles, decimals, strict=True)
    ]
    assert numbers.fit_float32().tolist() == held
    formatted = numbers.format()
    formatted.validate(full=True)
    assert formatted.to_pylist() == [canonical(value) for value in decimals]
    again = Numbers.parse(formatted)
    assert again.to_decimal() == decimals
    assert again.negative.tolist() == numbers.negative.tolist()
    assert again.format().equals(formatted)


# ---- Hard cases

HARD_TEXT = """
# zeros, exponents, and what Clinger's fast path just holds or not
0 -0 0.0 -0.000 0e5 -0e5 000 0e-400 0e99999999999999999 0e-99999999999999999 0.0000000 1 -1 007
1.0 1.50 100 1e5 1e-5 1E+5 10e-1 0.1 0.3 123456789.123456789 1e22 1e23 9007199254740992
9007199254740993 9007199254740994 9007199254740991e22 9007199254740992e-22 700114000000000000000
700114000000000000014 700113999999999999999 -70011400000000000000000000001e-8 18446744073709551615
18446744073709551616 99999999999999999999 100000000000000000000 1e20 1e21 123e19 123e18 0.000001
0.0000001 0.00000012 0.0000010 0.00000100 12e-7 -0.00000012 1e400 -1e400 1e-400 -1e-400
.5 +0.50 -007.10 2.e+3 1.50e1 0.00000120 0.000000120 1234567890123456789012345 -0.00 0e-9
1e99999999999999 1e-99999999999999 31415926535897932384626433832795028841971693993751058209749445
0.271828182845904523536028747135266249775724709369995957496696
# float64: the largest, the boundary to infinity, the smallest normal, subnormals, half of the
# smallest
1.7976931348623157e308 1.7976931348623158e308 1.7976931348623159e308 1.797693134862315807e308
1.797693134862315808e308 2.2250738585072014e-308 2.2250738585072011e-308 4.9e-324
2.4703282292062327e-324 2.4703282292062328e-324 7.4e-324
# float32: the same
3.4028234663852886e38 3.4028235677973366e38 3.4028235677973367e38
340282356779733661637539395458142568447 340282356779733661637539395458142568448
340282356779733661637539395458142568449 -340282356779733661637539395458142568448
1.1754943508222875e-38 1.1754942807573643e-38 1.401298464324817e-45 7.006492321624085e-46
7.006492321624086e-46 2e-45 16777217 16777217.0000000000000000000000001
16777216.9999999999999999999999999 16777219 8388608.5 8388609.5 1.00000005960464477539
"""
HARD = [
    *" ".join(line for line in HARD_TEXT.splitlines() if line[:1] != "#").split(),
    "9" * 400,
    "0." + "0" * 400 + "1",
]


def test_hard_cases_together_and_alone():
    check(HARD)
    for literal in HARD:
        check([literal])
        assert float(Numbers.parse([literal]).to_float64()[0]) == float(literal)


def beside(value):
    """An exact decimal and two that differ from it far behind the last digit of any float."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    minus, whole = "-" if sign else "", int("".join(map(str, digits)))
    return [
        f"{minus}{whole}e{exponent}",
        f"{minus}{whole}{'0' * 30}1e{exponent - 31}",
        f"{minus}{whole - 1}{'9' * 31}e{exponent - 31}",
    ]


def test_halfway_between_two_float32():
    dice = random.Random(4)
    edges = [0, 1, 2, 0x007FFFFF, 0x00800000, 0x00FFFFFF, 0x7F7FFFFE, 0x7F7FFFFF]
    patterns = np.array([*edges, *(dice.randrange(0x7F800000) for _ in range(600))], np.uint32)
    below, above = ((patterns + k).view(np.float32).astype(np.float64) for k in (0, 1))
    above[np.isinf(above)] = 2.0**128
    # 25 significant bits: exact in float64, among subnormals and before infinity too
    middles = (below + above) / 2
    check([literal for middle in middles.tolist() for literal in beside(Decimal(middle))])
    check([f"{middle:.15e}" for middle in middles.tolist()])  # which float64 rounds to half-way


def test_more_digits_than_a_double_has():
    """What Clinger's fast path leaves: 16 to 21 digits, and powers of ten beyond its table; and
    halfway between two integers.
    """
    dice, some = random.Random(6), range(500)
    digits = [dice.randrange(10 ** dice.randrange(1, 22)) for _ in range(4000)]
    literals = [f"{one}e{dice.randrange(-150, 150)}" for one in digits]
    literals += [f"{dice.randrange(10**6)}.{dice.randrange(10**12):012}" for _ in some]
    literals += [str((dice.getrandbits(53) | 1) << dice.randrange(11)) for _ in some]
    halves = [(2 * dice.getrandbits(24) | 1 << 25 | 1) << dice.randrange(38) for _ in some]
    check([*literals, *(str(half | dice.getrandbits(1)) for half in halves)])


def test_halfway_between_two_float64():
    dice, last = random.Random(5), 0x7FEFFFFFFFFFFFFF
    patterns = [0, 1, 2, (1 << 52) - 1, 1 << 52, last - 1, last]
    patterns += [dice.randrange(0x7FF << 52) for _ in range(150)]
    literals = []
    for pattern in patterns:
        below, above = np.array([pattern, pattern + 1], np.uint64).view(np.float64).tolist()
        above = Fraction(2) ** 1024 if pattern == last else Fraction(above)
        middle = (Fraction(below) + above) / 2  # its denominator is a power of two: it ends
        places = middle.denominator.bit_length() - 1
        literals += beside(Decimal(middle.numerator * 5**places).scaleb(-places))
    check(literals)


def test_a_million_digits():
    digits, zeros = "".join(random.Random(6).choices("123456789", k=10**6)), "0" * 10**6
    literals = [digits, f"0.{digits}", f"-{digits}e-1000000"]
    literals += [f"{zeros}7", f"0.{zeros}7", f"1{zeros}"]
    begin = time.process_time()
    numbers = Numbers.parse(literals)
    first = float(f"0.{digits[:40]}")
    expected = [math.inf, first, -first, 7.0, 0.0, math.inf]
    assert numbers.to_float64().tolist() == expected
    assert numbers.to_float32().tolist() == np.array(expected, np.float32).tolist()
    values = numbers.to_decimal()
    assert values[0] == Decimal(digits)
    assert values[2].as_tuple() == Decimal(f"-0.{digits}").as_tuple()
    formatted = numbers.format().to_pylist()
    assert formatted[:5] == [digits, f"0.{digits}", f"-0.{digits}", "7", "7e-1000001"]
    assert Numbers.parse(formatted).to_decimal() == values
    assert time.process_time() - begin < 10


# ---- Decimals of all magnitudes


@st.composite
def literals(draw):
    digits = draw(st.text("0123456789", min_size=1, max_size=40))
    point = draw(st.integers(1, len(digits)))
    sign = draw(st.sampled_from(["", "-", "+"]))
    exponent = draw(
        st.none() | st.integers(-30, 30) | st.integers(-400, 400) | st.integers(-(10**16), 10**16)
    )
    fraction = f".{digits[point:]}" if digits[point:] else ""
    return f"{sign}{digits[:point]}{fraction}" + ("" if exponent is None else f"e{exponent}")


@pytest.mark.thorough
@settings(max_examples=examples(100, thorough=400))
@given(st.lists(literals(), max_size=20))
def test_all_conversions(given_literals):
    check(given_literals)


finite = {"allow_nan": False, "allow_infinity": False}


@pytest.mark.thorough
@settings(max_examples=examples(100, thorough=300))
@given(st.lists(st.decimals(**finite) | st.floats(**finite) | st.integers(), max_size=20))
@example([10**5000, -(10**5000) - 1])  # which Python does not print
def test_parse_takes_numbers_of_python(values):
    exact = [Decimal(repr(one)) if isinstance(one, float) else Decimal(one) for one in values]
    found = Numbers.parse(values)
    assert found.to_decimal() == exact
    assert found.negative.tolist() == [value.is_signed() for value in exact]
    floats = [value for value in values if isinstance(value, float)]
    assert bits(Numbers.parse(floats).to_float64()) == bits(np.array(floats, np.float64))


def test_value_with_the_digits_held():
    """``±digits × 10**exponent``, digits as written."""
    numbers = Numbers.parse(["-007.50e3", "1,234.5", ".5", "2.e+3", "٤٢"])
    digits = np.split(numbers.digits, numbers.digit_offsets[1:-1])
    assert ["".join(map(str, row)) for row in digits] == ["00750", "12345", "5", "2", "42"]
    assert numbers.exponent.tolist() == [1, -1, -1, 3, 0]
    assert numbers.negative.tolist() == [True, False, False, False, False]


LARGEST = 10**17 - 1  # the largest exponent that the grammar reads


@st.composite
def any_number(draw):
    """(negative, digits, exponent), with all the digits that `scan` can find and every exponent
    that goes with them.
    """
    digits = draw(st.lists(st.integers(0, 9), min_size=1, max_size=30))
    lowest = -LARGEST - len(digits)
    near = st.integers(lowest, lowest + 40) | st.integers(LARGEST - 40, LARGEST)
    exponents = st.integers(-40, 40) | near | st.integers(lowest, LARGEST)
    return draw(st.booleans()), digits, draw(exponents)


def numbers_of(rows):
    negative, digits, exponent = zip(*rows, strict=True)
    flat = np.array([digit for row in digits for digit in row], np.uint8)
    offsets = np.cumsum([0, *map(len, digits)])
    signs = np.array(negative, np.bool_)
    return Numbers.from_digits(signs, flat, offsets, np.array(exponent, np.int64))


@pytest.mark.thorough
@settings(max_examples=examples(100, thorough=400))
@given(st.lists(any_number(), min_size=1, max_size=20))
@example([(False, [1, 2, 3], LARGEST)])
@example([(True, [0, 1], -LARGEST - 1)])
@example([(False, [0, 0], -LARGEST - 1)])
def test_what_format_writes_scan_reads(rows):
    """The whole text is one number of the same value, and its canonical form is the same."""
    numbers = numbers_of(rows)
    written = numbers.format()
    read = numtok.scan(written)
    assert read.document.tolist() == list(range(len(rows)))
    assert read.start.tolist() == [0] * len(rows)
    assert read.stop.tolist() == [len(text) for text in written.to_pylist()]
    assert read.format().equals(written)
    for before, after in zip(numbers.to_decimal(), read.to_decimal(), strict=True):
        assert before.is_signed() == after.is_signed()
        assert before == after


def test_the_decimal_context_does_not_matter():
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = 3, 9, -9
        values = Numbers.parse(["123456789.123456789", "1e99999"]).to_decimal()
    assert values == [Decimal("123456789.123456789"), Decimal("1e99999")]


# ---- zero


def test_zero_minus_zero_and_nothing_are_different():
    numbers = numtok.scan(["0 and -0", None, "", "0.00 1"])
    assert numbers.is_zero().tolist() == [True, True, True, False]
    assert [str(value) for value in numbers.to_decimal()] == ["0", "-0", "0.00", "1"]
    for signs in (numbers.negative, *map(np.signbit, (numbers.to_float64(), numbers.to_float32()))):
        assert signs.tolist() == [False, True, False, False]
    assert numbers.per_document().tolist() == [0, 2, 2, 2, 4]
    assert numbers.per_document().dtype == np.int64
    assert numtok.scan([]).per_document().tolist() == [0]


# ---- select


@pytest.mark.thorough
@settings(max_examples=examples(100, thorough=400))
@given(st.lists(literals(), min_size=1, max_size=20), st.data())
def test_select_equals_a_loop(given_literals, data):
    """With floats that were made before, and with floats made after."""
    numbers = Numbers.parse(given_literals)
    which = data.draw(st.lists(st.integers(0, len(numbers) - 1), max_size=20))
    chosen, everything = numbers.select(np.array(which, np.int64)), rows_of(numbers)
    assert rows_of(chosen) == [everything[i] for i in which]
    for one in (chosen, numbers.select(np.array(which, np.int64))):
        assert [column.dtype for column in one.decimals] == [c.dtype for c in numbers.decimals]
        for name in ("to_float64", "to_float32", "fit_float32"):
            known, same = getattr(numbers, name)(), getattr(one, name)()
            assert same.tobytes() == known[which].tobytes() and not same.flags.writeable


# ---- parse


def test_parse_takes_arrow_arrays():
    array = pa.array(["9", "1,000", "-2.5", "7e3"])
    expected = ["9", "1000", "-2.5", "7E+3"]
    assert [str(value) for value in Numbers.parse(array).to_decimal()] == expected
    assert [str(value) for value in Numbers.parse(array[1:3]).to_decimal()] == ["1000", "-2.5"]
    assert len(Numbers.parse(pa.chunked_array([array, array]))) == 8
    assert len(Numbers.parse(array[:0])) == 0
