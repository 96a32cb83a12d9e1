"""Check what is allocated and freed: whether the system has it again."""

import ctypes

import pyarrow as pa
import pytest

from numtok.arrays import memory


@pytest.mark.skipif(
    memory.resident() is None or not hasattr(ctypes.CDLL(None), "malloc_trim"),
    reason="another C library, or no /proc",
)
def test_release_gives_back_what_the_c_library_keeps():
    pieces = [bytes([1]) * (1 << 16) for _ in range(1000)]
    full = memory.resident()
    del pieces[:-1]  # the last one keeps those before it from being given back by themselves
    memory.release()
    assert full - memory.resident() > 40_000_000


@pytest.mark.parametrize("name", ["int8", "uint16", "int32", "uint64", "float16", "float64"])
def test_arrow_types_are_numpy_types_without_pandas(name):
    kind = getattr(pa, name)()
    assert memory.dtype_of(kind) == kind.to_pandas_dtype()
