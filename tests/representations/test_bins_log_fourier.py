"""ExponentBins and LogFourier: the stated error bounds, at the edges too."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spelling import column_values

from numtok import Numbers
from numtok.representations import ExponentBins, LogFourier, QuantileBins

EDGES = (-3.0, 2.75, 1000.0)


@pytest.mark.parametrize(
    ("bins", "literals", "held"),
    [
        (
            QuantileBins(edges=EDGES),
            ["999", "1000", "1001", "1e400", "-3.5"],
            "999 1000 1000 1000 -3",
        ),
        (QuantileBins(edges=EDGES, soft=True), ["999", "1001", "-9"], "999 1000 -3"),
        (
            ExponentBins(),
            ["999999", "1e6", "1e7", "1e400", "1e-9", "0"],
            "999999 1e6 1e6 1e6 1e-4 0",
        ),
    ],
)
def test_what_is_beyond_all_bins_becomes_their_edge(bins, literals, held):
    """So a number that a head predicts beyond the last edge is not written as a smaller one."""
    found = bins.clip_to_representable(Numbers.parse(literals)).to_decimal()
    assert found == [*map(Decimal, held.split())]


def decoded(representation, literals):
    return representation.decode(representation.encode(Numbers.parse(literals))).to_decimal()


def relative_error(got, literal):
    return float(abs(Fraction(got) - Fraction(literal)) / abs(Fraction(literal)))


# ---- ExponentBins


def test_bins_are_half_open_and_high_is_in_the_last():
    bins = ExponentBins(2, 1.0, 100.0)
    assert bins.edges.tolist() == [1.0, 10.0, 100.0]
    literals = ["0", "-0.00", "1", "9.99", "10", "10.0000000000000000000001", "100", "-100"]
    assert column_values(bins, literals) == [0, 0, 1, 1, 2, 2, 2, 2]
    assert decoded(bins, ["0"]) == [0] and not bins.carries_sign
    np.testing.assert_allclose(bins.centres, [0, 10**0.5, 10**1.5])
    with localcontext(prec=2):
        assert ExponentBins(200, 1e-4, 1e6).relative_error == pytest.approx(10 ** (1 / 40) - 1)
    default, exact = ExponentBins(), Context(prec=30)
    for k in (1, 57, 200):
        power = exact.power(10, Decimal(k) / 20)
        assert default.edges[k] == float(exact.multiply(Decimal(default.low), power))


# ---- LogFourier


@pytest.mark.thorough
@pytest.mark.parametrize("frequencies", [2, 8])
def test_log_fourier_is_exact_for_seven_digits(frequencies):
    fourier = LogFourier(frequencies)

    @given(st.integers(-(10**7) + 1, 10**7 - 1), st.integers(-490, 490))
    def check(mantissa, power):
        numbers = Numbers.parse([f"{mantissa}e{power}"])
        assert fourier.decode(fourier.encode(numbers)).to_decimal() == numbers.to_decimal()

    check()


def test_log_fourier_features_are_the_definition():
    fourier = LogFourier(4)
    np.testing.assert_allclose(fourier.periods, [1000, 100, 10, 1])
    features = column_values(fourier, ["-200", "0.001", "0", "-0"])
    for found, magnitude, sign in ((features[0], 200, -1), (features[1], 0.001, 1)):
        turns = np.log10(magnitude) / fourier.periods * 2 * np.pi
        expected = [[sign, 0], *zip(np.cos(turns), np.sin(turns), strict=True)]
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert features[2].tolist() == [[1, 1], [0, 0], [0, 0], [0, 0], [0, 0]]
    assert features[3].tolist() == [[-1, 1], [0, 0], [0, 0], [0, 0], [0, 0]]


def test_log_fourier_through_float16():
    fourier, mantissas = LogFourier(8), (1, -2.5, 9.99, 3.14159)
    literals = [f"{one}e{power}" for one in mantissas for power in range(-400, 400, 7)]
    narrow = column_values(fourier, literals).astype(np.float16).astype(np.float32)
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(narrow)
    got = fourier.decode({"number_log_fourier": column}).to_decimal()
    assert max(map(relative_error, got, literals)) < 1e-3
