"""Record batches into a file that appears under its name only when it is complete, or to standard
output, of which what was written stays when a run fails. ``read/encoded.py`` is the inverse.

:data:`OUTPUT_FORMATS` is the table of output formats: what a file's name must end in, and what
writes it. A new format is a sink and a line there.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.ipc

from numtok import storage
from numtok.errors import OutputError, SchemaError
from numtok.files import new_file
from numtok.tokenizer.layout import schema_with_lists, tensors_as_lists
from numtok.tokenizer.schema import METADATA_KEY, declared_columns

ZSTD_LEVEL = 1
# Of Arrow data; larger row groups are hardly smaller or quicker, cost memory, and one row costs the
# more to read.
ROW_GROUP_BYTES = 16 << 20
ENCODINGS = {"plain": "PLAIN", "delta": "DELTA_BINARY_PACKED", "split": "BYTE_STREAM_SPLIT"}
FITTING = {  # physical types that an encoding takes
    "DELTA_BINARY_PACKED": ("INT32", "INT64"),
    "BYTE_STREAM_SPLIT": ("INT32", "INT64", "FLOAT", "DOUBLE"),
}
_INFINITE = {float("inf"): "1e999", float("-inf"): "-1e999"}  # which read back as infinite


@dataclass(frozen=True)
class SinkOptions:
    """Options of writing."""

    compression: str = "zstd"
    row_group_bytes: int = ROW_GROUP_BYTES  # about how much Arrow data makes a row group of Parquet
    tensors: str = "lists"  # or, in Parquet, Arrow's "extension" type
    stream: bool = False  # whether it goes to standard output, which cannot be sought
    exact: bool = False  # whether JSON has neither 1e999 for infinite values nor null for NaN


class Sink(Protocol):
    """A file of one format that is being written."""

    writer: Any  # of Arrow, whose footer is written when it is closed; None without one

    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None:
        """Write what waits, and the footer."""


class _ParquetSink:
    """Batches are gathered into row groups of about the same size."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, options: SinkOptions) -> None:
        import pyarrow.parquet as pq

        self._schema = schema_with_lists(schema) if options.tensors == "lists" else schema
        self.writer = pq.ParquetWriter(file, self._schema, **_parquet_options(schema, options))
        self._limit, self._plain = options.row_group_bytes, options.tensors == "lists"
        self._gathered: list[pa.RecordBatch] = []
        self._bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        batch = batch.replace_schema_metadata(self._schema.metadata)
        self._gathered.append(tensors_as_lists(batch) if self._plain else batch)
        self._bytes += batch.nbytes
        if self._bytes >= self._limit:
            self._end_row_group()

    def _end_row_group(self) -> None:
        """Write one row group, or several if one batch was large."""
        table = pa.Table.from_batches(self._gathered, self._schema)
        groups = max(1, round(self._bytes / self._limit))
        self._gathered, self._bytes = [], 0
        self.writer.write_table(table, max(1, -(-table.num_rows // groups)))

    def close(self) -> None:
        if any(batch.num_rows for batch in self._gathered):
            self._end_row_group()
        self.writer.close()


def _parquet_options(schema: pa.Schema, options: SinkOptions) -> dict[str, Any]:
    """Return how to store each column, as it declares it; others are dictionaries.

    Checksums cost 3% and let a reader notice damage; statistics are of no use for lists.
    """
    declared = declared_columns(schema) if METADATA_KEY in (schema.metadata or {}) else {}
    dictionaries, others = [], {}
    for field in schema_with_lists(schema):
        column = declared.get(field.name)
        encoding = ENCODINGS.get(column.encoding) if column else None
        for leaf in _leaves(field):
            if encoding is None:
                dictionaries.append(leaf.path)
            elif leaf.physical_type in FITTING.get(encoding, (leaf.physical_type,)):
                others[leaf.path] = encoding
    return {
        "compression": options.compression,
        "compression_level": ZSTD_LEVEL if options.compression == "zstd" else None,
        "use_dictionary": dictionaries,
        "column_encoding": others or None,
        "write_statistics": False,
        "write_page_checksum": True,
        "store_schema": True,  # extension types, large lists and the schema's metadata come back
    }


def _leaves(field: pa.Field) -> list[Any]:
    """Return Parquet's columns for a field; OutputError if Parquet has none for its type."""
    import pyarrow.parquet as pq

    memory = pa.BufferOutputStream()
    try:
        pq.ParquetWriter(memory, pa.schema([field])).close()
    except pa.ArrowNotImplementedError:
        raise OutputError(
            f"column {field.name!r} is of type {field.type}, which Parquet cannot store; do not keep"
            " it, or write .arrow instead"
        ) from None
    leaves = pq.read_metadata(pa.BufferReader(memory.getvalue())).schema
    return [leaves.column(at) for at in range(len(leaves))]


class _ArrowSink:
    """Writes an IPC file; or a stream, without tensors."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, options: SinkOptions) -> None:
        level = ZSTD_LEVEL if options.compression == "zstd" else None
        codec = None if options.compression == "none" else pa.Codec(options.compression, level)
        ipc_options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
        self._stream = options.stream
        opened = pa.ipc.new_stream if options.stream else pa.ipc.new_file
        stored = schema_with_lists(schema) if options.stream else schema
        self.writer = opened(file, stored, options=ipc_options)

    def write(self, batch: pa.RecordBatch) -> None:
        self.writer.write_batch(tensors_as_lists(batch) if self._stream else batch)

    def close(self) -> None:
        self.writer.close()


class _LinesSink:
    """A JSON object or the text of each row, written as soon as its batch comes; ``lines`` are those
    of a batch, the number of rows before, and whether values are exact.
    """

    def __init__(
        self,
        file: BinaryIO,
        schema: pa.Schema,
        options: SinkOptions,
        lines: Callable[[pa.RecordBatch, int, bool], Iterator[str]],
    ) -> None:
        self._file, self._rows, self._exact, self._lines = file, 0, options.exact, lines
        self.writer = None

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write("".join(self._lines(batch, self._rows, self._exact)).encode())
        self._rows += batch.num_rows

    def close(self) -> None:
        pass


def _text_lines(batch: pa.RecordBatch, first: int, _: bool) -> Iterator[str]:
    """Yield the first column as lines; OutputError for a text with a line break."""
    import pyarrow.compute as pc

    texts = batch.column(0)
    breaks = pc.fill_null(pc.match_substring_regex(texts, r"[\r\n]"), False)
    if pc.any(breaks).as_py():
        row = first + pc.index(breaks, True).as_py() + 1
        raise OutputError(
            f"document {row} has a line break, so it is no line of a .txt file; write .jsonl"
            " instead"
        )
    yield from ((text or "") + "\n" for text in texts.to_pylist())


def json_lines(batch: pa.RecordBatch, first: int = 0, exact: bool = False) -> Iterator[str]:
    """Yield one object per row: tensors are plain lists, infinite values ``1e999``, what is not a
    number null, dates and decimals their text. OutputError for bytes, and if ``exact`` for values
    that are not finite.
    """
    for number, row in enumerate(tensors_as_lists(batch).to_pylist(), first + 1):
        parts = (
            f"{_json(name)}: {_json(value, exact, name, number)}" for name, value in row.items()
        )
        yield "{" + ", ".join(parts) + "}\n"


def _json(value: Any, exact: bool = False, name: str = "", row: int = 0) -> str:
    """Return a value as JSON; infinite values and NaN, which JSON has no word for, unless it is
    exact.
    """

    def refused(inner: Any) -> OutputError:
        return OutputError(
            f"column {name!r} of document {row} holds what JSON cannot ({inner!r:.60}); write"
            " .parquet or .arrow instead"
        )

    def text(inner: Any) -> str:
        if isinstance(inner, bytes):
            raise refused(inner)
        return str(inner)

    def lenient(inner: Any) -> str:
        if isinstance(inner, dict):
            return "{" + ", ".join(f"{_json(k)}: {lenient(v)}" for k, v in inner.items()) + "}"
        if isinstance(inner, list | tuple):  # tuples: of a map
            return "[" + ", ".join(map(lenient, inner)) + "]"
        if isinstance(inner, float) and not math.isfinite(inner):
            return _INFINITE.get(inner, "null")
        return json.dumps(inner, ensure_ascii=False, default=text)

    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=text)
    except ValueError:
        if exact:
            raise refused(value) from None
        return lenient(value)


@dataclass(frozen=True)
class OutputFormat:
    """A format."""

    suffixes: tuple[str, ...]  # of its files
    sink: Callable[[BinaryIO, pa.Schema, SinkOptions], Sink]
    compressions: tuple[str, ...] = ("none",)  # that it knows, the default first
    stream: bool = False  # whether standard output takes it
    columns: bool = True  # whether it holds more than texts


OUTPUT_FORMATS = {
    "parquet": OutputFormat((".parquet",), _ParquetSink, ("zstd", "lz4", "snappy", "gzip", "none")),
    "arrow": OutputFormat(
        (".arrow", ".feather", ".ipc"), _ArrowSink, ("zstd", "lz4", "none"), True
    ),
    "jsonl": OutputFormat(
        (".jsonl", ".ndjson"), functools.partial(_LinesSink, lines=json_lines), stream=True
    ),
    "txt": OutputFormat((".txt",), functools.partial(_LinesSink, lines=_text_lines), columns=False),
}


STDOUT = "-"
_CHUNK = 1 << 16  # bytes; a reader that goes away is noticed between two of them


class BatchWriter:
    """An open output: ``write`` record batches; ``rows`` and ``bytes_written`` tell how far it is."""

    def __init__(
        self,
        path: str,
        file: Any,
        schema: pa.Schema,
        kind: str,
        options: SinkOptions,
    ) -> None:
        """Start the file; use ``open_writer``, which also finishes or removes it."""
        self.path, self.schema, self.rows = path, schema, 0
        self._file, self._to_stdout = file, options.stream
        self._counted = _Counted(file, options.stream)
        with self._named_errors():
            self._sink: Sink = OUTPUT_FORMATS[kind].sink(self._counted, schema, options)  # type: ignore[arg-type]  # all that is asked of it

    @property
    def bytes_written(self) -> int:
        """Bytes of the file so far, without what still waits for its row group."""
        return self._counted.bytes_written

    @property
    def sha256(self) -> str:
        """The SHA-256 of these bytes."""
        return self._counted.digest.hexdigest()

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; ``SchemaError`` if their columns are not those of the file."""
        if not batch.schema.equals(self.schema, check_metadata=False):
            raise SchemaError(
                f"{self.path}: the batch has columns\n{_columns(batch.schema)}\nbut the file"
                f" has\n{_columns(self.schema)}"
            )
        with self._named_errors():
            self._sink.write(batch)
        self.rows += batch.num_rows

    def finish(self) -> None:
        """Write the rest and the footer, and force a file to the disk."""
        with self._named_errors():
            self._sink.close()
            if not self._to_stdout:
                os.fsync(self._file.fileno())

    def abandon(self) -> None:
        """Close what is open; what it writes goes nowhere, as the file may be closed already."""
        self._counted.abandoned = True
        with contextlib.suppress(Exception):
            self._sink.writer.close()

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        """Turn refusals of the system into ``OutputError``, and name the file in errors of the
        sink.
        """
        try:
            yield
        except BrokenPipeError:
            raise
        except OutputError as error:
            raise OutputError(f"{self.path}: {error}") from None
        except OSError as error:
            reason = f"{error.strerror or error}, after {self.bytes_written:,} bytes"
            if self._to_stdout:
                raise OutputError(f"cannot write to standard output: {reason}") from error
            refusal = OutputError(
                f"cannot write {self.path}: {reason} ({self.rows:,} rows); nothing is left under"
                " that name: make room or choose another place, then run again"
            )
            refusal.errno = error.errno
            raise refusal from error


class _Counted(io.RawIOBase):
    """A file that a sink writes to: it writes all bytes or raises an error, and counts and digests
    them. ``open_writer`` closes it.
    """

    def __init__(self, file: BinaryIO, to_stdout: bool) -> None:
        self._file, self.bytes_written, self.digest = file, 0, hashlib.sha256()
        self._most, self.abandoned = _CHUNK if to_stdout else None, False
        self._flushed: Any = file.flush if to_stdout else lambda: None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        while rest and not self.abandoned:
            written = self._file.write(rest[: self._most])
            self._flushed()
            self.digest.update(rest[:written])
            self.bytes_written += written
            rest = rest[written:]
        return len(data)

    def tell(self) -> int:
        return self.bytes_written

    def writable(self) -> bool:
        return True


def _columns(schema: pa.Schema) -> str:
    return "\n".join(f"  {field.name}: {field.type}" for field in schema)


@contextlib.contextmanager
def open_writer(
    path: str | Path,
    schema: pa.Schema,
    format: str | None = None,
    compression: str | None = "zstd",
    overwrite: bool = False,
    *,
    row_group_bytes: int = ROW_GROUP_BYTES,
    tensors: str = "lists",
    texts: bool = False,
) -> Iterator[BatchWriter]:
    """Give a context in which to ``write`` record batches; the file appears under its name when the
    context ends well, and after any exception nothing is left of it. The options are those of
    :class:`numtok.corpus.encode_options.EncodeOptions`; ``texts``: the first column is all that has to be
    written. OutputError if the file exists, the
    options make no sense, or the disk refuses.
    """
    path = storage.normalized(path)
    kind, codec = check_options(path, format, compression, texts)
    options = SinkOptions(codec, row_group_bytes, tensors, stream=path == STDOUT, exact=texts)
    with contextlib.ExitStack() as stack:
        file: Any = (
            sys.stdout.buffer if options.stream else stack.enter_context(new_file(path, overwrite))
        )
        writer = BatchWriter(path, file, schema, kind, options)
        try:
            yield writer
            writer.finish()
        except BaseException:
            writer.abandon()
            raise


def check_options(
    path: str, format: str | None, compression: str | None, texts: bool = False
) -> tuple[str, str]:
    """Return (format, compression), or raise an ``OutputError`` that lists the possible ones."""
    stream = path == STDOUT
    able = {
        name: output
        for name, output in OUTPUT_FORMATS.items()
        if (output.stream if stream else texts or output.columns)
    }
    suffix = os.path.splitext(path)[1].lower()
    by_name = "jsonl" if stream else next((n for n, f in able.items() if suffix in f.suffixes), "")
    kind = by_name if format is None else format
    if kind not in able:
        if stream:
            raise OutputError(
                f"standard output takes {' or '.join(able)}, not {kind!r}, which is a file: give it"
                " a name with -o"
            )
        if format is not None:
            raise OutputError(
                f"{path}: unknown output format {format!r}; choose {' or '.join(able)}"
            )
        suffixes = ", ".join(one for output in able.values() for one in output.suffixes)
        raise OutputError(
            f"{path}: cannot tell the format by this name; end it in one of {suffixes}"
            + (", or in / for a folder" if not texts else "")
        )
    if kind == "arrow" and stream and sys.stdout.isatty():
        raise OutputError(
            "an Arrow stream is not for a terminal; pipe it into a program, or write"
            " output_format='jsonl' (--output-format jsonl)"
        )
    output = able[kind]
    codec = compression or "none"
    if codec not in output.compressions:
        if compression != "zstd":  # which is the default where there is any
            raise OutputError(
                f"{path}: no compression {codec!r} in {kind} files; choose one of"
                f" {', '.join(output.compressions)}"
            )
        codec = "none"
    return kind, codec
