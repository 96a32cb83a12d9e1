"""The limits of representations: the last number that fits, the first that does not, and what it is
clipped to; and how near to a number what comes back of it is.
"""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    back, expected = back_of(kind, literal), Decimal(nearest)
    lossy = Fraction(51, 10**8) if isinstance(kind, LogFourier | ExponentBins) else 0
    assert abs(Fraction(back) - Fraction(expected)) <= lossy * abs(Fraction(expected))
    assert back.is_signed() == expected.is_signed()


def back_of(representation, literal):
    """The number that is decoded of a number."""
    encoded = representation.decode(representation.encode(Numbers.parse([literal])))
    numbers = Numbers.parse(encoded) if isinstance(representation, SpelledOut) else encoded
    (value,) = numbers.to_decimal()
    return value


BINS_OF_SIZES = ExponentBins(), ExponentBins(7, 0.5, 1e30), ExponentBins(30000, 1e-300, 1e300)
FAR = range(-499, 499)
ERRORS = [  # the relative error as the documentation states it, and the powers of the first digit
    *((one, one.relative_error * (1 + 1e-9), one.exact_digit_range) for one in BINS_OF_SIZES),
    *((LogFourier(count), 5.1e-7, FAR) for count in (2, 3, 8, 16)),
    *((kind(digits), 0.5 * 10 ** (1 - digits), range(-7, 8)) for kind in (P10, FP15) for digits in (2, 3)),
    (FloatDigits(), 0.0005, range(-9, 9)),
    *((FloatDigits(base, 7, 9), 0.5 * base**-8, range(-19, 19)) for base in (2, 3)),
    *((FloatDigits(base, 2, 5), 0.5 * base**-4, range(-14, 14)) for base in (7, 16, 36)),
    # half a unit in the last place of the float, and as much for its shortest decimal
    (FloatBits(), 2**-23, range(-37, 38)),
    (FloatBits(width=64), 2**-52, range(-307, 308)),
    (XVal(), 2**-23, range(-37, 38)),
    (XVal(0.01), 2**-22, range(-30, 30)),
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(("representation", "error", "powers"), ERRORS, ids=str)
def test_what_comes_back_is_as_near_as_it_says(representation, error, powers):
    written = st.builds(
        "{}{}.{}e{}".format,
        st.sampled_from(["", "-"]),
        st.integers(1, 9),
        st.text("0123456789", min_size=1, max_size=25),
        st.integers(powers.start, powers.stop - 1),
    )

    @given(written)
    def check(literal):
        assert representation.fits(Numbers.parse([literal])).all()
        back, exact = back_of(representation, literal), Fraction(literal)
        if not representation.carries_sign:
            exact = abs(exact)
        assert abs(Fraction(back) - exact) <= Fraction(error) * abs(exact)
        assert back.is_signed() == (exact < 0)

    check()
