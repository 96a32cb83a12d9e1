"""XVal, FloatBits, PlaceValue and Subword, without a tokenizer: golden values, exact ranges, and
what happens just outside them.
"""

from __future__ import annotations

import struct
from decimal import Decimal
from fractions import Fraction
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
    END_NUM,
    NUM,
    REPRESENTATIONS,
    FloatBits,
    PlaceValue,
    SingleToken,
    Subword,
    XVal,
    check_combination,
    from_dict,
    parse,
)

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
MAX, TINY = (
    3.4028234663852886e38,
    1.401298464324817e-45,
)  # the largest and the smallest positive float32
# Half a unit in the last place further, a decimal rounds to infinity, and at half the smallest, to
# zero (ties to even).
FIRST_INFINITE = Fraction(2) ** 128 - Fraction(2) ** 103
LAST_ZERO = Fraction(1, 2**150)

literals = st.builds(
    lambda sign, digits, point, power: (
        f"{sign}{digits[:point]}{'.' if point < len(digits) else ''}{digits[point:]}e{power}"
    ),
    st.sampled_from(["", "-", "+"]),
    st.text("0123456789", min_size=1, max_size=30),
    st.integers(1, 30),
    st.integers(-60, 60),
)


def numbers_of(*surfaces: str) -> Numbers:
    return Numbers.parse(list(surfaces))


def fraction(surface: str) -> Fraction:
    return Fraction(Decimal(surface))


def fits_float32(surface: str) -> bool:
    """By exact arithmetic: neither rounds to infinity, nor to zero without being zero."""
    magnitude = abs(fraction(surface))
    return magnitude < FIRST_INFINITE and (magnitude == 0 or magnitude > LAST_ZERO)


def bits_of(representation: FloatBits, surface: str) -> str:
    column = representation.encode(numbers_of(surface))["number_bits"]
    return (
        f"{column[0].as_py():032b}"
        if representation.compact
        else "".join(map(str, column.to_numpy_ndarray()[0].tolist()))
    )


# Golden values
# ----------------------------------------------------------------------------------------------------------

GOLDEN_BITS = {
    "-28.5": "1 10000011 11001000000000000000000",
    "0": "0 00000000 00000000000000000000000",
    "-0": "1 00000000 00000000000000000000000",
    "1": "0 01111111 00000000000000000000000",
    "0.1": "0 01111011 10011001100110011001101",
    "70000": "0 10001111 00010001011100000000000",
    "2049": "0 10001010 00000000001000000000000",
    "1e-9": "0 01100001 00010010111000001011111",
    "1e-45": "0 00000000 00000000000000000000001",
    "3.4028234663852886e38": "0 11111110 11111111111111111111111",
}


@pytest.mark.parametrize(("surface", "bits"), GOLDEN_BITS.items())
@pytest.mark.parametrize("compact", [False, True])
def test_golden_bits(surface: str, bits: str, compact: bool) -> None:
    assert bits_of(FloatBits(compact=compact), surface) == bits.replace(" ", "")


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


def test_tokens() -> None:
    assert (NUM, END_NUM) == ("[NUM]", "[/NUM]")
    assert set("0123456789-+.eE") <= set(PlaceValue.alphabet)
    assert len(set(PlaceValue.alphabet)) == len(PlaceValue.alphabet)


# Inverses
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("representation", [XVal(), FloatBits(), FloatBits(compact=True)], ids=str)
@given(values=st.lists(FLOATS, max_size=20))
@example(values=[0.0, -0.0, MAX, -MAX, TINY, -TINY, 1.1754943508222875e-38, 70000.0, 2049.0, 0.0])
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


@pytest.mark.parametrize(
    "surface", ["70000", "1e-9", "2049", "0", "-0", "-3", "65504.5", "1234567"]
)
@pytest.mark.parametrize("representation", [XVal(), FloatBits(), FloatBits(compact=True)], ids=str)
def test_no_half_precision_on_the_way(representation: SingleToken, surface: str) -> None:
    """Through float16 these become infinite, zero or 2048; and zero is a number as any other, with
    its sign.
    """
    numbers = numbers_of(surface)
    assert representation.fits(numbers).tolist() == [True]
    back = representation.decode(representation.encode(numbers))
    assert back.format().to_pylist() == [surface]
    assert back.negative.tolist() == [surface.startswith("-")]


@pytest.mark.thorough
@given(surface=literals)
def test_the_value_is_the_nearest_float32(surface: str) -> None:
    """Rounded once, from the decimal; the oracle compares distances as fractions."""
    assume(fits_float32(surface))
    scaled = XVal().encode(numbers_of(surface))["number_scaled"].to_numpy()
    value = np.float32(scaled[0])
    exact = fraction(surface)
    distance = abs(Fraction(float(value)) - exact)
    for other in (
        np.nextafter(value, np.float32(np.inf)),
        np.nextafter(value, np.float32(-np.inf)),
    ):
        if np.isfinite(other):
            further = abs(Fraction(float(other)) - exact)
            assert distance < further or (
                distance == further and int(value.view(np.uint32)) % 2 == 0
            )
    assert (
        struct.unpack("<I", struct.pack("<f", value))[0]
        == FloatBits(compact=True).encode(numbers_of(surface))["number_bits"][0].as_py()
    )


