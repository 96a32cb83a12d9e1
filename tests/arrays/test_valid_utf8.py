"""Bytes are UTF-8 exactly where Python's own decoder says so, wherever they stand in a block."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from numtok.arrays.blocks import BLOCK
from numtok.arrays.valid_utf8 import is_utf8

EDGES = [
    0x00,
    0x7F,
    0x80,
    0x8F,
    0x90,
    0x9F,
    0xA0,
    0xBF,
    0xC0,
    0xC1,
    0xC2,
    0xDF,
    0xE0,
    0xE1,
    0xEC,
    0xED,
    0xEE,
    0xEF,
    0xF0,
    0xF1,
    0xF3,
    0xF4,
    0xF5,
    0xFF,
]


def by_python(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def ours(*rows: bytes) -> bool:
    return is_utf8(np.frombuffer(b"".join(rows), np.uint8), np.cumsum([0, *map(len, rows)]))


@pytest.mark.parametrize("before", [0, 61, 62, 63, BLOCK])
def test_every_short_sequence_of_edges(before: int) -> None:
    for length in (1, 2, 3):
        for found in itertools.product(EDGES, repeat=length):
            data = b"a" * before + bytes(found)
            assert ours(data) == by_python(data), data


characters = st.characters(codec="utf-8").map(str.encode)
pieces = st.one_of(
    characters,
    characters,
    st.lists(st.sampled_from(EDGES), min_size=1, max_size=4).map(bytes),
    st.just(b"a" * 62),
)


@given(
    rows=st.lists(st.lists(pieces, max_size=12).map(b"".join), min_size=1, max_size=4),
    spare=st.integers(0, 70),
)
@example(rows=[b"a" * 63 + "é".encode(), b""], spare=0)
@example(rows=["é".encode()[:1], "é".encode()[1:]], spare=0)  # a character over the edge of a row
def test_rows(rows: list[bytes], spare: int) -> None:
    expected = all(map(by_python, rows))
    assert ours(*rows) == expected
    offsets = spare + np.cumsum([0, *map(len, rows)])  # in the middle of a buffer
    assert (
        is_utf8(
            np.frombuffer(b"\xff" * spare + b"".join(rows) + b"\xff" * spare, np.uint8), offsets
        )
        == expected
    )
    array = pa.array(rows, pa.large_binary()).view(pa.large_string())
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        assert not expected
    else:
        assert expected


def test_offsets_that_do_not_fit() -> None:
    text = np.frombuffer(b"abc", np.uint8)
    assert is_utf8(text, np.array([0, 3]))
    for wrong in ([0, 4], [-1, 2], [0, 2, 1, 3], [2, 1], [0, 5, 3]):
        assert not is_utf8(text, np.array(wrong))
