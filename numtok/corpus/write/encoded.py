"""Record batches into Parquet or Arrow IPC files.

In: record batches of one schema. Out: a file that appears under its name only when it is complete (``numtok.files``).
``read/encoded.py`` is the inverse.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.ipc

from numtok.corpus import parquet_footer
from numtok.corpus.arrow_files import no_rows, seal
from numtok.errors import OutputError, SchemaError
from numtok.files import new_file
from numtok.tokenizer.stored import plain, plain_schema

_FORMATS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow"}
TENSORS = ("lists", "extension")
_COMPRESSIONS = {"parquet": ("zstd", "lz4", "snappy", "gzip", "none"), "arrow": ("zstd", "lz4", "none")}

# Measured per core on 16 MB of ids of Wikipedia text (GPT-NeoX vocabulary) and its numbers, MB/s of Arrow data and ratio:
#   input_ids     plain zstd-1 259, 3.09 | zstd-3 slower, 3.27 | lz4 328, 2.27 | dictionary zstd-1 256, 2.67
#                 DELTA_BINARY_PACKED 1.9 | BYTE_STREAM_SPLIT zstd-1 379, 3.05, but readers before 2024 know it for floats only
#   number_index  DELTA_BINARY_PACKED zstd-1 354, 4.68 | plain zstd-1 173, 2.04 | dictionary 275, 2.11
#   number_value  dictionary zstd-1 413, 5.93 | plain zstd-1 302, 4.61 | BYTE_STREAM_SPLIT zstd-1 424, 5.18
# So: ids plain (a vocabulary overflows the dictionary), positions by their differences, all else by dictionary (bits of
# numbers: two values), which Parquet gives up by itself where it does not pay. Checksums cost 3% and let a reader notice
# damage; statistics per page are of no use for lists.
_PLAIN = frozenset({"input_ids"})
_RISING = frozenset({"number_index"})
_ZSTD_LEVEL = 1


class BatchWriter:
    """An open output file: ``write`` record batches; ``rows`` and ``bytes_written`` tell how far it is.

    Batches for Parquet are gathered into row groups of about ``row_group_bytes`` of Arrow data, which bounds the memory.
    """

    def __init__(
        self, path: Path, file: BinaryIO, schema: pa.Schema, kind: str, compression: str, row_group_bytes: int, tensors: str
    ) -> None:
        """Start the file; use ``open_writer``, which also finishes or removes it."""
        self.path, self.schema, self.rows = path, schema, 0
        self._file, self._row_group_bytes = file, row_group_bytes
        self._pending: list[pa.RecordBatch] = []
        self._batches = 0
        self._sealed: parquet_footer.SealedFile | None = None
        self._pending_bytes = 0
        self._sink: Any
        with self._named_errors():
            if kind == "parquet":
                import pyarrow.parquet as pq

                self._stored = plain_schema(schema) if tensors == "lists" else schema
                self._sealed = parquet_footer.SealedFile(file)
                self._sink = pq.ParquetWriter(self._sealed, self._stored, **_parquet_options(self._stored, compression))
            else:
                codec = None if compression == "none" else pa.Codec(compression, _ZSTD_LEVEL if compression == "zstd" else None)
                self._sink = pa.ipc.new_file(file, schema, options=pa.ipc.IpcWriteOptions(compression=codec, use_threads=False))

    @property
    def bytes_written(self) -> int:
        """Bytes of the file so far, without what still waits for its row group."""
        return 0 if self._file.closed else self._file.tell()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows. ``SchemaError`` if the columns are not those of the file; ``OutputError`` if the disk refuses."""
        if not batch.schema.equals(self.schema, check_metadata=False):
            raise SchemaError(f"{self.path}: the batch has columns\n{_columns(batch.schema)}\nbut the file has\n{_columns(self.schema)}")
        self.rows += batch.num_rows
        if isinstance(self._sink, pa.ipc.RecordBatchFileWriter):
            self._write_sealed(batch)
            return
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= self._row_group_bytes:
            self._write_pending()

    def _write_pending(self) -> None:
        """Write what was gathered as one row group, or several if one batch was large."""
        batches = (
            self._pending
            if self._stored is self.schema
            else [plain(batch.replace_schema_metadata(self.schema.metadata)) for batch in self._pending]
        )
        table = pa.Table.from_batches(batches, self._stored)
        groups = max(1, round(self._pending_bytes / self._row_group_bytes))
        self._pending, self._pending_bytes = [], 0
        with self._named_errors():
            self._sink.write_table(table, row_group_size=max(1, -(-table.num_rows // groups)))

    def _write_sealed(self, batch: pa.RecordBatch, end: bool = False) -> None:
        """Write a batch of an Arrow IPC file with its checksums."""
        with self._named_errors():
            self._sink.write_batch(batch, custom_metadata=seal(batch, self._batches, end))
        self._batches += 1

    def finish(self) -> None:
        """Write the rest and the footer, and force all of it to the disk."""
        if isinstance(self._sink, pa.ipc.RecordBatchFileWriter):
            self._write_sealed(no_rows(self.schema), end=True)
        if self._pending:
            self._write_pending()
        with self._named_errors():
            if self._sealed is not None:
                self._sealed.begin()
            self._sink.close()
            if self._sealed is not None:
                self._sealed.end()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def abandon(self) -> None:
        """Close what is open without complaint: Arrow's writer would otherwise write its footer later, into a closed file."""
        with contextlib.suppress(Exception):
            self._sink.close()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn a refusal of the system (disk full, quota, input/output error) into an ``OutputError``."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            written = self.bytes_written
            message = (
                f"cannot write {self.path}: {reason}, after {written:,} bytes ({self.rows:,} rows were taken); nothing is left under "
                "that name: make room or choose another place, then run again"
            )
            refusal = OutputError(message)
            refusal.errno = error.errno
            raise refusal from error


def _columns(schema: pa.Schema) -> str:
    return "\n".join(f"  {field.name}: {field.type}" for field in schema)


def _parquet_options(schema: pa.Schema, compression: str) -> dict[str, Any]:
    """How to store each leaf column; the note at the top of this file says why."""
    import pyarrow.parquet as pq

    memory = io.BytesIO()
    with pq.ParquetWriter(memory, schema):
        pass  # an empty file tells how Parquet names the leaves, such as input_ids.list.element
    leaves = pq.read_metadata(memory).schema
    paths = [leaves.column(index).path for index in range(len(leaves))]
    integers = {path for index, path in enumerate(paths) if leaves.column(index).physical_type in ("INT32", "INT64")}
    rising = [path for path in paths if path.split(".")[0] in _RISING and path in integers]
    return {
        "compression": compression,
        "compression_level": _ZSTD_LEVEL if compression == "zstd" else None,
        "use_dictionary": [path for path in paths if path not in rising and path.split(".")[0] not in _PLAIN],
        "column_encoding": dict.fromkeys(rising, "DELTA_BINARY_PACKED") or None,
        "write_statistics": False,
        "write_page_checksum": True,
        "store_schema": True,  # extension types, large lists and the schema's metadata come back
    }


@contextlib.contextmanager
def open_writer(
    path: str | Path,
    schema: pa.Schema,
    format: str | None = None,
    compression: str | None = "zstd",
    overwrite: bool = False,
    row_group_bytes: int = 32 << 20,
    tensors: str = "lists",
) -> Iterator[BatchWriter]:
    """A context in which to ``write`` record batches; the file appears under its name when the context ends well.

    Args:
        path: ends in .parquet, or in .arrow, .feather or .ipc (an Arrow IPC file, which is Feather version 2).
        schema: of all batches; its metadata is stored.
        format: ``"parquet"`` or ``"arrow"``, whatever the suffix.
        compression: zstd, lz4, none; for Parquet also snappy, gzip.
        overwrite: replace a file that is there already; it stays untouched until the new one is complete.
        row_group_bytes: about how much Arrow data makes a row group of Parquet.
        tensors: how Parquet, which has none, stores them: as plain ``"lists"``, which every program reads, or as Arrow's ``"extension"`` type.

    Raises:
        OutputError: the file exists, the options make no sense, or the disk refuses. After any exception, and after an
            interrupt, the temporary file is removed; what a killed process leaves, never ``NAME``, is removed by the next run.
    """
    path = Path(path)
    kind, codec = check_options(path, format, compression, tensors)
    with new_file(path, overwrite) as file:
        writer = BatchWriter(path, file, schema, kind, codec, row_group_bytes, tensors)
        try:
            yield writer
            writer.finish()
        finally:
            writer.abandon()


def check_options(path: Path, format: str | None, compression: str | None, tensors: str) -> tuple[str, str]:
    """Format and compression, or an ``OutputError`` that lists the possible ones."""
    kind = format if format is not None else _FORMATS.get(path.suffix.lower())
    if kind not in _COMPRESSIONS:
        if format is not None:
            raise OutputError(f"{path}: unknown output format {format!r}; choose parquet or arrow")
        raise OutputError(f"{path}: cannot tell the format by this name; end it in one of {', '.join(_FORMATS)}")
    codec = compression or "none"
    if codec not in _COMPRESSIONS[kind]:
        raise OutputError(f"{path}: no compression {codec!r} in {kind} files; choose one of {', '.join(_COMPRESSIONS[kind])}")
    if tensors not in TENSORS:
        raise OutputError(f"{path}: tensors={tensors!r} is unknown; use one of {', '.join(map(repr, TENSORS))}")
    return kind, codec
