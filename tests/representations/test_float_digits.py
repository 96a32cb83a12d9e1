"""FloatDigits: golden values of RegressLM's own tests, bases, ranges, and what may follow what."""

import itertools
from decimal import Decimal

import pytest
from spelling import read, symbols

from numtok import FloatDigits, Grammar, Numbers
from numtok.testing import accepts


@pytest.mark.parametrize(
    ("literal", "written", "value"),
    [
        ("123.4", "+ E+ 2 1 2 3 4", "123.4"),
        ("12345", "+ E+ 4 1 2 3 4", "12340"),
        ("0.1234", "+ E- 1 1 2 3 4", "0.1234"),
        ("-123.4", "- E+ 2 1 2 3 4", "-123.4"),
        ("-0.1234", "- E- 1 1 2 3 4", "-0.1234"),
        ("1.234e-9", "+ E- 9 1 2 3 4", "0.000000001234"),
        ("-1.2e9", "- E+ 9 1 2 0 0", "-1200000000"),
        ("1.2345e9", "+ E+ 9 1 2 3 4", "1234000000"),
        ("1.234e10", "+ E+ 9 9 9 9 9", "9999000000"),
        ("-1.234e10", "- E+ 9 9 9 9 9", "-9999000000"),
        ("0", "+ E+ 0 0 0 0 0", "0"),
        ("1", "+ E+ 0 1 0 0 0", "1"),
        ("0.01", "+ E- 2 1 0 0 0", "0.01"),
        ("-1000", "- E+ 3 1 0 0 0", "-1000"),
    ],
)
def test_the_values_of_regress_lms_tests(literal, written, value):
    """There the sign of the exponent is ``+`` or ``-``, too."""
    one = FloatDigits(overflow="clip")
    assert symbols(one, [literal]) == [written.split()]
    (text,) = read(one, [written.split()])
    assert Decimal(text) == Decimal(value)


def test_other_bases_and_rounding():
    for one, literal, written in (
        (FloatDigits(2, 3, 4), "-28.5", "- E+ 1 0 0 1 1 1 0"),  # 1.110|01 · 2^4
        (FloatDigits(16, 1, 2), "255.5", "+ E+ 2 1 0"),  # ff.8, to even
        (FloatDigits(10, 2, 3), "9.996", "+ E+ 0 1 1 0 0"),
        (FloatDigits(12, 1, 2), "143", "+ E+ 1 11 11"),
        (FloatDigits(2, 3, 4), f"1.0625{'0' * 99}1", "+ E+ 0 0 0 1 0 0 1"),  # above 1.000|1
        (FloatDigits(overflow="clip"), "-1e-400", "- E- 9 1 0 0 0"),
        (FloatDigits(), "-0", "- E+ 0 0 0 0 0"),
    ):
        assert symbols(one, [literal]) == [written.split()]
    assert not FloatDigits(7, 2, 9).fits(Numbers.parse(["1" * 100_000])).any()
    (text,) = read(FloatDigits(12, 1, 2), [["-", "E-", "1", "11", "11"]])
    assert text.startswith("-0.993055555555555555555")
    nothing = ["+ E+ 1 2 3", "1 E+ 2 1 2 3 4", "+ + 2 1 2 3 4", "+ E+ + 1 2 3 4"]
    expected = [row.replace(" ", "") for row in nothing]
    assert read(FloatDigits(), [row.split() for row in nothing]) == expected


@pytest.mark.parametrize("one", [FloatDigits(2, 2, 1), FloatDigits(2, 1, 2), FloatDigits(3, 1, 1)])
def test_what_may_follow_is_what_is_spelled(one):
    """All sequences of the length of a number: those that may be written, and those that are what
    some number is spelled as.
    """
    rules = one.continuation(Grammar())
    sequences = [*itertools.product(range(len(one.alphabet)), repeat=one.length)]
    rows = [[one.alphabet[k] for k in ids] for ids in sequences]
    texts = read(one, rows)
    numbers = [k for k, row in enumerate(rows) if texts[k] != "".join(row)]
    spelled = symbols(one, [texts[k] for k in numbers])
    numbers = {k for k, row in zip(numbers, spelled, strict=True) if row == rows[k]}
    assert {k for k, ids in enumerate(sequences) if accepts(rules, list(ids))} == numbers
    exponents = 2 * one.powers[1] + 1
    mantissas = (one.base - 1) * one.base ** (one.mantissa_digits - 1)
    assert len(numbers) == 2 * (exponents * mantissas + 1)
