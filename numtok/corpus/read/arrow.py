"""Arrow IPC files and streams, such as ``datasets`` writes, and numtok's own. Only the columns wanted
are read, a record batch at a time.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.ipc

from numtok import locations
from numtok.corpus.read.batches import (
    LONGEST_ROW,
    ReadOptions,
    TextBatch,
    check_column,
    checked_batches,
    text_columns,
)
from numtok.corpus.read.sources import Source, plain_path
from numtok.errors import InputError

_MOST_RATIO = 64  # to which text may reasonably be compressed


def read_arrow(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of an IPC file or stream; columns left out are not even decompressed."""
    with plain_path(source) as path, contextlib.closing(ArrowFile(path, name=source.name)) as file:
        wanted = options.wanted(source, file.schema.names, lambda: text_columns(file.schema))
        first_row = 0
        for batch, done in file.read(wanted):
            # of a compressed file, its own size
            position = (source.size or 0) * done // max(file.size, 1)
            yield from checked_batches(source, batch, wanted, first_row, position, options)
            first_row += batch.num_rows


class ArrowFile:
    """An IPC file or stream, ``size`` bytes long, called ``name`` in messages, read piece by piece."""

    def __init__(self, path: str, name: str | None = None) -> None:
        self.name = name or path
        self._source = locations.for_arrow(path) if locations.is_url(path) else pa.OSFile(path)
        self.size: int = self._source.size()
        self._projected: tuple[tuple[str, ...], Any] | None = None
        self._is_stream = self._source.read(6) != b"ARROW1"
        self._bodies, self._measured = _bodies(self._source), 0
        self._source.seek(0)
        opened = pa.ipc.open_stream if self._is_stream else pa.ipc.open_file
        self._reader: Any = opened(self._source)
        self.schema: pa.Schema = self._reader.schema
        if any("dictionary<" in str(field.type) for field in self.schema):
            self._refuse_bombs(math.inf)  # a file's dictionaries are read with its first batch

    def _refuse_bombs(self, batches: float) -> None:
        """Refuse batches that are large only once they are decompressed, among the first so many.

        They are looked at as they are read: of an object, what is asked for is then there.
        """
        place = self._source.tell()
        while self._measured < batches:
            body = next(self._bodies, None)
            if body is None:
                self._measured = sys.maxsize
                break
            if body.decoded > max(LONGEST_ROW, _MOST_RATIO * body.stored):
                raise InputError(
                    f"batch {self._measured + 1} takes {body.decoded >> 20:,} MiB once it is"
                    f" decompressed, more than the {LONGEST_ROW >> 20} MiB that are held in memory:"
                    " write it in smaller batches, or check what the compressed file expands to",
                    self.name,
                )
            self._measured += body.is_rows
        self._source.seek(place)

    @functools.cached_property
    def batches(self) -> int:
        """The number of record batches; those of a stream, which has no index, are read once and
        kept.
        """
        if self._is_stream:
            return len(self._stream_batches)
        count: int = self._reader.num_record_batches
        self._refuse_bombs(count)
        return count

    @functools.cached_property
    def _stream_batches(self) -> list[pa.RecordBatch]:
        return list(self._streamed(self.schema.names))

    def _streamed(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield each batch of a stream."""
        self._source.seek(0)
        opened = pa.ipc.open_stream(self._source, options=self._only(names))
        for number in itertools.count(1):
            self._refuse_bombs(number)
            try:
                yield opened.read_next_batch()
            except StopIteration:
                return

    def read(self, names: list[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield these columns of all batches in order, each with the bytes of the file up to its end,
        about; the others are neither read nor decompressed.
        """
        if self._is_stream:
            for batch in self._streamed(names):
                yield self._checked(batch.select(names)), self._source.tell()
            return
        count: int = self._reader.num_record_batches
        for number in range(count):
            yield self.batch(number, names), self.size * (number + 1) // count

    def batch(self, number: int, names: list[str]) -> pa.RecordBatch:
        """Return these columns of one batch."""
        if self._is_stream:
            return self._checked(self._stream_batches[number].select(names))
        self._refuse_bombs(number + 1)
        return self._checked(self._opened(tuple(names)).get_batch(number).select(names))

    def _opened(self, names: tuple[str, ...]) -> Any:
        """The file, opened for some columns; mostly they are the same each time."""
        if self._projected is None or self._projected[0] != names:
            self._projected = names, pa.ipc.open_file(self._source, options=self._only(names))
        return self._projected[1]

    def _only(self, names: Sequence[str]) -> pa.ipc.IpcReadOptions:
        fields = [self.schema.get_field_index(name) for name in names]
        return pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            check_column(column, name, self.name)
        return batch

    def close(self) -> None:
        """Close the file."""
        self._source.close()


_HEADER, _BODY_LENGTH = 2, 3  # fields of Message
_BUFFERS, _COMPRESSION = 2, 3  # of RecordBatch
_DATA = 1  # of DictionaryBatch, a RecordBatch
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3  # kinds of Message


class _Body(NamedTuple):
    """A batch of rows or of a dictionary: its bytes as stored and decompressed."""

    is_rows: bool
    stored: int
    decoded: int


def _bodies(source: Any) -> Iterator[_Body]:
    """The batches of a file or a stream in order, by their headers alone; it ends where the file is
    not as it should be, which is left to Arrow to tell. The headers are FlatBuffers.
    """
    source.seek(0)
    at = 8 if source.read(6) == b"ARROW1" else 0
    while True:
        source.seek(at)
        start = source.read(8)
        if len(start) < 8 or start[:4] != b"\xff\xff\xff\xff":
            return
        length = int.from_bytes(start[4:], "little")
        message = source.read(length)
        if not length or len(message) < length:
            return
        at += 8 + length
        try:
            kind, stored, buffers = _parsed(message)
        except (struct.error, IndexError):
            return
        if kind in (_DICTIONARY_BATCH, _RECORD_BATCH):
            decoded = sum(_decompressed(source, at, *buffer) for buffer in buffers)
            yield _Body(kind == _RECORD_BATCH, stored, decoded)
        at += stored


def _parsed(message: bytes) -> tuple[int, int, list[tuple[int, int]]]:
    """(kind, bytes of the body, place and length of each compressed buffer in it)."""
    table = struct.unpack_from("<I", message)[0]
    body = _field(message, table, _BODY_LENGTH)
    stored = struct.unpack_from("<q", message, body)[0] if body else 0
    kind = message[_field(message, table, 1)]
    batch = _child(message, _field(message, table, _HEADER))
    if kind == _DICTIONARY_BATCH:
        batch = _child(message, _field(message, batch, _DATA))
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH) or not _field(message, batch, _COMPRESSION):
        return kind, stored, []
    vector = _child(message, _field(message, batch, _BUFFERS))
    count = struct.unpack_from("<I", message, vector)[0]
    buffers = struct.iter_unpack("<qq", message[vector + 4 : vector + 4 + 16 * count])
    return kind, stored, list(buffers)


def _field(message: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 if it is left out."""
    entries = table - struct.unpack_from("<i", message, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", message, entries)[0]:
        return 0
    offset = struct.unpack_from("<H", message, entries + 4 + 2 * number)[0]
    return table + offset if offset else 0


def _child(message: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", message, place)[0])


def _decompressed(source: Any, body: int, offset: int, length: int) -> int:
    if length < 8:
        return 0
    source.seek(body + offset)
    size = int.from_bytes(source.read(8), "little", signed=True)
    return length if size < 0 else size  # -1: not compressed
