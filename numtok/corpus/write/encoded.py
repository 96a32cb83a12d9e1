"""Record batches into Parquet or Arrow IPC files.

In: record batches of one schema. Out: a file that appears under its name only when it is complete
    (``numtok.files``). ``read/encoded.py`` is the inverse.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from numtok import locations
from numtok.corpus.write.arrow import ArrowSink
from numtok.corpus.write.parquet import ROW_GROUP_BYTES, ParquetSink
from numtok.errors import OutputError, SchemaError
from numtok.files import new_file

SYNC_BYTES = (
    64 << 20
)  # that are written before they are brought to the disk, while more is being made
_FORMATS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
TENSORS = ("lists", "extension")
_COMPRESSIONS = {
    "parquet": ("zstd", "lz4", "snappy", "gzip", "none"),
    "arrow": ("zstd", "lz4", "none"),
}


class Sink(Protocol):
    """A file of one format that is being written: ``finish`` completes it; ``abandon``, at the end
    of any, lets go of all that it holds.
    """

    def write(self, batch: pa.RecordBatch) -> None: ...

    def finish(self) -> None: ...

    def abandon(self) -> None: ...


class _EarlySync:
    """Has what is written brought to the disk while more is being made: else all of that is left
    for the end, where nothing else is to do.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._begun = file, 0
        self._pool = ThreadPoolExecutor(1, "numtok-sync")
        self._running: Future[None] | None = None

    def look(self) -> None:
        """Begin anew if there is enough; raises what went wrong the last time."""
        if self._running is not None and self._running.done():
            self.wait()
        if self._running is None and (size := self._file.tell()) - self._begun >= SYNC_BYTES:
            self._begun = size
            self._running = self._pool.submit(os.fsync, self._file.fileno())

    def wait(self) -> None:
        """Until nothing runs. An error that the system told once, it does not tell again."""
        if self._running is not None:
            running, self._running = self._running, None
            running.result()

    def stop(self) -> None:
        self._pool.shutdown()


class BatchWriter:
    """An open output file: ``write`` record batches; ``rows`` and ``bytes_written`` tell how far it
    is.
    """

    def __init__(
        self, path: str, file: BinaryIO, schema: pa.Schema, open_sink: Callable[[], Sink]
    ) -> None:
        """Start the file; use ``open_writer``, which also finishes or removes it."""
        self.path, self.schema, self.rows = path, schema, 0
        self._file, self._size = file, 0
        self._finished = False
        with self._named_errors():
            self._sink = open_sink()
        self._sync = _EarlySync(file)

    @property
    def bytes_written(self) -> int:
        """Bytes of the file so far, without what still waits for its row group; of all of it, once
        it is finished.
        """
        return self._size if self._finished or self._file.closed else self._file.tell()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows.

        ``SchemaError`` if the columns are not those of the file; ``OutputError`` if the disk
        refuses.
        """
        if not batch.schema.equals(self.schema, check_metadata=False):
            raise SchemaError(
                f"{self.path}: the batch has columns\n{_columns(batch.schema)}\nbut the file"
                f" has\n{_columns(self.schema)}"
            )
        self.rows += batch.num_rows
        with self._named_errors():
            self._sink.write(batch)
            self._sync.look()

    def finish(self) -> None:
        """Write the rest and the footer, and force all of it to the disk; once."""
        if self._finished:
            return
        with self._named_errors():
            self._sink.finish()
            self._sync.wait()
            os.fsync(self._file.fileno())
            self._size, self._finished = self._file.tell(), True

    def sha256(self) -> str:
        """Of the file, which must be finished."""
        with self._named_errors():
            self._file.seek(0)
            return hashlib.file_digest(self._file, "sha256").hexdigest()  # type: ignore[arg-type]  # it is raw, and so can be read into

    def close(self) -> None:
        """Finish the file, and close it."""
        self.finish()
        with self._named_errors():
            self._file.close()

    def abandon(self) -> None:
        """Close what is open without complaint."""
        self._sink.abandon()
        self._sync.stop()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn a refusal of the system (disk full, quota, input/output error) into an
        ``OutputError``.
        """
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            written = self.bytes_written
            message = (
                f"cannot write {self.path}: {reason}, after {written:,} bytes ({self.rows:,} rows"
                " were taken); nothing is left under that name: make room or choose another place,"
                " then run again"
            )
            refusal = OutputError(message)
            refusal.errno = error.errno
            raise refusal from error


def _columns(schema: pa.Schema) -> str:
    return "\n".join(f"  {field.name}: {field.type}" for field in schema)


@contextlib.contextmanager
def open_writer(
    path: str | Path,
    schema: pa.Schema,
    format: str | None = None,
    compression: str | None = "zstd",
    overwrite: bool = False,
    row_group_bytes: int = ROW_GROUP_BYTES,
    tensors: str = "lists",
    threads: int = 1,
) -> Iterator[BatchWriter]:
    """A context in which to ``write`` record batches; the file appears under its name when the
    context ends well.

    Args:
        path: or a URL; ends in .parquet, or in .arrow, .feather or .ipc (an Arrow IPC file, which
            is Feather version 2).
        schema: of all batches; its metadata is stored.
        format: ``"parquet"`` or ``"arrow"``, whatever the suffix.
        compression: zstd, lz4, none; for Parquet also snappy, gzip.
        overwrite: replace a file that is there already; it stays untouched until the new one is
            complete.
        row_group_bytes: about how much Arrow data makes a row group of Parquet.
        tensors: how Parquet, which has none, stores them: as plain ``"lists"``, which every program
            reads, or as Arrow's ``"extension"`` type.
        threads: that encode and compress row groups of Parquet; the file is the same for every
            number.

    Raises:
        OutputError: the file exists, the options make no sense, or the disk refuses. After any
            exception, and after an interrupt, the temporary file is removed; what a killed process
            leaves, never ``NAME``, is removed by the next run.
    """
    path = str(locations.place(path))
    kind, codec = check_options(path, format, compression, tensors)
    with new_file(path, overwrite) as file:
        if kind == "parquet":
            made: Callable[..., Sink] = functools.partial(
                ParquetSink, file, schema, codec, row_group_bytes, tensors, threads
            )
        else:
            made = functools.partial(ArrowSink, file, schema, codec)
        writer = BatchWriter(path, file, schema, made)
        try:
            yield writer
            writer.close()
        finally:
            writer.abandon()


def check_options(
    path: str, format: str | None, compression: str | None, tensors: str
) -> tuple[str, str]:
    """Format and compression, or an ``OutputError`` that lists the possible ones."""
    kind = format if format is not None else _FORMATS.get(os.path.splitext(path)[1].lower())
    if kind not in _COMPRESSIONS:
        if format is not None:
            raise OutputError(f"{path}: unknown output format {format!r}; choose parquet or arrow")
        raise OutputError(
            f"{path}: cannot tell the format by this name; end it in one of {', '.join(_FORMATS)}"
        )
    codec = compression or "none"
    if codec not in _COMPRESSIONS[kind]:
        raise OutputError(
            f"{path}: no compression {codec!r} in {kind} files; choose one of"
            f" {', '.join(_COMPRESSIONS[kind])}"
        )
    if tensors not in TENSORS:
        raise OutputError(
            f"{path}: tensors={tensors!r} is unknown; use one of {', '.join(map(repr, TENSORS))}"
        )
    return kind, codec
