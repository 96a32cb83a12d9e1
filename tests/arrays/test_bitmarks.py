"""Marks and copies of bytes many at a time are those of a loop over single bytes."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from numtok.arrays.bitmarks import BLOCK, byte_ranges, copy_block, marks_of
from numtok.arrays.kernels import kernel


@kernel
def _copy(text, at, out, to):
    copy_block(text, at, out, to)


bounds = st.tuples(st.integers(0, 255), st.integers(0, 255)).map(lambda edges: sorted(edges))
blocks = st.binary(min_size=BLOCK + 9, max_size=BLOCK + 9).map(
    lambda data: np.frombuffer(data, "u1")
)


@given(st.binary(max_size=300), st.lists(bounds, min_size=1, max_size=3))
@example(b"7" * 128, [[0x30, 0x39]])
@example(bytes(range(251)) * 17 + b"7", [[0x30, 0x39]])  # more than a chunk
def test_which_bytes_are_marked(data, ranges):
    marks = marks_of(np.frombuffer(data, np.uint8), byte_ranges(*map(tuple, ranges)))
    expected = [any(low <= byte <= high for low, high in ranges) for byte in data]
    bits = np.unpackbits(marks.view(np.uint8), bitorder="little")
    assert len(marks) == len(data) // 64 + 2
    assert bits.tolist() == expected + [False] * (len(bits) - len(data))


@given(text=blocks, at=st.integers(0, 9).map(np.uint64), to=st.integers(0, 9).map(np.uint64))
def test_a_copied_block(text, at, to):
    out = np.zeros(BLOCK + 9, np.uint8)
    _copy(text, at, out, to)
    copied = text[int(at) : int(at) + BLOCK].tobytes()
    assert out.tobytes() == bytes(int(to)) + copied + bytes(9 - int(to))