@pytest.mark.thorough
@given(
    surface=st.from_regex(
        r"\A[-+]?([0-9]{1,3}(,[0-9]{3}){1,4}|[0-9]{1,40})(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?\Z",
        fullmatch=True,
    )
)
def test_place_values_spell_the_number_as_written(surface: str) -> None:
    numbers = numbers_of(surface)
    assert PlaceValue().fits(numbers).all()
    spelled = PlaceValue().encode(numbers)
    assert PlaceValue().decode(spelled).to_pylist() == [surface]
    # The digits, weighted by their places, add up to the number.
    assert spelled.stream is not None
    total = sum(
        int(character) * Fraction(10) ** (int(place) - 1 if place > 0 else int(place))
        for character, place in zip(surface, spelled.stream, strict=True)
        if place
    )
    assert total == abs(fraction(surface.replace(",", "")))
    assert all(
        (place != 0) <= character.isdigit()
        for character, place in zip(surface, spelled.stream, strict=True)
    )


# The edges of the range
# -------------------------------------------------------------------------------------------------

EDGES = [
    ("340282346638528859811704183484516925440", True),  # the largest float32
    ("340282356779733661637539395458142568447", True),  # the last that rounds to it
    ("340282356779733661637539395458142568448", False),  # half-way to the next: to even, infinity
    ("1e39", False),
    ("1e400", False),
    ("1e99999999999999999", False),
    ("1.4012984643248171e-45", True),
    ("7.006492321624086e-46", True),  # just above half the smallest
    ("7.006492321624085e-46", False),
    ("1e-60", False),
    ("1e-99999999999999999", False),
    ("0e400", True),
    ("0e-400", True),
    ("-0e99999999999999999", True),
    ("0.000", True),
]


@pytest.mark.parametrize(("surface", "fits"), EDGES)
@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("kind", [XVal, FloatBits])
def test_edges_of_float32(kind: Any, sign: str, surface: str, fits: bool) -> None:
    signed = f"{sign}{surface}".replace("--", "-")
    numbers = numbers_of(signed)
    assert kind().fits(numbers).tolist() == [fits]
    for overflow in ("text", "error"):
        assert kind(overflow=overflow).clipped(numbers).tolist() == [False]
    clipping = kind(overflow="clip")
    assert clipping.clipped(numbers).tolist() == [not fits]
    back = clipping.decode(clipping.encode(numbers)).to_float32()[0]
    assert np.signbit(back) == signed.startswith("-")
    if not fits:
        assert abs(float(back)) == (MAX if "-" not in surface else TINY)


@pytest.mark.thorough
@given(surface=literals)
def test_fits_float32(surface: str) -> None:
    numbers = numbers_of(surface)
    assert (
        XVal().fits(numbers).tolist()
        == FloatBits().fits(numbers).tolist()
        == [fits_float32(surface)]
    )


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


# Options
# ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"name": "nope"}, {"name": None}, {"scale": 1.0}])
def test_from_dict_without_a_known_name(options: dict[str, Any]) -> None:
    with pytest.raises(
        RepresentationError, match=r"unknown representation .*choose from xval, bits"
    ):
        from_dict(options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: XVal(scale=0.0), "scale=0.0 must be a positive, finite number"),
        (lambda: XVal(scale=-1.0), "scale=-1.0"),
        (lambda: XVal(scale=float("inf")), "scale=inf"),
        (lambda: XVal(scale=float("nan")), "scale=nan"),
        (lambda: XVal(clip=0.0), "clip=0.0 must be positive"),
        (lambda: XVal(clip=float("nan")), "clip=nan"),
        (
            lambda: XVal(overflow="drop"),
            "xval: overflow='drop' is unknown; use one of 'text', 'clip', 'error'",
        ),
        (lambda: FloatBits(overflow=""), "bits: overflow=''"),
        (lambda: PlaceValue(overflow="TEXT"), "place: overflow='TEXT'"),
    ],
)
def test_bad_options(make: Any, message: str) -> None:
    with pytest.raises(RepresentationError, match=message):
        make()


def test_parse() -> None:
    assert parse("xval,bits") == parse(" xval , bits,") == (XVal(), FloatBits())
    for name, kind in {
        "xval": XVal,
        "bits": FloatBits,
        "place": PlaceValue,
        "subword": Subword,
    }.items():
        assert parse(name) == (kind(),)
        assert REPRESENTATIONS[name] is kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no representation given; choose from xval, bits"),
        (" , ", "no representation given"),
        ("xvals", "unknown representation 'xvals'; choose from xval, bits"),
        ("XVal", "unknown representation 'XVal'"),
        ("xval,xval", "xval is given twice"),
        ("xval,place", "place stands alone; it cannot be combined with xval"),
        ("subword,bits,xval", "subword stands alone; it cannot be combined with bits, xval"),
        ("place,place", "place"),
    ],
)
def test_parse_errors(text: str, message: str) -> None:
    with pytest.raises(RepresentationError, match=message):
        parse(text)


def test_combinations() -> None:
    check_combination((XVal(), FloatBits()))
    for alone in (PlaceValue(), Subword()):
        check_combination((alone,))
        with pytest.raises(RepresentationError, match="stands alone"):
            check_combination((XVal(), alone))
    with pytest.raises(RepresentationError, match="xval is given twice"):
        check_combination((XVal(), XVal(scale=2.0)))
