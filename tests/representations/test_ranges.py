"""The edges of what representations hold: the last number that fits, the first that does not, and
what it is clipped to.
"""

from decimal import Decimal
from fractions import Fraction

import pytest

from numtok import Numbers
from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    ExponentBins,
    FloatBits,
    FloatDigits,
    FoNE,
    LogFourier,
    QuantileBins,
    SingleToken,
    SpelledOut,
    XVal,
    from_dict,
)

# literal, whether it fits, what is nearest
FLOAT32 = [
    ("340282346638528859811704183484516925440", True, "3.4028235e38"),  # the largest float32
    ("340282356779733661637539395458142568447", True, "3.4028235e38"),  # the last that rounds to it
    ("340282356779733661637539395458142568448", False, "3.4028235e38"),  # half-way to infinity
    ("1e39", False, "3.4028235e38"),
    ("-1e400", False, "-3.4028235e38"),
    ("1e99999999999999999", False, "3.4028235e38"),
    ("1.4012984643248171e-45", True, "1e-45"),
    ("7.006492321624086e-46", True, "1e-45"),  # just above half the smallest
    ("7.006492321624085e-46", False, "1e-45"),
    ("-1e-60", False, "-1e-45"),
    ("1e-99999999999999999", False, "1e-45"),
    ("0e400", True, "0"),
    ("0e-400", True, "0"),
    ("-0e99999999999999999", True, "-0"),
    ("0.000", True, "0"),
]
FLOAT64 = [
    (f"{2**1024 - 2**970 - 1}", True, "1.7976931348623157e308"),  # the last that rounds to it
    (f"{2**1024 - 2**970}", False, "1.7976931348623157e308"),  # half-way to infinity
    ("-1e400", False, "-1.7976931348623157e308"),
    (f"{5**1075}1e-1076", True, "5e-324"),
    (f"{5**1075}e-1075", False, "5e-324"),  # half the smallest
    (f"-{5**1075}e-1075", False, "-5e-324"),
    ("1e-400", False, "5e-324"),
    ("-0.0", True, "-0"),
]
FONE = [
    ("999.99", True, "999.99"),
    ("000999.9900", True, "999.99"),
    ("1e2", True, "100"),
    ("1000", False, "999.99"),
    ("1e99999999999999999", False, "999.99"),
    ("0.001", False, "0"),
    ("1e-99999999999999999", False, "0"),
    ("0.005", False, "0"),
    ("0.0050000000000000000000001", False, "0.01"),
    ("0.015", False, "0.02"),
    ("0.995", False, "1"),
    ("999.995", False, "999.99"),
    ("999.994999", False, "999.99"),
    ("0e99", True, "0"),
    ("-12.30", True, "12.3"),
]
CHARTON = [
    ("1e-7", True, "1e-7"),
    ("0.000000099950", True, "1e-7"),
    ("0.0000000999499", False, "1e-7"),
    ("1e-99999999999999999", False, "1e-7"),
    ("999000000", True, "9.99e8"),
    ("999499999.9", True, "9.99e8"),
    ("-999500000", False, "-9.99e8"),
    ("-1e99999999999999999", False, "-9.99e8"),
    ("0e99", True, "0"),
    ("-0", True, "-0"),
]
LOG_FOURIER = [
    ("1e-499", True, "1e-499"),
    ("9.99e-500", False, "1e-499"),
    ("-1e-99999999999999999", False, "-1e-499"),
    ("9.999999e498", True, "9.999999e498"),
    ("1e499", False, "1e499"),
    ("-1e99999999999999999", False, "-1e499"),
]
BINS = [  # the middle of the bin
    ("0.0001", True, "0.0001059253725"),
    ("0.00009999", False, "0.0001059253725"),
    ("1e-400", False, "0.0001059253725"),
    ("1000000", True, "944060.8763"),
    ("1000000.5", False, "944060.8763"),
    ("-1e400", False, "944060.8763"),
    ("0", True, "0"),
]
DECIMAL_DIGITS = [
    ("1e-9", True, "1e-9"),
    ("9.9994e-10", False, "1e-9"),
    ("9.9999e-10", True, "1e-9"),
    ("9999499999", True, "9.999e9"),
    ("9999500000", False, "9.999e9"),
    ("-0", True, "-0"),
    ("1e999999", False, "9.999e9"),
]
BINARY_DIGITS = [
    ("0.0078125", True, "0.0078125"),
    ("0.0075", False, "0.0078125"),
    ("247", True, "240"),
    ("248", False, "240"),
    ("1e5000", False, "240"),
]
QUANTILES = [
    ("-3", True, "-3"),
    ("-1e400", False, "-3"),
    ("100", True, "100"),
    ("101", False, "100"),
]
clip = {"overflow": "clip"}
CASES = [
    *((kind, *row) for kind in (XVal(**clip), FloatBits(**clip)) for row in FLOAT32),
    *((FoNE(3, 2, **clip), *row) for row in FONE),
    *((kind(**clip), *row) for kind in (P10, P1000, B1999, FP15) for row in CHARTON),
    *((LogFourier(**clip), *row) for row in LOG_FOURIER),
    *((ExponentBins(**clip), *row) for row in BINS),
    *((FloatBits(width=64, compact=one, **clip), *row) for one in (False, True) for row in FLOAT64),
    *((FloatDigits(**clip), *row) for row in DECIMAL_DIGITS),
    *((FloatDigits(2, 3, 4, **clip), *row) for row in BINARY_DIGITS),
    *((QuantileBins(5, True, (-3.0, 0.0, 1.5, 100.0), **clip), *row) for row in QUANTILES),
]


@pytest.mark.parametrize(
    ("kind", "literal", "fits", "nearest"), CASES, ids=lambda one: str(one)[:40]
)
def test_the_edges_of_the_range(kind, literal, fits, nearest):
    numbers = Numbers.parse([literal])
    assert kind.fits(numbers).tolist() == [fits]
    assert kind.clipped(numbers).tolist() == [not fits]
    assert not from_dict(kind.to_dict() | {"overflow": "text"}).clipped(numbers).any()
    if isinstance(kind, SpelledOut):
        (back,) = Numbers.parse(kind.decode(kind.encode(numbers))).to_decimal()
    else:
        assert isinstance(kind, SingleToken)
        (back,) = kind.decode(kind.encode(numbers)).to_decimal()
    expected = Decimal(nearest)
    lossy = Fraction(51, 10**8) if isinstance(kind, LogFourier | ExponentBins) else 0
    assert abs(Fraction(back) - Fraction(expected)) <= lossy * abs(Fraction(expected))
    assert back.is_signed() == expected.is_signed()
