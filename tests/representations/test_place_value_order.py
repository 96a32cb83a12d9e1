"""PlaceValue: the indices of places, digits in both orders, and random offsets."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from spelling import SURFACE, places, symbols

from numtok import Grammar, Numbers
from numtok.numbers.scan import scan
from numtok.representations import Digits, PlaceValue


def spelled(place, numbers):
    """The characters and the indices of each number."""
    characters = map("".join, symbols(place, numbers))
    return list(zip(characters, places(place, numbers), strict=True))


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
    numbers = scan([text], grammar)
    for one in (PlaceValue(), Digits(1, places=True)):
        assert symbols(one, numbers) == [[*spelled]]
        assert places(one, numbers) == [indices]
        assert one.decode(one.encode(numbers)).to_pylist() == [spelled]
    stream = PlaceValue().encode(numbers).stream
    assert stream is not None and stream.dtype == np.int16


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


@given(st.lists(st.from_regex(SURFACE, fullmatch=True), max_size=6))
@example(["-123.45e6", "+1,234", "007", ".5", "2.e+3", "１２"])
def test_least_significant_digit_first(literals):
    """The mantissa backwards, each digit with its index, between the sign and the exponent."""
    numbers = Numbers.parse(literals)
    orders = (spelled(PlaceValue(order=order), numbers) for order in ("msd", "lsd"))
    for (text, indices), (written, moved) in zip(*orders, strict=True):
        first, last = text[0] in "+-", re.search("[eE]|$", text).start()
        assert written == text[:first] + text[first:last][::-1] + text[last:]
        assert moved == indices[:first] + indices[first:last][::-1] + indices[last:]


def test_accounts_are_written_with_a_minus_in_front():
    numbers = scan(["(1,234)"], Grammar(accounting=True))
    assert spelled(PlaceValue(order="lsd"), numbers) == [("-432,1", [0, 1, 2, 3, 0, 4])]


TEXTS = [f"{k} plus {k * k} is {k + k * k}.5" for k in range(400)]


def offsets_of(place, texts):
    """The offset of each document, from its first number; all its digits must agree."""
    numbers = scan(texts)
    plain, moved = PlaceValue().encode(numbers), place.encode(numbers)
    assert plain.stream is not None and moved.stream is not None
    assert ((plain.stream == 0) == (moved.stream == 0)).all(), "0 stays what is not a digit"
    assert (np.sign(plain.stream) == np.sign(moved.stream)).all()
    distance = np.abs(moved.stream.astype(int)) - np.abs(plain.stream)
    of_symbol = np.repeat(numbers.document, np.diff(plain.offsets))
    found = []
    for document in range(len(texts)):
        here = distance[(of_symbol == document) & (plain.stream != 0)]
        assert len(set(here.tolist())) == 1
        found.append(int(here[0]))
    return found


def test_every_document_has_its_own_offset():
    """One offset for a whole batch is a mistake that has been made."""
    offsets = offsets_of(PlaceValue(max_offset=9), TEXTS)
    assert set(offsets) == set(range(10))
    counts = np.bincount(offsets)
    assert counts.min() > 15 and counts.max() < 75


def test_offsets_do_not_depend_on_the_batch():
    place = PlaceValue(max_offset=100, seed=5)
    whole = offsets_of(place, TEXTS)
    assert offsets_of(place, TEXTS[100:150]) == whole[100:150]
    assert offsets_of(place, TEXTS[::-1]) == whole[::-1]
    assert offsets_of(PlaceValue(max_offset=100, seed=6), TEXTS) != whole


def test_offsets_leave_room_for_the_largest():
    place = PlaceValue(max_offset=1000, overflow="clip")
    numbers = Numbers.parse(["1e31766", "1e31767", "1e-31767", "1e-31768"])
    assert place.fits(numbers).tolist() == [True, False, True, False]
    assert all(abs(index) <= 32767 for row in places(place, numbers) for index in row)
