"""Tables that were written by others or by numtok: Parquet files, some pages at a time, however large
the row groups are; Arrow IPC files and streams, such as ``datasets`` writes, a record batch at a time.
Only the columns wanted are read.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from numtok import storage
from numtok.arrays import memory
from numtok.corpus.read.batches import (
    ReadOptions,
    TextBatch,
    check_column,
    checked_batches,
    text_columns,
)
from numtok.corpus.read.sources import Source, plain_path
from numtok.errors import InputError

_MOST_ROWS = 1 << 14
_VALUE_BYTES = 8  # of a number once it is decoded, however little is stored of it
PAGE_BUFFER = 1 << 20
_AS_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}


class ParquetFile(pq.ParquetFile):  # type: ignore[misc]  # pyarrow is untyped
    """A Parquet file that notices damage by the checksums of its pages, open until it is closed. So
    many bytes of a column are read at once, 0 for all of the row group.
    """

    def __init__(self, path: str, buffer_size: int = 0) -> None:
        super().__init__(
            storage.for_arrow(path),
            pre_buffer=False,
            buffer_size=buffer_size,
            page_checksum_verification=True,
        )
        self.rows = int(self.metadata.num_rows)
        self.chunk_rows = [
            self.metadata.row_group(number).num_rows for number in range(self.num_row_groups)
        ]

    def batch(self, number: int, columns: list[str]) -> pa.RecordBatch:
        """Return these columns of a row group."""
        table = self.read_row_group(number, columns=columns, use_threads=False).select(columns)
        return table.combine_chunks().to_batches()[0]

    def stream(self, columns: Sequence[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield all rows of these columns, in batches of about so many bytes."""
        return bounded_batches(self, range(self.num_row_groups), columns, batch_bytes)

    def close(self, force: bool = True) -> None:
        """Close the file, be it that it was opened before it was given to Arrow."""
        super().close(force)


def read_parquet(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the documents of a Parquet file, page by page."""
    with plain_path(source) as path, ParquetFile(path, PAGE_BUFFER) as file:
        schema = file.schema_arrow
        groups = range(file.num_row_groups)[source.start : source.stop]
        total = sum(file.chunk_rows[group] for group in groups)
        wanted = options.wanted(source, schema.names, lambda: text_columns(schema))
        row = 0
        for batch in bounded_batches(file, groups, wanted, options.batch_bytes):
            done = (source.size or 0) * (row + batch.num_rows) // total
            yield from checked_batches(source, batch, wanted, row, done, options)
            row += batch.num_rows


def bounded_batches(
    file: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str], batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these columns, in this order, in batches of about ``batch_bytes``, as far as
    the footer tells the sizes.
    """
    for group in groups:
        rows = _rows_per_batch(file.metadata.row_group(group), columns, batch_bytes)
        for batch in file.iter_batches(rows, [group], list(columns), use_threads=False):
            memory.trim_memory(batch.nbytes)
            yield batch.select(columns)


def _rows_per_batch(group: Any, columns: Sequence[str], batch_bytes: int) -> int:
    """Return how many rows of a row group hold about ``batch_bytes``, by the footer."""
    chunks = (group.column(at) for at in range(group.num_columns))
    size = sum(
        max(chunk.total_uncompressed_size, _VALUE_BYTES * chunk.num_values)
        for chunk in chunks
        if any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in columns)
    )
    return int(max(1, min(_MOST_ROWS, group.num_rows * batch_bytes // max(size, 1))))


def read_arrow(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the documents of an IPC file or stream; columns left out are not even decompressed."""
    with plain_path(source) as path, contextlib.closing(ArrowFile(path, name=source.name)) as file:
        schema = file.schema_arrow
        wanted = options.wanted(source, schema.names, lambda: text_columns(schema))
        first_row = 0
        for batch, done in file.read(wanted, utf8=False):
            # of a compressed file, its own size
            position = (source.size or 0) * done // max(file.size, 1)
            yield from checked_batches(source, batch, wanted, first_row, position, options)
            first_row += batch.num_rows


class ArrowFile:
    """An IPC file or stream, ``size`` bytes long, called ``name`` in messages. Only the columns asked
    for are decompressed.
    """

    rows = None  # to count them, the file must be read

    def __init__(self, path: str, name: str | None = None) -> None:
        self.name = name or path
        self._source = storage.for_arrow(path)
        self.size: int = self._source.size()
        self._is_stream = self._source.read(6) != b"ARROW1"
        self.schema_arrow: pa.Schema = self._open(pa.ipc.IpcReadOptions()).schema

    def _open(self, options: pa.ipc.IpcReadOptions) -> Any:
        self._source.seek(0)
        opened = pa.ipc.open_stream if self._is_stream else pa.ipc.open_file
        return opened(self._source, options=options)

    def _open_columns(self, names: Sequence[str]) -> Any:
        """Return a reader of these columns, in the order of the file."""
        fields = [self.schema_arrow.get_field_index(name) for name in names]
        return self._open(pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False))

    def read(self, names: list[str], utf8: bool = True) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield these columns of all batches in order, each with the bytes of the file up to its end,
        about; the others are neither read nor decompressed. With ``utf8=False`` strings are not
        checked but for where they begin and end.
        """
        reader = self._open_columns(names)
        if self._is_stream:
            for batch in reader:
                yield self._checked(batch.select(names), utf8), self._source.tell()
            if self._source.tell() < self.size:
                raise InputError(
                    "goes on after the end of its stream, where no reader of Arrow looks; write each"
                    " stream to a file of its own",
                    self.name,
                )
            return
        count = reader.num_record_batches
        for number in range(count):
            batch = reader.get_batch(number)
            yield self._checked(batch.select(names), utf8), self.size * (number + 1) // count

    @property
    def chunk_rows(self) -> list[int]:
        """The rows of each batch, by a column that is small in either layout."""
        per_number = "number_index" in self.schema_arrow.names
        counted = "number_index" if per_number else "number_mask"
        return [batch.num_rows for batch, _ in self.read([counted])]

    def stream(self, columns: list[str], batch_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield all rows of these columns, in the batches of the file."""
        return (batch for batch, _ in self.read(columns))

    def batch(self, number: int, names: list[str]) -> pa.RecordBatch:
        """Return these columns of one batch; a stream, which has no index, is read up to there."""
        reader = self._open_columns(names)
        in_order = itertools.islice(reader, number, None) if self._is_stream else None
        batch = next(in_order) if in_order else reader.get_batch(number)
        return self._checked(batch.select(names))

    def _checked(self, batch: pa.RecordBatch, utf8: bool = True) -> pa.RecordBatch:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not utf8 and column.type in _AS_BYTES:
                column = column.view(_AS_BYTES[column.type])
            check_column(column, name, self.name)
        return batch

    def close(self) -> None:
        """Close the file."""
        self._source.close()
