"""Blocks of bytes in vector instructions do what the Python beside them says."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from numtok.arrays.blocks import BLOCK, bytes_between, copy_block
from numtok.arrays.kernels import kernel

between, copied = bytes_between.function, copy_block.function


@kernel
def _between(text, at, low, high, out):  # type: ignore[no-untyped-def]
    out[0] = bytes_between(text, at, low, high)


@kernel
def _copy(text, at, out, to):  # type: ignore[no-untyped-def]
    copy_block(text, at, out, to)


def buffer(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8)


blocks = st.binary(min_size=BLOCK + 9, max_size=BLOCK + 9).map(buffer)
bounds = st.tuples(st.integers(0, 255), st.integers(0, 255)).map(sorted)
places = st.integers(0, 9).map(np.uint64)


@given(text=blocks, at=places, edges=bounds)
def test_which_bytes_lie_between(text: Any, at: np.uint64, edges: list[int]) -> None:
    low, high = map(np.uint8, edges)
    out = np.zeros(1, np.uint64)
    _between(text, at, low, high, out)
    expected = sum(1 << k for k in range(BLOCK) if edges[0] <= text[int(at) + k] <= edges[1])
    assert int(out[0]) == int(between(text, at, low, high)) == expected


@given(text=blocks, at=places, to=places)
def test_a_copied_block(text: Any, at: np.uint64, to: np.uint64) -> None:
    ours, theirs = np.zeros(BLOCK + 9, np.uint8), np.zeros(BLOCK + 9, np.uint8)
    _copy(text, at, ours, to)
    copied(text, at, theirs, to)
    assert (
        ours.tobytes()
        == theirs.tobytes()
        == bytes(int(to)) + text[int(at) : int(at) + BLOCK].tobytes() + bytes(9 - int(to))
    )
