"""Memory for large arrays, from Arrow's pool.

Arrow's allocator keeps freed memory for the next batch, where NumPy's gives arrays of this size
back to the system every time: touching fresh pages then takes longer than filling them (measured:
24 times, for 12 MB). Arrays made here go into record batches without a copy.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SMALL = 1 << 12  # bytes; below, NumPy is the quicker one to ask
MOST_KEPT = 1 << 24  # bytes of one array; larger ones come from Arrow's pool every time
# bytes of text; what freed memory of such a size keeps from the system is more than the time to
# touch it anew is worth
LONG = 1 << 26
_PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def empty(count: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Allocate an array, like ``numpy.empty``."""
    kind = np.dtype(kind)
    if count * kind.itemsize < SMALL:
        return np.empty(count, kind)
    return np.frombuffer(pa.allocate_buffer(int(count) * kind.itemsize), kind)


def release() -> None:
    """Give the system back what is allocated but not used, of Arrow's pool and of the C library:
    before a long wait, as what comes next is slower.
    """
    pa.default_memory_pool().release_unused()
    # of glibc; Arrow's pool of the system's memory does not call it
    with contextlib.suppress(AttributeError, TypeError):  # TypeError: Windows, which wants a name
        ctypes.CDLL(None).malloc_trim(0)


def resident() -> int | None:
    """Return how many bytes of memory the process has; None where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        return None
    return int(pages) * mmap.PAGESIZE


def trim_memory(nbytes: int) -> None:
    """Call :func:`release` if so many bytes of text were worked on that it matters: a batch is that
    large if it is a long document.
    """
    if nbytes > LONG:
        release()


def to_arrow(values: npt.NDArray[Any]) -> pa.Array:
    """Convert a vector of numbers or booleans to Arrow, like ``pa.array``, without a copy of
    numbers.

    That function imports pandas, which takes longer than all of numtok.
    """
    data = (
        np.packbits(values, bitorder="little")
        if values.dtype == np.bool_
        else np.ascontiguousarray(values)
    )
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(data)]
    )


def dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    """Return NumPy's type for integers, floats or truths. Arrow's own way needs pandas before
    version 26.
    """
    if pa.types.is_boolean(kind):
        return np.dtype(np.bool_)
    letter = (
        "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    )
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def from_arrow(array: pa.Array) -> npt.NDArray[Any]:
    """Convert to NumPy, like ``np.asarray``, without a copy and read-only where there are numbers
    and no nulls.

    Arrow's own way imports pandas here too.
    """
    kind = array.type
    if pa.types.is_boolean(kind) and not array.null_count and len(array):
        bits = np.frombuffer(array.buffers()[1], np.uint8)
        return np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[
            array.offset :
        ].view(np.bool_)
    if array.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.asarray(array)
    width = dtype_of(kind)
    if not len(array):
        return np.empty(0, width)
    return np.frombuffer(array.buffers()[1], width, len(array), array.offset * width.itemsize)


def list_array(
    values: Any,
    offsets: npt.NDArray[np.int64],
    kind: pa.DataType,
    valid: npt.NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Return rows ``values[offsets[r]:offsets[r + 1]]`` as lists; those not valid are null."""
    if not isinstance(values, pa.Array):
        values = to_arrow(values)
        values = values if values.type.equals(kind.value_type) else values.cast(kind.value_type)
    large = pa.types.is_large_list(kind)
    edges = to_arrow(offsets if large else offsets.astype(np.int32))
    mask = None if valid is None or valid.all() else to_arrow(~valid)
    array_type = pa.LargeListArray if large else pa.ListArray
    return array_type.from_arrays(edges, values, type=kind, mask=mask)


def flat(column: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return (values, offsets from 0) of a list column or a slice: the inverse of
    :func:`list_array`.
    """
    offsets = from_arrow(column.offsets).astype(np.int64)
    return column.values.slice(offsets[0], offsets[-1] - offsets[0]), offsets - offsets[0]


class Scratch(threading.local):
    """Memory for arrays that are not needed after a call, kept for the next one: pages that were
    touched before cost nothing.

    Each thread has its own, so ``scratch.empty`` under one name gives the same memory every time,
    until a larger array is asked for.
    """

    def __init__(self) -> None:
        self._kept: dict[str, npt.NDArray[np.uint8]] = {}

    def empty(self, name: str, count: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
        """Allocate an array, like ``numpy.empty``. It overwrites the array returned before under
        this name.
        """
        size = int(count) * np.dtype(kind).itemsize
        if size > MOST_KEPT:
            return empty(count, kind)
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            kept = self._kept[name] = empty(size, np.uint8)
        return kept[:size].view(kind)


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with plain strings and bytes in place of views, whose rows Arrow cannot select.

    >>> words = pa.array(["a"], pa.string_view())
    >>> without_views(pa.record_batch({"words": words})).schema.types
    [DataType(large_string)]
    """
    schema = pa.schema([_without_views(field) for field in batch.schema], batch.schema.metadata)
    if schema == batch.schema:
        return batch
    columns = [column.cast(kind) for column, kind in zip(batch, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _without_views(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_dictionary(kind):
        values = _PLAIN.get(kind.value_type, kind.value_type)
        return field.with_type(pa.dictionary(kind.index_type, values, kind.ordered))
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_without_views(part) for part in kind]))
    if pa.types.is_fixed_size_list(kind):
        return field.with_type(pa.list_(_without_views(kind.value_field), kind.list_size))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return field.with_type(make(_without_views(kind.value_field)))
    return field.with_type(_PLAIN.get(kind, kind))


def full(count: int, value: Any, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """Allocate a filled array, like ``numpy.full``."""
    array = empty(count, kind)
    array.fill(value)
    return array


def offsets_of(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return int64[n + 1]: 0 and the running sum of the lengths."""
    offsets = empty(len(lengths) + 1, np.int64)
    offsets[0] = 0
    np.cumsum(lengths, out=offsets[1:])
    return offsets
