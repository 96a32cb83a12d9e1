"""Digits in groups: how numbers are cut, that they come back as written, and the indices of the
groups' places.
"""

from fractions import Fraction

import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from spelling import SURFACE, places, symbols

from numtok import Digits, Numbers, PlaceValue
from numtok.representations import END_NUM, NUM

ALL = [Digits(1), Digits(2), Digits(3), Digits(2, "left"), Digits(3, "left")]
SURFACES = st.from_regex(SURFACE, fullmatch=True)
EDGES = ["0", "-0", "+0", "0.000", "-0.0", "00", "000", "0000", ".5", "-.0005", "007", "2.e+3"]
EDGES += ["1e-1000", "1E+0012", "1,234,567.8901"]


def cut(surface, group, align):
    """The oracle: the runs of digits, each cut by itself."""
    runs = []
    for character in surface:
        if runs and character.isdigit() and runs[-1].isdigit():
            runs[-1] += character
        else:
            runs.append(character)
    out = []
    for at, run in enumerate(runs):
        from_left = align == "left" or (at > 0 and runs[at - 1] == ".")
        first = group if from_left or len(run) % group == 0 else len(run) % group
        out += [run[:first], *(run[k : k + group] for k in range(first, len(run), group))]
    return out


@pytest.mark.parametrize(
    ("surface", "threes", "from_left", "twos"),
    [
        ("1234567", "1 234 567", "123 456 7", "1 23 45 67"),
        ("\u22125.1234567", "- 5 . 123 456 7", "- 5 . 123 456 7", "- 5 . 12 34 56 7"),
        ("１２３４", "1 234", "123 4", "12 34"),
    ],
)
def test_how_numbers_are_cut(surface, threes, from_left, twos):
    assert symbols(Digits(3), [surface]) == [threes.split()]
    assert symbols(Digits(3, "left"), [surface]) == [from_left.split()]
    assert symbols(Digits(2), [surface]) == [twos.split()]


@pytest.mark.thorough
@settings(max_examples=examples(100, thorough=400))
@given(st.lists(SURFACES, max_size=6), st.sampled_from(ALL), st.booleans())
@example(EDGES, ALL[0], True)
@example(EDGES, ALL[2], True)
@example(EDGES, ALL[3], True)
def test_cut_as_the_oracle_does_and_read_back_as_written(surfaces, digits, has_places):
    numbers = Numbers.parse(surfaces)
    digits = Digits(digits.group, digits.align, has_places)
    assert digits.fits(numbers).all()
    expected = [cut(surface, digits.group, digits.align) for surface in surfaces]
    assert symbols(digits, numbers) == expected
    spelled = digits.encode(numbers)
    assert digits.decode(spelled).to_pylist() == surfaces
    assert digits.token_counts(numbers).tolist() == [2 + len(row) for row in expected]
    if digits.group == 1:
        place = PlaceValue().encode(numbers)
        assert place.stream is not None and spelled.symbols.tolist() == place.symbols.tolist()
        assert not has_places or places(digits, numbers) == places(PlaceValue(), numbers)
        assert PlaceValue().decode(place).to_pylist() == surfaces
    if has_places:
        found = map(worth, expected, places(digits, numbers))
        assert list(found) == [abs(Fraction(value)) for value in numbers.to_decimal()]
    else:
        assert spelled.stream is None


def worth(symbols, places):
    """What groups with a place add up to."""
    powers = [place - 1 if place > 0 else place for place in places]
    rows = zip(symbols, powers, places, strict=True)
    return sum(
        (int(one) * Fraction(10) ** power for one, power, place in rows if place), Fraction()
    )


def test_a_group_has_the_place_of_its_last_digit():
    expected = [[7, 4, 1, 0, -3, -4], [4, 0, 3, 0, 0], [0, -7, 0, 0, 0]]
    assert places(Digits(places=True), ["1234567.8901", "1.5e3", "-5e-7"]) == expected


@pytest.mark.parametrize("digits", [Digits(), Digits(1)])
def test_a_number_of_a_million_digits(digits):
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
    clipping = Digits(digits.group, places=True, overflow="clip")
    assert clipping.clipped(numbers).all()
    assert clipping.decode(clipping.encode(numbers)).to_pylist() == [surface]


@pytest.mark.parametrize(("group", "count"), [(1, 10), (2, 110), (3, 1110)])
def test_symbols(group, count):
    widths = range(1, group + 1)
    groups = {f"{value:0{width}d}" for width in widths for value in range(10**width)}
    alphabet = Digits(group).alphabet
    assert len(groups) == count and sorted(alphabet) == sorted(groups | set("-+.eE,_'"))
    own, shared, together = Digits(group).added_tokens(two_forms=True)
    assert own == (NUM, f" {NUM}", END_NUM)
    assert set(together) == groups and set(shared) == set("-+.eE,_'")
    assert Digits(1).alphabet == PlaceValue().alphabet
