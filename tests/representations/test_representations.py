"""XVal, FloatBits, PlaceValue and Subword, without a tokenizer: golden values, exact ranges, and
what happens just outside them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import numtok
from numtok import Grammar, Numbers
from numtok.errors import RepresentationError
from numtok.representations import (
    FloatBits,
    PlaceValue,
    SingleToken,
    XVal,
)

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
# the largest and the smallest positive float32
MAX, TINY = (
    3.4028234663852886e38,
    1.401298464324817e-45,
)
# Half a unit in the last place further, a decimal rounds to infinity, and at half the smallest, to
# zero (ties to even).


def numbers_of(*surfaces: str) -> Numbers:
    return Numbers.parse(list(surfaces))


# Golden values
# ----------------------------------------------------------------------------------------------------------

GOLDEN_PLACES = {
    "123.45": ("123.45", [3, 2, 1, 0, -1, -2]),
    "-60.2": ("-60.2", [0, 2, 1, 0, -1]),
    "1,234": ("1,234", [4, 0, 3, 2, 1]),
    "1,234,567.89": ("1,234,567.89", [7, 0, 6, 5, 4, 0, 3, 2, 1, 0, -1, -2]),
    "+5": ("+5", [0, 1]),
    "\u22125": ("-5", [0, 1]),
    "007": ("007", [3, 2, 1]),
    "0": ("0", [1]),
    "-0.0": ("-0.0", [0, 1, 0, -1]),
    ".5": (".5", [0, -1]),
    "1.5e3": ("1.5e3", [4, 0, 3, 0, 0]),
    "15E-3": ("15E-3", [-2, -3, 0, 0, 0]),
    "1.5e+10": ("1.5e+10", [11, 0, 10, 0, 0, 0, 0]),
    "2.e+3": ("2.e+3", [4, 0, 0, 0, 0]),
    "１２": ("12", [2, 1]),
}


@pytest.mark.parametrize(("surface", "expected"), GOLDEN_PLACES.items())
def test_golden_places(surface: str, expected: tuple[str, list[int]]) -> None:
    spelled = PlaceValue().encode(numbers_of(surface))
    assert PlaceValue().decode(spelled).to_pylist() == [expected[0]]
    assert spelled.stream is not None
    assert spelled.stream.dtype == np.int16
    assert spelled.stream.tolist() == expected[1]
    assert spelled.offsets.tolist() == [0, len(expected[0])]
    assert [
        (column.name, column.type, column.per) for column in PlaceValue().columns().values()
    ] == [("place_value", pa.int16(), "token")]


@pytest.mark.parametrize(
    ("grammar", "text", "spelled", "places"),
    [
        (Grammar(accounting=True), "(1,234)", "-1,234", [0, 4, 0, 3, 2, 1]),
        (Grammar(grouping="\u2009"), "1\u2009234", "1,234", [4, 0, 3, 2, 1]),
        (Grammar(grouping="\u2019"), "1\u2019234.5", "1,234.5", [4, 0, 3, 2, 1, 0, -1]),
        (Grammar(grouping="_"), "1_234", "1_234", [4, 0, 3, 2, 1]),
        (Grammar(grouping="'"), "1'234", "1'234", [4, 0, 3, 2, 1]),
        (Grammar(unicode_digits=True), "\u2212٤٢.٥", "-42.5", [0, 2, 1, 0, -1]),
    ],
)
def test_places_of_other_grammars(
    grammar: Grammar, text: str, spelled: str, places: list[int]
) -> None:
    got = PlaceValue().encode(numtok.scan([text], grammar))
    assert PlaceValue().decode(got).to_pylist() == [spelled]
    assert got.stream is not None
    assert got.stream.tolist() == places


# Inverses
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("representation", [XVal(), FloatBits(), FloatBits(compact=True)], ids=str)
@given(values=st.lists(FLOATS, max_size=20))
@example(values=[0.0, -0.0, MAX, -MAX, TINY, -TINY, 1.1754943508222875e-38, 0.0])
@example(values=[70000.0, 1e-9, 2049.0, -3.0, 65504.5, 1234567.0])  # float16 does not hold these
def test_every_float32_is_exact(representation: SingleToken, values: list[float]) -> None:
    """Bit for bit, the sign of zero included; the shortest decimal of a float32 reads back as that
    float32.
    """
    floats = np.array(values, np.float32)
    numbers = Numbers.parse(pa.array(floats, pa.float32()).cast(pa.large_string()))
    assert representation.fits(numbers).all()
    assert not representation.clipped(numbers).any()
    columns = representation.encode(numbers)
    assert {name: column.type for name, column in columns.items()} == {
        name: column.type for name, column in representation.columns().items()
    }
    back = representation.decode(columns)
    assert back.to_float32().view(np.uint32).tolist() == floats.view(np.uint32).tolist()
    again = representation.encode(back)
    assert all(again[name].equals(column) for name, column in columns.items())


# The edges of the range
# -------------------------------------------------------------------------------------------------


def test_edges_of_place_values() -> None:
    cases = {
        "1e32766": True,
        "1e32767": False,
        "12e32765": True,
        "12e32766": False,
        "1e-32767": True,
        "1e-32768": False,
        "1.5e-32766": True,
        "1.5e-32767": False,
        "1" * 32767: True,
        "1" * 32768: False,
        "0." + "1" * 32767: True,
        "0." + "1" * 32768: False,
        "1e99999999999999999": False,
    }
    for surface, fits in cases.items():
        numbers = numbers_of(surface)
        assert PlaceValue().fits(numbers).tolist() == [fits], surface[:30]
        assert PlaceValue(overflow="clip").clipped(numbers).tolist() == [not fits]
        spelled = PlaceValue(overflow="clip").encode(numbers)
        assert PlaceValue().decode(spelled).to_pylist() == [surface]
        assert spelled.stream is not None
        assert np.abs(spelled.stream.astype(int)).max() <= 32767
        mantissa = surface.split("e")[0].replace(".", "")
        first = len(surface.split("e")[0].split(".")[0]) + int(surface.partition("e")[2] or 0)
        expected = first if first > 0 else first - 1
        assert spelled.stream[0] == max(-32767, min(32767, expected)), surface[:30]
        assert np.count_nonzero(spelled.stream) == len(mantissa)


def test_scale() -> None:
    numbers = numbers_of("250", "-0", "0.5", "1e38")
    scaled = XVal(scale=0.01).encode(numbers)["number_scaled"].to_pylist()
    assert scaled == [2.5, -0.0, np.float32(0.005), np.float32(1e36)]
    assert str(scaled[1]) == "-0.0"
    assert XVal(scale=0.01).decode(
        {"number_scaled": pa.array(scaled, pa.float32())}
    ).format().to_pylist() == ["250", "-0", "0.5", "1e+38"]
    assert XVal(scale=1e-10).fits(numbers_of("1e40", "1e-40", "1e300", "0")).tolist() == [
        True,
        False,
        False,
        True,
    ]
    assert XVal(scale=1e10).fits(numbers_of("1e35", "1e-50", "-1e20")).tolist() == [
        False,
        True,
        True,
    ]


@pytest.mark.thorough
@given(value=FLOATS, scale=st.sampled_from([0.5, 2.0, 0.01, 1e-3, 3.0, 1e5]))
def test_scaling_keeps_all_but_the_last_bit(value: float, scale: float) -> None:
    assume(value == 0 or 1e-30 < abs(value) < 1e30)
    representation = XVal(scale=scale)
    back = representation.decode(representation.encode(Numbers.parse([repr(value)]))).to_float64()[
        0
    ]
    assert back == pytest.approx(value, rel=2**-22)
    assert np.signbit(back) == np.signbit(value)


def test_clip() -> None:
    numbers = numbers_of("5", "5.0001", "-7", "-5", "0", "1e400", "-1e400", "1e-60")
    clipping = XVal(clip=5.0, overflow="clip")
    assert clipping.encode(numbers)["number_scaled"].to_pylist()[:7] == [5, 5, -5, -5, 0, 5, -5]
    assert clipping.clipped(numbers).tolist() == [False, True, True, False, False, True, True, True]
    kept = XVal(clip=5.0)
    # A value beyond the clip is clipped, as the paper has it; one beyond float64, which no column
    # would hold, follows the overflow policy.
    assert kept.fits(numbers).tolist() == [True] * 5 + [False] * 3
    assert kept.fits(numbers_of("1e300", "-1e39")).all()
    assert kept.clipped(numbers_of("1e300", "-1e39", "2")).tolist() == [True, True, False]
    third = XVal(scale=1.0, clip=0.1)
    assert third.clipped(numbers_of("0.1")).tolist() == [False]  # 0.1 as float32 is the clip itself


# Decoding what a model gives
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "representation", [XVal(), XVal(scale=2.0), FloatBits(), FloatBits(compact=True)], ids=str
)
def test_what_is_no_number_is_refused(representation: SingleToken, value: float) -> None:
    floats = np.array([1.0, value], np.float32)
    column: Any = pa.array(floats)
    if isinstance(representation, FloatBits):
        words = floats.view(np.uint32)
        rows = np.array([[int(bit) for bit in f"{word:032b}"] for word in words], np.uint8)
        column = (
            pa.array(words)
            if representation.compact
            else pa.FixedShapeTensorArray.from_numpy_ndarray(rows)
        )
    with pytest.raises(RepresentationError, match=rf"{representation.name}: value 1 is {value}"):
        representation.decode({next(iter(representation.columns())): column})


def test_decoding_a_slice_of_a_tensor_column() -> None:
    columns = FloatBits().encode(numbers_of("1", "2", "3", "4"))
    assert FloatBits().decode(
        {"number_bits": columns["number_bits"].slice(1, 2)}
    ).format().to_pylist() == ["2", "3"]
