"""Columns of tensors as pages of Parquet: the bits or the sines of every number, a list of lists of
the same length.

Parquet says of each single value where its list and its row begin. Arrow counts that out value by
value, which takes longer than all else that is done to a text; where all lists have the same
length, it is a pattern. The bytes that come out are an ordinary column chunk, with data pages of
version 1.

In: a column of lists of ``fixed_size_list``. Out: the bytes of its chunk, and what the row group
    says of it. Small integers are stored as 1, 4 or 8 bits each, places in the dictionary 0, 1, 2,
    ...; floats as they are. https://github.com/apache/parquet-format/blob/master/Encodings.md
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.write import thrift
from numtok.corpus.write.thrift import Struct
from numtok.tokenizer.schema import flat

Bytes = npt.NDArray[np.uint8]
PAGE_BYTES = 1 << 21  # of values, about; a page is read as a whole
CODECS = {"none": 0, "snappy": 1, "gzip": 2, "zstd": 6, "lz4": 7}
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_PHYSICAL = {pa.uint8(): 1, pa.float32(): 4}  # INT32, FLOAT
_BEGIN = 4  # bytes in front
LEVELS = (2, 5)  # how deep a value lies in lists, and in what may be null
_ALL_THERE = 5  # definition level of a value; 0 is a null row, 1 an empty one


class Chunk(NamedTuple):
    """A column chunk: its bytes, and what the row group says of it, as if they stood in a file
    behind its ``PAR1``.
    """

    data: bytes
    described: Struct


class Entries(NamedTuple):
    """What one level of lists holds in order: tensors, and rows without any.

    Attributes:
        begins: bool[n], whether a row begins here.
        level: int[n], the definition level; where it is not that of a tensor, there is none.
    """

    begins: npt.NDArray[np.bool_]
    level: npt.NDArray[np.uint8]


def is_tensor(kind: pa.DataType) -> bool:
    """Whether the columns of this type can be written here."""
    inner: Any = getattr(kind, "value_type", None)
    if not (
        pa.types.is_list(kind) or pa.types.is_large_list(kind)
    ) or not pa.types.is_fixed_size_list(inner):
        return False
    return inner.value_type in _PHYSICAL and inner.list_size > 1


def tensor_chunk(
    columns: list[pa.Array], path: str, compression: str, level: int | None
) -> Chunk | None:
    """The chunk of one column, in pieces; None if it has what only Arrow writes: nulls within, or
    something below null rows.
    """
    parts = [_entries(column) for column in columns]
    values = [flat(column)[0] for column in columns]
    if any(part is None for part in parts) or any(
        value.null_count or value.flatten().null_count for value in values
    ):
        return None
    entries = Entries(
        *(
            np.concatenate(arrays)
            for arrays in zip(*(part for part in parts if part is not None), strict=True)
        )
    )
    kind = values[0].type
    flattened = [memory.from_arrow(value.flatten()) for value in values]
    tensors = (flattened[0] if len(flattened) == 1 else np.concatenate(flattened)).reshape(
        -1, kind.list_size
    )
    codec = (
        None
        if compression == "none"
        else pa.Codec("lz4_raw" if compression == "lz4" else compression, level)
    )
    bits = _bits(tensors)
    pages = _Pages(codec)
    if bits:
        pages.add(_DICTIONARY_PAGE, 1 << bits, np.arange(1 << bits, dtype=np.int32).tobytes())
    for some, page in _cut(entries, tensors):
        body = b"".join(
            (
                _levels(_repetition(some, kind.list_size)),
                _levels(_definition(some, kind.list_size)),
                _encoded(page, bits),
            )
        )
        pages.add(
            _DATA_PAGE, _count(some, kind.list_size), body, _RLE_DICTIONARY if bits else _PLAIN
        )
    return Chunk(
        b"".join(pages.data),
        pages.described(_PHYSICAL[kind.value_type], path, CODECS[compression], bits > 0),
    )


def _entries(column: pa.Array) -> Entries | None:
    """Of one piece; None if there is something below a null row."""
    _, offsets = flat(column)
    lengths = np.diff(offsets)
    valid = (
        memory.from_arrow(column.is_valid())
        if column.null_count
        else np.ones(len(column), np.bool_)
    )
    if lengths[~valid].any():
        return None
    counts = np.maximum(lengths, 1)
    begins = np.zeros(int(counts.sum()), np.bool_)
    starts = np.cumsum(counts) - counts
    begins[starts] = True
    level = np.full(len(begins), _ALL_THERE, np.uint8)
    level[starts[lengths == 0]] = valid[lengths == 0]
    return Entries(begins, level)


def _cut(entries: Entries, tensors: npt.NDArray[Any]) -> Iterator[tuple[Entries, npt.NDArray[Any]]]:
    """The entries of each page, with their tensors."""
    each = max(1, PAGE_BYTES // (tensors.shape[1] * tensors.itemsize))
    done = 0
    for start in range(0, len(entries.level), each):
        some = Entries(entries.begins[start : start + each], entries.level[start : start + each])
        count = int(np.count_nonzero(some.level == _ALL_THERE))
        yield some, tensors[done : done + count]
        done += count


def _count(entries: Entries, each: int) -> int:
    """How many values there are, rows without any counted as one."""
    there = int(np.count_nonzero(entries.level == _ALL_THERE))
    return there * each + len(entries.level) - there


def _repetition(entries: Entries, each: int) -> bytes:
    """Runs of levels: 0 where a row begins, 1 where a tensor does, 2 within."""
    within = np.frombuffer(thrift.varint(each - 1 << 1) + bytes((2,)), np.uint8)
    runs = np.empty((len(entries.level), 2 + len(within)), np.uint8)
    runs[:, 0], runs[:, 1] = 1 << 1, ~entries.begins
    runs[:, 2:] = within
    there = entries.level == _ALL_THERE
    if not there.all():
        kept = np.ones(runs.shape, np.bool_)
        kept[:, 2:] = there[:, np.newaxis]
        return runs[kept].tobytes()
    return runs.tobytes()


def _definition(entries: Entries, each: int) -> bytes:
    """Runs of levels: how much of the way down to a value there is."""
    level = entries.level
    edges = (
        np.flatnonzero(np.diff(level, prepend=-1, append=-1).astype(np.bool_))
        if len(level)
        else np.zeros(1, np.int64)
    )
    counts = np.diff(edges) * np.where(level[edges[:-1]] == _ALL_THERE, each, 1)
    return b"".join(
        thrift.varint(count << 1) + bytes((value,))
        for count, value in zip(counts.tolist(), level[edges[:-1]].tolist(), strict=True)
    )


def _levels(runs: bytes) -> bytes:
    return len(runs).to_bytes(4, "little") + runs


def _bits(tensors: npt.NDArray[Any]) -> int:
    """How many bits a value takes; 0 for floats."""
    if tensors.dtype != np.uint8:
        return 0
    largest = int(tensors.max(initial=0))
    return 1 if largest < 2 else 4 if largest < 16 else 8


def _encoded(tensors: npt.NDArray[Any], bits: int) -> bytes:
    """The values of a page: as they are, or packed, the first in the lowest bits."""
    if not bits:
        return tensors.tobytes()
    values = tensors.reshape(-1)
    values = (
        np.concatenate([values, np.zeros(-len(values) % 8, np.uint8)])
        if len(values) % 8
        else values
    )
    groups = len(values) // 8
    packed = (
        np.packbits(values, bitorder="little")
        if bits == 1
        else values[::2] | values[1::2] << 4
        if bits == 4
        else values
    )
    return bytes((bits,)) + thrift.varint(groups << 1 | 1) + packed.tobytes()


class _Pages:
    """The pages of a chunk, one behind the other."""

    def __init__(self, codec: Any) -> None:
        self.data: list[bytes] = []
        self._codec = codec
        self._size = self._unpacked = self._values = 0
        self._first = _BEGIN  # page of data

    def add(self, kind: int, count: int, body: bytes, encoding: int = _PLAIN) -> None:
        packed = body if self._codec is None else self._codec.compress(body, asbytes=True)
        integers: dict[int, int] = {
            1: kind,
            2: len(body),
            3: len(packed),
            4: np.uint32(zlib.crc32(packed)).view(np.int32).item(),
        }
        inner = {1: count, 2: encoding}
        if kind == _DATA_PAGE:
            inner |= {3: _RLE, 4: _RLE}
            self._values += count
        header: Struct = {number: (thrift.I32, value) for number, value in integers.items()}
        header[5 if kind == _DATA_PAGE else 7] = (
            thrift.STRUCT,
            {number: (thrift.I32, value) for number, value in inner.items()},
        )
        encoded = thrift.encode(header)
        self.data += [encoded, packed]
        self._size += len(encoded) + len(packed)
        self._unpacked += len(encoded) + len(body)
        if kind == _DICTIONARY_PAGE:
            self._first = _BEGIN + self._size

    def described(self, physical: int, path: str, codec: int, has_dictionary: bool) -> Struct:
        """The struct ColumnChunk."""
        encodings = [_PLAIN, _RLE, _RLE_DICTIONARY] if has_dictionary else [_PLAIN, _RLE]
        metadata: Struct = {
            1: (thrift.I32, physical),
            2: (thrift.LIST, (thrift.I32, encodings)),
            3: (thrift.LIST, (thrift.BINARY, [name.encode() for name in path.split(".")])),
            4: (thrift.I32, codec),
            5: (thrift.I64, self._values),
            6: (thrift.I64, self._unpacked),
            7: (thrift.I64, self._size),
            9: (thrift.I64, self._first),
        }
        if has_dictionary:
            metadata[11] = thrift.I64, _BEGIN
        return {2: (thrift.I64, 0), 3: (thrift.STRUCT, metadata)}
