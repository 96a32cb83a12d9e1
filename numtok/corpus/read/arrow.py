"""Arrow IPC files and streams, such as ``datasets`` writes, and numtok's own. Only the columns wanted
are read, a record batch at a time.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from numtok import storage
from numtok.corpus.read.batches import (
    ReadOptions,
    TextBatch,
    check_column,
    checked_batches,
    text_columns,
)
from numtok.corpus.read.sources import Source, plain_path


def read_arrow(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the documents of an IPC file or stream; columns left out are not even decompressed."""
    with plain_path(source) as path, contextlib.closing(ArrowFile(path, name=source.name)) as file:
        wanted = options.wanted(source, file.schema.names, lambda: text_columns(file.schema))
        first_row = 0
        for batch, done in file.read(wanted):
            # of a compressed file, its own size
            position = (source.size or 0) * done // max(file.size, 1)
            yield from checked_batches(source, batch, wanted, first_row, position, options)
            first_row += batch.num_rows


class ArrowFile:
    """An IPC file or stream, ``size`` bytes long, called ``name`` in messages."""

    def __init__(self, path: str, name: str | None = None) -> None:
        self.name = name or path
        self._source = storage.for_arrow(path) if storage.is_url(path) else pa.OSFile(path)
        self.size: int = self._source.size()
        self._is_stream = self._source.read(6) != b"ARROW1"
        self._source.seek(0)
        opened = pa.ipc.open_stream if self._is_stream else pa.ipc.open_file
        self._reader: Any = opened(self._source)
        self.schema: pa.Schema = self._reader.schema
        self._projected: tuple[tuple[str, ...], Any] | None = None

    @functools.cached_property
    def batches(self) -> int:
        """The number of record batches; those of a stream, which has no index, are read once and
        kept.
        """
        return int(
            len(self._stream_batches) if self._is_stream else self._reader.num_record_batches
        )

    @functools.cached_property
    def _stream_batches(self) -> list[pa.RecordBatch]:
        return list(self._streamed(self.schema.names))

    def _streamed(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        self._source.seek(0)
        yield from pa.ipc.open_stream(self._source, options=self._only(names))

    def read(self, names: list[str]) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield these columns of all batches in order, each with the bytes of the file up to its end,
        about; the others are neither read nor decompressed.
        """
        if self._is_stream:
            for batch in self._streamed(names):
                yield self._checked(batch.select(names)), self._source.tell()
            return
        for number in range(self.batches):
            yield self.batch(number, names), self.size * (number + 1) // self.batches

    def batch(self, number: int, names: list[str]) -> pa.RecordBatch:
        """Return these columns of one batch."""
        if self._is_stream:
            return self._checked(self._stream_batches[number].select(names))
        return self._checked(self._opened(tuple(names)).get_batch(number).select(names))

    def _opened(self, names: tuple[str, ...]) -> Any:
        """Return the file, opened for some columns; mostly they are the same each time."""
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
