"""Record batches into a file, in any of the formats of :mod:`numtok.corpus.write.sinks`, that
appears under its name only when it is complete, or to standard output, of which what was written
stays when a run fails. ``read/encoded.py`` is the inverse.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from numtok import storage
from numtok.corpus.write.sinks import OUTPUT_FORMATS, ROW_GROUP_BYTES, Sink, SinkOptions
from numtok.errors import OutputError, SchemaError
from numtok.files import new_file

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
        return int(self._counted.bytes_written)

    @property
    def sha256(self) -> str:
        """The SHA-256 of these bytes."""
        return str(self._counted.digest.hexdigest())

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
            self._sink.finish()
            if not self._to_stdout:
                os.fsync(self._file.fileno())

    def abandon(self) -> None:
        """Close what is open without complaint."""
        self._sink.abandon()

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
        self._most = _CHUNK if to_stdout else None
        self._flushed: Any = file.flush if to_stdout else lambda: None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        while rest:
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
        finally:
            writer.abandon()


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
