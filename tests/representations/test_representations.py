"""XVal, FloatBits, PlaceValue and Subword, without a tokenizer: golden values, exact ranges, and
what happens just outside them.
"""

from decimal import Decimal

import numpy as np
import pytest
from spelling import places, symbols

import numtok
from numtok import Grammar, Numbers
from numtok.representations import Digits, PlaceValue, XVal

# Golden values

PROSE = Grammar()
GOLDEN_PLACES = [
    (PROSE, "123.45", "123.45", [3, 2, 1, 0, -1, -2]),
    (PROSE, "-60.2", "-60.2", [0, 2, 1, 0, -1]),
    (PROSE, "1,234", "1,234", [4, 0, 3, 2, 1]),
    (PROSE, "1,234,567.89", "1,234,567.89", [7, 0, 6, 5, 4, 0, 3, 2, 1, 0, -1, -2]),
    (PROSE, "+5", "+5", [0, 1]),
    (PROSE, "\u22125", "-5", [0, 1]),
    (PROSE, "007", "007", [3, 2, 1]),
    (PROSE, "0", "0", [1]),
    (PROSE, "-0.0", "-0.0", [0, 1, 0, -1]),
    (PROSE, ".5", ".5", [0, -1]),
    (PROSE, "1.5e3", "1.5e3", [4, 0, 3, 0, 0]),
    (PROSE, "15E-3", "15E-3", [-2, -3, 0, 0, 0]),
    (PROSE, "1.5e+10", "1.5e+10", [11, 0, 10, 0, 0, 0, 0]),
    (PROSE, "2.e+3", "2.e+3", [4, 0, 0, 0, 0]),
    (PROSE, "１２", "12", [2, 1]),
    (Grammar(accounting=True), "(1,234)", "-1,234", [0, 4, 0, 3, 2, 1]),
    (Grammar(grouping="\u2009"), "1\u2009234", "1,234", [4, 0, 3, 2, 1]),
    (Grammar(grouping="\u2019"), "1\u2019234.5", "1,234.5", [4, 0, 3, 2, 1, 0, -1]),
    (Grammar(grouping="_"), "1_234", "1_234", [4, 0, 3, 2, 1]),
    (Grammar(grouping="'"), "1'234", "1'234", [4, 0, 3, 2, 1]),
    (Grammar(unicode_digits=True), "\u2212٤٢.٥", "-42.5", [0, 2, 1, 0, -1]),
]


@pytest.mark.parametrize(("grammar", "text", "spelled", "indices"), GOLDEN_PLACES)
def test_golden_places(grammar, text, spelled, indices):
    numbers = numtok.scan([text], grammar)
    for one in (PlaceValue(), Digits(1, places=True)):
        assert symbols(one, numbers) == [[*spelled]]
        assert places(one, numbers) == [indices]
        assert one.decode(one.encode(numbers)).to_pylist() == [spelled]
    stream = PlaceValue().encode(numbers).stream
    assert stream is not None and stream.dtype == np.int16


# The edges of the range


@pytest.mark.parametrize(
    ("surface", "fits", "first"),
    [
        ("1e32766", True, 32767),
        ("1e32767", False, 32767),
        ("12e32765", True, 32767),
        ("12e32766", False, 32767),
        ("1e-32767", True, -32767),
        ("1e-32768", False, -32767),
        ("0.5e-32766", True, -32766),
        ("1.5e-32767", False, -32767),
        ("1" * 32767, True, 32767),
        ("1" * 32768, False, 32767),
        ("0." + "1" * 32767, True, 1),
        ("0." + "1" * 32768, False, 1),
        ("1e99999999999999999", False, 32767),
    ],
    ids=lambda one: str(one)[:20],
)
def test_edges_of_place_values(surface, fits, first):
    numbers = Numbers.parse([surface])
    assert PlaceValue().fits(numbers).tolist() == [fits]
    clipping = PlaceValue(overflow="clip")
    assert clipping.clipped(numbers).tolist() == [not fits]
    assert clipping.decode(clipping.encode(numbers)).to_pylist() == [surface]
    (found,) = places(clipping, numbers)
    assert found[0] == first and max(map(abs, found)) <= 32767
    assert np.count_nonzero(found) == len(surface.split("e")[0].replace(".", ""))


def test_scale():
    numbers, xval = Numbers.parse(["250", "-0", "0.5", "1e38"]), XVal(scale=0.01)
    scaled = xval.encode(numbers)["number_scaled"]
    assert scaled.to_pylist() == [2.5, -0.0, np.float32(0.005), np.float32(1e36)]
    back = xval.decode({"number_scaled": scaled})
    assert back.format().to_pylist() == ["250", "-0", "0.5", "1e+38"]
    for scale, literal, fits in [
        (1e-10, "1e40", True),
        (1e-10, "1e-40", False),
        (1e-10, "1e300", False),
        (1e-10, "0", True),
        (1e10, "1e35", False),
        (1e10, "1e-50", True),
        (1e10, "-1e20", True),
    ]:
        assert XVal(scale=scale).fits(Numbers.parse([literal])).tolist() == [fits]


@pytest.mark.parametrize(
    ("scale", "literal"),
    [(1e30, "1.5e-45"), (1e30, "-2e-60"), (1e-30, "1e60"), (8.6269e-299, "1.7976931348623157e308")],
)
def test_decodes_numbers_that_float32_holds_only_when_they_are_scaled(scale, literal):
    numbers, xval = Numbers.parse([literal]), XVal(scale=scale)
    (back,) = xval.decode(xval.encode(numbers)).to_decimal()
    assert abs(back / Decimal(literal) - 1) < Decimal("2e-7")


def test_clip():
    numbers = Numbers.parse(["5", "5.0001", "-7", "-5", "0", "1e400", "-1e400", "1e-60"])
    clipping, kept = XVal(clip=5.0, overflow="clip"), XVal(clip=5.0)
    assert clipping.encode(numbers)["number_scaled"].to_pylist()[:7] == [5, 5, -5, -5, 0, 5, -5]
    assert clipping.clipped(numbers).tolist() == [False, True, True, False, False, True, True, True]
    # A value beyond the clip is clipped, as the paper has it; one beyond float64, which no column
    # would hold, follows the overflow policy.
    assert kept.fits(numbers).tolist() == [True] * 5 + [False] * 3
    large = Numbers.parse(["1e300", "-1e39", "2"])
    assert kept.fits(large).all() and kept.clipped(large).tolist() == [True, True, False]
    # 0.1 as float32 is the clip itself
    assert XVal(scale=1.0, clip=0.1).clipped(Numbers.parse(["0.1"])).tolist() == [False]


# Decoding what a model gives
