"""Streams of encoded rows as the pairs of files that Megatron-LM and GPT-NeoX map into memory. All
names appear once every file is whole.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from numtok.errors import OutputError
from numtok.files import new_file
from numtok.storage import is_url

Values = npt.NDArray[Any]
Dtypes = Mapping[str, np.dtype[Any]]

MAGIC = b"MMIDIDX\x00\x00"
_COMMON = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}
CODES = {  # of dtypes; those of the two floats are not the same in the two programs
    "megatron": {**_COMMON, "float64": 6, "float32": 7},
    "gpt-neox": {**_COMMON, "float32": 6, "float64": 7},
}
# The dtypes for which neither program has a code are stored as others of the same bits.
AS_BITS = {"bool": "uint8", "uint32": "int32", "uint64": "int64"}


class Streams:
    """Streams that are being written. For each stream ``NAME.bin``, the values of all sequences end to end, little-endian, and
    ``NAME.idx``: magic, version (uint64), code of the dtype (uint8), n (uint64), n + 1 (uint64);
    then the values of each sequence (int32[n]), the byte at which it begins (int64[n]), and the
    sequence with which each document begins, and n (int64[n + 1]). Each sequence is a document.
    """

    def __init__(
        self, prefix: str, to: str, dtypes: Dtypes, opened: Callable[[str], BinaryIO]
    ) -> None:
        self.bytes_written = 0
        self.files = {
            name: prefix if name == "input_ids" else f"{prefix}_{name}" for name in dtypes
        }
        self._dtypes, self._codes = dtypes, CODES[to]
        paths = [f"{prefix}.json"]  # the index gets its name last
        paths += [f"{base}.{kind}" for base in self.files.values() for kind in ("idx", "bin")]
        self._open = {path: opened(path) for path in paths}
        self._sizes = {name: [np.empty(0, np.int32)] for name in dtypes}

    def write(self, streams: Mapping[str, Values], ends: npt.NDArray[np.int64]) -> None:
        """Append rows, which end after so many tokens."""
        tokens = np.diff(ends, prepend=0)
        for name, values in streams.items():
            sizes = tokens[tokens > 0] * int(np.prod(values.shape[1:]))
            if sizes.max(initial=0) > np.iinfo(np.int32).max:
                raise OutputError(
                    f"{self.files[name]}.bin: a sequence has {sizes.max():,} values, more than the"
                    " format can tell; export shorter rows, encoded with pack=... (--pack)"
                )
            self._sizes[name].append(sizes.astype(np.int32))
            self._put(f"{self.files[name]}.bin", values, self._dtypes[name].newbyteorder("<"))

    def finish(self, about: str) -> None:
        """Write the index of each stream, and ``about`` beside them."""
        for name, base in self.files.items():
            dtype, sizes = self._dtypes[name], np.concatenate(self._sizes[name])
            header = struct.pack("<QBQQ", 1, self._codes[dtype.name], len(sizes), len(sizes) + 1)
            begins = (np.cumsum(sizes, dtype=np.int64) - sizes) * dtype.itemsize
            self._put(f"{base}.idx", np.frombuffer(MAGIC + header, np.uint8))
            self._put(f"{base}.idx", sizes, "<i4")
            self._put(f"{base}.idx", begins, "<i8")
            self._put(f"{base}.idx", np.arange(len(sizes) + 1), "<i8")
            for kind in ("bin", "idx"):
                os.fsync(self._open[f"{base}.{kind}"].fileno())
        told = np.frombuffer(about.encode(), np.uint8)
        self._put(next(iter(self._open)), told)
        self.bytes_written -= told.nbytes

    def _put(self, path: str, values: Values, dtype: npt.DTypeLike = np.uint8) -> None:
        """Write all values; OutputError if the system refuses."""
        left = np.ascontiguousarray(values, dtype).reshape(-1).view(np.uint8).data
        self.bytes_written += left.nbytes
        try:
            while left:
                left = left[self._open[path].write(left) :]
        except OSError as error:
            raise OutputError(
                f"cannot write {path}: {error.strerror or error}; nothing is left under that name:"
                " make room, then run again"
            ) from error


@contextlib.contextmanager
def open_streams(prefix: str, to: str, dtypes: Dtypes, overwrite: bool) -> Iterator[Streams]:
    """Open the files of all streams, which get their names when the context ends well."""
    if not is_url(prefix):  # it names several files, as a folder does, which is made too
        with contextlib.suppress(OSError):  # told with the name of the first file
            Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        yield Streams(
            prefix, to, dtypes, lambda path: stack.enter_context(new_file(path, overwrite))
        )
