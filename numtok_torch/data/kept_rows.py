"""Rows of Parquet at random: row groups are kept uncompressed in the user's cache folder, each once
one of its rows is asked for.

In: an open Parquet file, a row group and the number of a piece of it. Out: the piece as a record
    batch. The first who asks has all of the row group read, a few megabytes at a time, checked and
    written; whoever asks next, in any process, gets a view of the file
    (:mod:`numtok_torch.data.kept_group`).

**What is kept is found** by a digest of the Parquet file's footer, its size and when it was
changed, of the columns, and of numtok's source: a file that was changed is read anew. What is
damaged is made again. Nothing that is kept is needed: without room, row groups are read whole, each
time.

**Room.** All kept files together take no more than so many bytes, and leave a tenth of the disk
free. For that, files go that nobody opened for a day.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import multiprocessing
import os
import shutil
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from numtok.arrays.kept import make_private, user_folder
from numtok.arrays.stamp import content_stamp
from numtok.corpus.read.encoded import EncodedFile, open_encoded
from numtok.corpus.read.parquet import identity
from numtok.tokenizer.stored import check_rows
from numtok_torch.data.kept_group import HEAD, DamagedError, KeptGroup, write

DISK_BYTES = 32 << 30
PIECE_BYTES = 1 << 18  # of a piece: little to read for one row, and enough to be worth a message
READ_PIECES = 16  # of a row group that are read at a time while it is kept
READ_AHEAD = 2  # so many times
LEAST_BYTES = 1 << 20  # of a row group; smaller ones are read in no time
OPEN_MAPS = 64
DAY = 86400.0  # seconds
FREE_SHARE = 10  # a tenth of the disk
NOTE = (
    "numtok: rows at random: row groups will be kept uncompressed in %s, each when one of its rows"
    " is first read; NUMTOK_CACHE names another folder, disk_bytes=0 keeps none"
)
NO_ROOM = (
    "numtok: no more row groups can be kept in %s (%s), so that others are read whole for each row:"
    " make room, or raise disk_bytes"
)

_told: set[Path] = set()


@dataclass(frozen=True)
class Group:
    """A row group, or what else is a chunk of a file, and how it is cut.

    Attributes:
        path: of the file. number: of the row group. first_row: its first row in the file. rows:
            that it has.
        step: rows of each piece but the last.
        key: what the file holds and what is read of it; empty if the row group is not kept, and
            then it is one piece.
    """

    path: str
    number: int
    first_row: int
    rows: int
    step: int
    key: str

    @property
    def pieces(self) -> list[int]:
        """The rows of each."""
        return [min(self.step, self.rows - first) for first in range(0, self.rows, self.step)]


class KeptRows:
    """The row groups of a data set.

    Args:
        folder: where they are kept. columns: that are read.
        disk_bytes: that all that is kept there may take. memory_bytes: of row groups that could not
            be kept.
    """

    def __init__(
        self, folder: Path, columns: Sequence[str], disk_bytes: int, memory_bytes: int
    ) -> None:
        self.folder, self.columns = folder, list(columns)
        self._disk_bytes, self._memory_bytes = disk_bytes, memory_bytes
        self._has_room = True
        self.forget()

    def forget(self) -> None:
        """Let go of what is open: it is another process's."""
        self._maps: OrderedDict[Group, KeptGroup] = OrderedDict()
        self._whole: OrderedDict[Group, pa.RecordBatch] = OrderedDict()
        self._other: EncodedFile | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in vars(self).items()
            if name not in ("_maps", "_whole", "_other")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.forget()

    def key(self, identity: str) -> str:
        """What the row groups of a file are kept under; empty if they are not."""
        parts = [HEAD.decode(), content_stamp(), str(PIECE_BYTES), identity, *self.columns]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40] if identity else ""

    def announce(self, groups: Sequence[Group]) -> None:
        """Say once where room will be taken, unless all is there."""
        if self.folder in _told or multiprocessing.parent_process() is not None:
            return
        if not all(self._place(group).exists() for group in groups if group.key):
            _told.add(self.folder)
            logging.getLogger("numtok").warning(NOTE, self.folder)

    def piece(
        self, group: Group, number: int, file: EncodedFile
    ) -> tuple[pa.RecordBatch, KeptGroup | None]:
        """A piece whose rows hold together, and the map that it is a view of; None if it is none.

        Raises:
            InputError: if the Parquet file is damaged. SchemaError: if rows have columns that
                disagree.
        """
        for _ in range(2):  # what is damaged is made again
            kept = self._kept(group, file)
            if kept is None:
                break
            try:
                return kept.piece(number), kept
            except DamagedError:
                del self._maps[group]
                self._place(group).unlink(missing_ok=True)
        return self._in_memory(group, file).slice(number * group.step, group.step), None

    def _place(self, group: Group) -> Path:
        return self.folder / f"{group.key}-{group.number}"

    def _kept(self, group: Group, file: EncodedFile) -> KeptGroup | None:
        """The map of a group; None if it cannot be kept."""
        if group not in self._maps:
            opened = self._opened(group, file) or self._made(group, file)
            if opened is None:
                return None
            self._maps[group] = opened
            if len(self._maps) > OPEN_MAPS:
                self._maps.popitem(last=False)
        self._maps.move_to_end(group)
        return self._maps[group]

    def _schema(self, file: EncodedFile) -> pa.Schema:
        return pa.schema([file.schema.field(name) for name in self.columns], file.schema.metadata)

    def _opened(self, group: Group, file: EncodedFile, is_new: bool = False) -> KeptGroup | None:
        try:
            return KeptGroup(self._place(group), len(group.pieces), self._schema(file), is_new)
        except (OSError, DamagedError):
            return None

    def _made(self, group: Group, file: EncodedFile) -> KeptGroup | None:
        if self._has_room:
            try:
                self._make_room()
                write(self._place(group), self._pieces(group, file))
                return self._opened(group, file, is_new=True)
            except (OSError, DamagedError) as error:
                self._has_room = False
                logging.getLogger("numtok").warning(NO_ROOM, self.folder, error)
        return None

    def _pieces(self, group: Group, file: EncodedFile) -> Iterator[pa.RecordBatch]:
        """The rows of a group, checked, a few megabytes in memory."""
        rows, first = group.step * READ_PIECES, 0
        for batches in _read_ahead(self._streams(group, file, rows)):
            columns = {
                name: column
                for batch in batches
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            }
            batch = pa.RecordBatch.from_arrays(
                [columns[name] for name in self.columns], schema=self._schema(file)
            )
            check_rows(batch, group.path, group.first_row + first)
            first += batch.num_rows
            if batch.num_rows != rows and first != group.rows:
                raise DamagedError("Arrow does not read so many rows at a time")
            yield from (batch.slice(at, group.step) for at in range(0, batch.num_rows, group.step))
        if not self.key(file.identity) == group.key == self.key(identity(group.path)):
            raise DamagedError(f"{group.path} was changed meanwhile")

    def _streams(
        self, group: Group, file: EncodedFile, rows: int
    ) -> list[Iterator[pa.RecordBatch]]:
        """The column that takes the most room, and the others, each to be read by a thread of its
        own, from a file that each has opened.
        """
        largest = max(self.columns, key=lambda name: file.chunk_bytes(group.number, [name]))
        others = [name for name in self.columns if name != largest]
        if not others:
            return [file.parts(group.number, [largest], rows)]
        if self._other is None or self._other.path != file.path:
            self._other = open_encoded(file.path, at_random=True)
        return [
            file.parts(group.number, [largest], rows),
            self._other.parts(group.number, others, rows),
        ]

    def _make_room(self) -> None:
        """Remove what nobody opened for a day, as far as there is need to.

        Raises:
            OSError: if that is not enough.
        """
        make_private(self.folder.parent)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        found = [(entry.stat(), Path(entry.path)) for entry in os.scandir(self.folder)]
        used, disk = sum(stat.st_size for stat, _ in found), shutil.disk_usage(self.folder)
        missing = max(used - self._disk_bytes, disk.total // FREE_SHARE - disk.free)
        for stat, path in sorted(found, key=lambda one: one[0].st_mtime):
            if missing >= 0 and stat.st_mtime < time.time() - DAY:
                path.unlink(missing_ok=True)
                missing -= stat.st_size
        if missing >= 0:
            raise OSError(
                errno.ENOSPC, f"{used >> 20} MiB are kept, {disk.free >> 20} MiB are free"
            )

    def _in_memory(self, group: Group, file: EncodedFile) -> pa.RecordBatch:
        """All of a group, kept for this process."""
        if group not in self._whole:
            self._whole[group] = file.chunk(group.number, self.columns)
            check_rows(self._whole[group], group.path, group.first_row)
            while (
                len(self._whole) > 1
                and sum(batch.nbytes for batch in self._whole.values()) > self._memory_bytes
            ):
                self._whole.popitem(last=False)
        self._whole.move_to_end(group)
        return self._whole[group]


def _read_ahead(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """One batch of each at a time.

    The next are decoded meanwhile. The threads are ours, and end: those of Arrow's pool would be
    missing after a fork.
    """
    with ExitStack() as stack:
        readers = [stack.enter_context(ThreadPoolExecutor(1)) for _ in streams]

        def ask() -> list[Future[pa.RecordBatch | None]]:
            return [
                reader.submit(next, stream, None)
                for reader, stream in zip(readers, streams, strict=True)
            ]

        coming = deque(ask() for _ in range(READ_AHEAD))
        while None not in (batches := [one.result() for one in coming.popleft()]):
            coming.append(ask())
            yield [batch for batch in batches if batch is not None]


def kept_rows(columns: Sequence[str], disk_bytes: int, memory_bytes: int) -> KeptRows | None:
    """None if nothing is to be kept."""
    folder = user_folder() if disk_bytes > 0 else None
    return None if folder is None else KeptRows(folder / "rows", columns, disk_bytes, memory_bytes)


def cut(path: str, file: EncodedFile, kept: KeptRows | None) -> list[Group]:
    """The chunks of a file that have rows, those that are kept in pieces."""
    file_key = "" if kept is None else kept.key(file.identity)
    first, groups = 0, []
    for number, rows in enumerate(file.chunk_rows()):
        size = file.chunk_bytes(number, kept.columns) if kept is not None and file_key else 0
        key, step = (
            (file_key, max(1, rows * PIECE_BYTES // size))
            if size >= LEAST_BYTES
            else ("", max(1, rows))
        )
        groups += [Group(path, number, first, rows, step, key)] if rows else []
        first += rows
    return groups
