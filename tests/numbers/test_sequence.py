"""``Numbers`` as a sequence of numbers, and as a table."""

from decimal import Decimal

import numpy as np
import pytest

import numtok
from numtok import Number, Numbers, scan

TEXTS = ["pi ≈ 3.14, not 22/7", None, "−5 °C on 2020-01-02", ""]


def test_each_number_has_its_surface_its_place_in_characters_and_its_value():
    numbers = scan(TEXTS)
    expected = [number for text in TEXTS if text for number in numtok.extract(text)]
    assert list(numbers) == expected == [numbers[k] for k in range(len(numbers))]
    assert numbers[0] == Number("3.14", 5, 9, Decimal("3.14"))
    assert numbers[-4] == numbers[np.int64(3)] == Number("−5", 0, 2, Decimal(-5))
    assert all(
        TEXTS[row][number.start : number.stop] == number.text
        for row, number in zip(numbers.document, numbers, strict=True)
    )


def test_some_numbers_by_slice_by_places_and_by_mask():
    numbers, mask = scan(TEXTS), np.arange(7) % 2 == 1
    for which in (slice(1, None, 2), [1, 3, 5], np.array([1, 3, 5]), np.array([1, 3, -2]), mask):
        assert numbers[which].text().to_pylist() == ["22", "−5", "01"]
    assert numbers.leave_out(~mask) == numbers[mask]
    assert isinstance(numbers[:0], Numbers) and len(numbers[:0]) == 0 and list(numbers[:0]) == []


def test_equal_are_the_same_numbers_written_alike_at_the_same_places():
    numbers = scan(TEXTS)
    assert numbers == scan(TEXTS) == numbers[np.arange(len(numbers))]
    for other in (
        ["pi ≈ 3.15, not 22/7", *TEXTS[1:]],
        [*TEXTS[::-1]],
        ["pi ≈  3.14, not 22/7", *TEXTS[1:]],
        ["pi ≈ 3.14, not 22 "],
    ):
        assert numbers != scan(other)
    assert scan(["-5"]) != scan(["−5"]) and scan(["+5"])[0].value == scan([".05"])[0].value * 100
    assert numbers != "numbers"


def test_repr_says_how_many_and_shows_the_first():
    assert repr(scan(TEXTS)) == "Numbers(7: 3.14, 22, 7, −5, 2020, ...)"
    assert repr(scan(["7 8"])) == "Numbers(2: 7, 8)" and repr(scan([])) == "Numbers(0)"
    assert len(repr(scan(["1" * 10_000]))) < 60


def test_as_a_table():
    pandas = pytest.importorskip("pandas")
    numbers = scan(["x", "1,234.50 and -0"])
    assert numbers.to_arrow().to_pydict() == {
        "document": [1, 1],
        "start": [0, 13],
        "stop": [8, 15],
        "text": ["1,234.50", "-0"],
        "canonical": ["1234.50", "-0"],
        "float64": [1234.5, -0.0],
    }
    frame = numbers.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["float64"].tolist() == [1234.5, 0.0]
    assert list(frame) == numbers.to_arrow().schema.names
