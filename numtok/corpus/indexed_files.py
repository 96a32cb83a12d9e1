"""Twin files ``.bin`` and ``.idx``: sequences of values, and where each begins, as Megatron-LM and
GPT-NeoX map them into memory.

In: arrays with one value per token, sequence by sequence. Out: for each stream a ``.bin``, all
    values end to end, little-endian, and an ``.idx``:

========================  ==================  ====================================================
bytes                     type                content
========================  ==================  ====================================================
9                         ``MMIDIDX\\0\\0``     magic
8                         uint64              version, 1
1                         uint8               code of the dtype
8                         uint64              n sequences
8                         uint64              d + 1, for d documents
4 n                       int32[n]            values of each sequence
8 n                       int64[n]            the byte of the ``.bin`` at which each begins
8 (d + 1)                 int64[d + 1]        the sequence with which each document begins, and n
========================  ==================  ====================================================

Here, each sequence is a document. The codes of the two floats are not the same in the two programs:
:data:`CODES`.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from numtok.errors import OutputError
from numtok.files import new_file

MAGIC = b"MMIDIDX\x00\x00"
_COMMON = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}
CODES = {
    "megatron": {**_COMMON, "float64": 6, "float32": 7},
    "gpt-neox": {**_COMMON, "float32": 6, "float64": 7},
}
SMALL_VOCABULARY = 65500  # both programs take uint16 for fewer tokens
_AT_ONCE = 1 << 20  # entries of an index that are made at once


class IndexedFile:
    """One stream's pair; use :func:`open_indexed`, which gives both files their names once they are
    whole.

    Attributes:
        dtype: of the values.
        bytes_written: of the ``.bin``.
    """

    def __init__(
        self,
        path: str,
        values: BinaryIO,
        index: BinaryIO,
        dtype: npt.DTypeLike,
        codes: dict[str, int],
    ) -> None:
        self.dtype, self.bytes_written = np.dtype(dtype), 0
        self._path, self._values, self._index, self._codes = path, values, index, codes
        self._sizes: list[npt.NDArray[np.int32]] = []

    def write(self, values: npt.NDArray[Any], sizes: npt.NDArray[np.int64]) -> None:
        """Append sequences.

        Args:
            values: end to end.
            sizes: int64[sequences], how many of them each has.

        Raises:
            OutputError: for a sequence of more than 2**31 - 1 values; or if the disk refuses.
        """
        if len(sizes) and sizes.max() > np.iinfo(np.int32).max:
            raise OutputError(
                f"{self._path}: a sequence has {sizes.max():,} values, more than the format can"
                " tell; export shorter rows, encoded with pack=..."
            )
        self._sizes.append(sizes.astype(np.int32))
        self._put(self._values, np.ascontiguousarray(values, self.dtype.newbyteorder("<")))

    def finish(self) -> None:
        """Write the index, and force both files to the disk."""
        sizes = np.concatenate(self._sizes) if self._sizes else np.empty(0, np.int32)
        header = MAGIC + struct.pack(
            "<QBQQ", 1, self._codes[self.dtype.name], len(sizes), len(sizes) + 1
        )
        self._put(self._index, np.frombuffer(header, np.uint8))
        self._put(self._index, sizes.astype("<i4", copy=False))
        begin = 0
        for at in range(0, len(sizes), _AT_ONCE):
            ends = (
                begin + np.cumsum(sizes[at : at + _AT_ONCE], dtype=np.int64) * self.dtype.itemsize
            )
            self._put(self._index, np.append(begin, ends[:-1]).astype("<i8", copy=False))
            begin = int(ends[-1])
        for at in range(0, len(sizes) + 1, _AT_ONCE):
            self._put(self._index, np.arange(at, min(at + _AT_ONCE, len(sizes) + 1), dtype="<i8"))
        for file in (self._values, self._index):
            os.fsync(file.fileno())

    def _put(self, file: BinaryIO, values: npt.NDArray[Any]) -> None:
        data = values.data.cast("B") if values.size else memoryview(b"")
        try:
            while data:
                data = data[file.write(data) :]
        except OSError as error:
            reason = f"{error.strerror or error}, after {self.bytes_written:,} bytes"
            raise OutputError(
                f"cannot write {self._path}: {reason}; nothing is left under that name: make room,"
                " then run again"
            ) from error
        self.bytes_written += values.nbytes if file is self._values else 0


@contextlib.contextmanager
def open_indexed(
    prefix: str, dtype: npt.DTypeLike, to: str, overwrite: bool
) -> Iterator[IndexedFile]:
    """A context in which to ``write`` sequences to ``prefix.bin`` and ``prefix.idx``.

    Raises:
        OutputError: if one of them exists, or the system refuses. Neither gets its name then.
    """
    path = f"{prefix}.bin"
    with (
        new_file(f"{prefix}.idx", overwrite) as index,
        new_file(path, overwrite) as values,
    ):  # the index gets its name last
        file = IndexedFile(path, values, index, dtype, CODES[to])
        yield file
        file.finish()
