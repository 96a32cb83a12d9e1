"""Pairs of files as Megatron-LM and GPT-NeoX map them into memory, one pair for each stream."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from numtok.errors import OutputError
from numtok.files import new_file

MAGIC = b"MMIDIDX\x00\x00"
_COMMON = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}
CODES = {  # of dtypes; those of the two floats are not the same in the two programs
    "megatron": {**_COMMON, "float64": 6, "float32": 7},
    "gpt-neox": {**_COMMON, "float32": 6, "float64": 7},
}
# What the format has no code for, as the type that holds the same bits.
STORED = {"bool": "uint8", "uint32": "int32", "uint64": "int64"}


class IndexedFile:
    """``NAME.bin``, the values of all sequences end to end, little-endian, and ``NAME.idx``: magic,
    version (uint64), code of the dtype (uint8), n (uint64), n + 1 (uint64); then the values of each
    sequence (int32[n]), the byte at which it begins (int64[n]), and the sequence with which each
    document begins, and n (int64[n + 1]). Each sequence is a document.
    """

    def __init__(
        self, name: str, values: BinaryIO, index: BinaryIO, dtype: npt.DTypeLike, to: str
    ) -> None:
        self.dtype, self.bytes_written = np.dtype(dtype), 0
        self._name, self._values, self._index, self._to = name, values, index, to
        self._sizes: list[npt.NDArray[np.int32]] = []

    def write(self, values: npt.NDArray[Any], sizes: npt.NDArray[np.int64]) -> None:
        """Append sequences of so many values each; OutputError if one has more than 2**31 - 1."""
        if len(sizes) and sizes.max() > np.iinfo(np.int32).max:
            raise OutputError(
                f"{self._name}.bin: a sequence has {sizes.max():,} values, more than the format can"
                " tell; export shorter rows, encoded with pack=..."
            )
        self._sizes.append(sizes.astype(np.int32))
        self._put(self._values, np.ascontiguousarray(values, self.dtype.newbyteorder("<")))

    def finish(self) -> None:
        """Write the index, and force both files to the disk."""
        sizes = np.concatenate(self._sizes) if self._sizes else np.empty(0, np.int32)
        count, code = len(sizes), CODES[self._to][self.dtype.name]
        header = MAGIC + struct.pack("<QBQQ", 1, code, count, count + 1)
        self._put(self._index, np.frombuffer(header, np.uint8))
        self._put(self._index, sizes.astype("<i4", copy=False))
        ends = np.cumsum(sizes, dtype=np.int64)
        self._put(self._index, ((ends - sizes) * self.dtype.itemsize).astype("<i8", copy=False))
        self._put(self._index, np.arange(count + 1, dtype="<i8"))
        for file in (self._values, self._index):
            os.fsync(file.fileno())

    def _put(self, file: BinaryIO, values: npt.NDArray[Any]) -> None:
        put(file, values.data.cast("B") if values.size else b"", f"{self._name}.bin")
        self.bytes_written += values.nbytes


def put(file: BinaryIO, data: Any, path: str) -> None:
    """Write all of the bytes; OutputError if the system refuses."""
    left = memoryview(data)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}; nothing is left under that name: make"
            " room, then run again"
        ) from error


class IndexedFiles:
    """A pair for each stream, and ``PREFIX.json``, which says what they are."""

    def __init__(self, prefix: str, about: BinaryIO, pairs: Mapping[str, IndexedFile]) -> None:
        self.files = {name: stream_name(prefix, name) for name in pairs}
        self._prefix, self._about, self._pairs = prefix, about, pairs

    @property
    def bytes_written(self) -> int:
        """Of all pairs."""
        return sum(pair.bytes_written for pair in self._pairs.values())

    def write(self, streams: Mapping[str, npt.NDArray[Any]], ends: npt.NDArray[np.int64]) -> None:
        """Append rows, which end after so many tokens."""
        sizes = np.diff(ends, prepend=0)
        sizes = sizes[sizes > 0]
        for name, values in streams.items():
            self._pairs[name].write(values.reshape(-1), sizes * int(np.prod(values.shape[1:])))

    def describe(self, about: str) -> None:
        """What ``PREFIX.json`` says."""
        put(self._about, about.encode(), f"{self._prefix}.json")


def stream_name(prefix: str, stream: str) -> str:
    """What the names of its files begin with."""
    return prefix if stream == "input_ids" else f"{prefix}_{stream}"


@contextlib.contextmanager
def open_streams(
    prefix: str, to: str, dtypes: Mapping[str, np.dtype[Any]], overwrite: bool
) -> Iterator[IndexedFiles]:
    """All pairs, whose files get their names at the end, the index last; none is left after an
    error.
    """
    with contextlib.ExitStack() as stack:

        def opened(path: str) -> BinaryIO:
            return stack.enter_context(new_file(path, overwrite))

        about, pairs = opened(f"{prefix}.json"), {}
        for name, dtype in dtypes.items():
            base = stream_name(prefix, name)
            index, values = opened(f"{base}.idx"), opened(f"{base}.bin")
            pairs[name] = IndexedFile(base, values, index, dtype, to)
        yield IndexedFiles(prefix, about, pairs)
        for pair in pairs.values():
            pair.finish()
