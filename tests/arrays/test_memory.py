"""What is allocated and freed: whether the system has it again."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from numtok.arrays import memory

STATM = Path("/proc/self/statm")


def resident() -> int:
    """Pages."""
    return int(STATM.read_text().split()[1])


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim") or not STATM.exists(),
    reason="another C library, or no /proc",
)
def test_release_gives_back_what_the_c_library_keeps() -> None:
    pieces = [bytes([1]) * (1 << 16) for _ in range(1000)]
    full = resident()
    del pieces[:-1]  # the last one keeps those before it from being given back by themselves
    memory.release()
    assert full - resident() > 10_000
