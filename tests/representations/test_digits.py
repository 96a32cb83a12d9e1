"""Digits in groups: how numbers are cut, that they come back as written, and the indices of the
groups' places.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import numtok
from numtok import Digits, Grammar, Numbers, PlaceValue
from numtok.representations import END_NUM, NUM, Representation

ALL = [Digits(1), Digits(2), Digits(3), Digits(2, "left"), Digits(3, "left")]
LITERALS = st.from_regex(
    r"[+-]?([0-9]{1,3}(,[0-9]{3}){1,3}|[0-9]{1,20})(\.[0-9]{1,10})?([eE][+-]?[0-9]{1,4})?|[+-]?\.[0-9]{1,9}",
    fullmatch=True,
)
EDGES = ["0", "-0", "+0", "0.000", "-0.0", "00", "000", "0000", ".5", "-.0005", "007", "2.e+3"]
EDGES += ["1e-1000", "1E+0012", "1,234,567.8901"]


def pieces(digits: Representation, numbers: Numbers) -> list[list[str]]:
    """The symbols of each number."""
    found = digits.encode(numbers)
    assert found is not None
    alphabet = np.array(digits.token_strings, object)
    return [
        alphabet[found.symbols[first:last]].tolist()
        for first, last in pairwise(found.offsets.tolist())
    ]


def cut(surface: str, group: int, align: str) -> list[str]:
    """The oracle: the runs of digits, each cut by itself."""
    runs: list[str] = []
    for character in surface:
        if runs and character.isdigit() and runs[-1].isdigit():
            runs[-1] += character
        else:
            runs.append(character)
    out: list[str] = []
    for at, run in enumerate(runs):
        from_left = align == "left" or (at > 0 and runs[at - 1] == ".")
        first = group if from_left or len(run) % group == 0 else len(run) % group
        out += [run[:first], *(run[k : k + group] for k in range(first, len(run), group))]
    return out


@pytest.mark.parametrize(
    ("surface", "threes", "from_left", "twos"),
    [
        ("1234567", "1 234 567", "123 456 7", "1 23 45 67"),
        ("1,234", "1 , 234", "1 , 234", "1 , 2 34"),
        ("-60.2", "- 60 . 2", "- 60 . 2", "- 60 . 2"),
        ("\u22125.1234567", "- 5 . 123 456 7", "- 5 . 123 456 7", "- 5 . 12 34 56 7"),
        ("0012", "0 012", "001 2", "00 12"),
        ("1.5e-1000", "1 . 5 e - 1 000", "1 . 5 e - 100 0", "1 . 5 e - 10 00"),
        ("１２３４", "1 234", "123 4", "12 34"),
    ],
)
def test_how_numbers_are_cut(surface: str, threes: str, from_left: str, twos: str) -> None:
    numbers = Numbers.parse([surface])
    for digits, expected in (
        (Digits(3), threes),
        (Digits(3, "left"), from_left),
        (Digits(2), twos),
    ):
        assert pieces(digits, numbers) == [expected.split()]
    assert pieces(Digits(1), numbers) == pieces(PlaceValue(), numbers)


@pytest.mark.parametrize(
    ("grammar", "text", "expected"),
    [
        (Grammar(accounting=True), "(1,234)", "- 1 , 234"),
        (Grammar(grouping="\u2009"), "1\u2009234", "1 , 234"),
        (Grammar(grouping="_"), "1_234.5678", "1 _ 234 . 567 8"),
        (Grammar(unicode_digits=True), "\u2212٤٢٤٢.٥", "- 4 242 . 5"),
    ],
)
def test_numbers_of_other_grammars(grammar: Grammar, text: str, expected: str) -> None:
    assert pieces(Digits(), numtok.scan([text], grammar)) == [expected.split()]


@pytest.mark.thorough
@settings(max_examples=examples(100, thorough=400))
@given(st.lists(LITERALS, max_size=6), st.sampled_from(ALL), st.booleans())
@example(EDGES, ALL[0], True)
@example(EDGES, ALL[2], True)
@example(EDGES, ALL[3], True)
def test_cut_as_the_oracle_does_and_read_back_as_written(
    surfaces: list[str], digits: Digits, places: bool
) -> None:
    numbers = Numbers.parse(surfaces)
    digits = Digits(digits.group, digits.align, places)
    assert digits.fits(numbers).all()
    assert pieces(digits, numbers) == [
        cut(surface, digits.group, digits.align) for surface in surfaces
    ]
    spelled = digits.encode(numbers)
    assert digits.decode(spelled).to_pylist() == surfaces
    assert digits.token_counts(numbers).tolist() == [
        2 + len(cut(surface, digits.group, digits.align)) for surface in surfaces
    ]
    assert (spelled.stream is not None) == places
    if digits.group == 1:
        place = PlaceValue().encode(numbers)
        assert place.stream is not None and spelled.symbols.tolist() == place.symbols.tolist()
        assert spelled.stream is None or spelled.stream.tolist() == place.stream.tolist()
        assert PlaceValue().decode(place).to_pylist() == surfaces
    if places:
        assert spelled.stream is not None and spelled.stream.dtype == np.int16
        values = [
            worth(symbols, own)
            for symbols, own in zip(
                pieces(digits, numbers), split(spelled.stream, spelled.offsets), strict=True
            )
        ]
        assert values == [abs(Fraction(value)) for value in numbers.to_decimal()]


def split(stream: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    return [stream[first:last].tolist() for first, last in pairwise(offsets.tolist())]


def worth(symbols: list[str], places: list[int]) -> Fraction:
    """What groups with a place add up to."""
    powers = [place - 1 if place > 0 else place for place in places]
    return sum(
        (
            int(symbol) * Fraction(10) ** power
            for symbol, power, place in zip(symbols, powers, places, strict=True)
            if place
        ),
        Fraction(0),
    )


def test_a_group_has_the_place_of_its_last_digit() -> None:
    spelled = Digits(places=True).encode(Numbers.parse(["1234567.8901", "1.5e3", "-5e-7"]))
    assert spelled.stream is not None
    assert split(spelled.stream, spelled.offsets) == [
        [7, 4, 1, 0, -3, -4],
        [4, 0, 3, 0, 0],
        [0, -7, 0, 0, 0],
    ]


@pytest.mark.parametrize("digits", [Digits(), Digits(1)])
def test_a_number_of_a_million_digits(digits: Digits) -> None:
    """Held in full, in linear time; with places, beyond 32,767 of them it follows ``overflow``, as
    PlaceValue does.
    """
    surface = "-" + "7" * 1_000_000 + "." + "8" * 1_000_000
    numbers = Numbers.parse([surface])
    assert digits.fits(numbers).all()
    spelled = digits.encode(numbers)
    assert len(spelled.symbols) == {1: 2_000_002, 3: 2 + 2 * 333_334}[digits.group]
    assert digits.decode(spelled).to_pylist() == [surface]
    for kept in (Digits(digits.group, places=True), PlaceValue()):
        assert not kept.fits(numbers).any()
    longest = Numbers.parse(["7" * 32_767, "7" * 32_768, "1e-32767", "1e-32768"])
    assert (
        Digits(digits.group, places=True).fits(longest).tolist()
        == PlaceValue().fits(longest).tolist()
        == [True, False, True, False]
    )
    clipping = Digits(digits.group, places=True, overflow="clip")
    assert clipping.clipped(numbers).all() and clipping.decode(
        clipping.encode(numbers)
    ).to_pylist() == [surface]


def test_symbols() -> None:
    for group, count in ((1, 10), (2, 110), (3, 1110)):
        alphabet = Digits(group).alphabet
        groups = {
            f"{value:0{width}d}" for width in range(1, group + 1) for value in range(10**width)
        }
        assert (
            len(groups) == count
            and set(alphabet) == groups | set("-+.eE,_'")
            and len(set(alphabet)) == len(alphabet)
        )
        own, shared, together = Digits(group).added_tokens(two_forms=True)
        assert (
            own == (NUM, f" {NUM}", END_NUM)
            and set(together) == groups
            and set(shared) == set("-+.eE,_'")
        )
    assert Digits(1).alphabet == PlaceValue().alphabet


def test_columns_are_there_if_asked_for() -> None:
    assert Digits().columns() == {} and Digits().token_column is None
    assert Digits(places=True).columns() == PlaceValue().columns()
    assert [column.type for column in Digits(places=True).columns().values()] == [pa.int16()]
