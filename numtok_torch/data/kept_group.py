"""A row group of Parquet as a file that one row can be read from: uncompressed, in pieces of some
rows.

In: record batches. Out: a file that appears whole or not at all, whoever writes it at the same
    time; mapped, any piece of it as a record batch, a view.

**The file** is a head, the pieces as messages of Arrow IPC, each at a multiple of 64 bytes,
uint64[pieces, 3] with where each begins, ends, and the sum of its words of 64 bits, and that sum of
the table. A sum tells what can happen to a file in a cache, pages that were lost or written over,
and takes a third of the time of a CRC.
"""

from __future__ import annotations

import mmap
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa

HEAD = b"numtok rows 2\n".ljust(64)
ALIGNED = 64
_ENTRY = 24  # bytes of the table for each piece
_END = 8


class DamagedError(Exception):
    """A kept file is not what was written. Nobody is told: it is made again."""


class KeptGroup:
    """A mapped file.

    Args:
        path: of the file.
        pieces: how many it must have.
        schema: of each.
        is_new: whether this process has just written it, so that its sums need not be looked at.

    Raises:
        OSError: if it is not there. DamagedError: if it is not what was written.
    """

    def __init__(self, path: Path, pieces: int, schema: pa.Schema, is_new: bool = False) -> None:
        self._schema = schema
        with open(path, "rb") as file:
            os.utime(path)  # when it was last of use
            if os.fstat(file.fileno()).st_size < len(HEAD) + _ENTRY * pieces + _END:
                raise DamagedError
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = len(self._map) - _END
        table = self._map[end - _ENTRY * pieces : end]
        if self._map[: len(HEAD)] != HEAD or _sum(table) != int.from_bytes(
            self._map[end:], "little"
        ):
            raise DamagedError
        self._table: list[list[int]] = np.frombuffer(table, "<u8").reshape(pieces, 3).tolist()
        self._checked: set[int] = set(range(pieces)) if is_new else set()

    def is_whole(self) -> bool:
        """Whether the file still has its length: to touch the map of one that was cut short would
        kill the process.
        """
        return self._map.size() >= len(self._map)

    def piece(self, number: int) -> pa.RecordBatch:
        """A view of the map, whose sum is looked at once."""
        if not self.is_whole():
            raise DamagedError
        start, stop, total = self._table[number]
        message = pa.py_buffer(self._map)[start:stop]
        if number not in self._checked:
            if _sum(message) != total:
                raise DamagedError
            self._checked.add(number)
        return pa.ipc.read_record_batch(message, self._schema)


def write(path: Path, pieces: Iterable[pa.RecordBatch]) -> None:
    """Write the file, under a name of its own until it is whole.

    Raises:
        OSError: if the system refuses. What ``pieces`` raises. In both cases nothing is left.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}.tmp")
    table: list[list[int]] = []
    try:
        with open(temporary, "xb") as file:
            file.write(HEAD)
            for piece in pieces:
                message = piece.serialize()
                start = file.tell()
                table.append([start, start + message.size, _sum(message)])
                file.write(message)
                file.write(bytes(-message.size % ALIGNED))
            entries = np.array(table, "<u8").reshape(-1, 3).tobytes()
            file.write(entries + _sum(entries).to_bytes(_END, "little"))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _sum(data: bytes | pa.Buffer) -> int:
    """Of the words of 64 bits, modulo 2**64; messages are of whole ones."""
    return int(np.frombuffer(data, "<u8").sum(dtype=np.uint64))
