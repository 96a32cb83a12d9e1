"""Record batches to standard output, for other programs: JSON lines or an Arrow stream.

In: record batches of one schema. Out: each as soon as it is encoded. Unlike a file of
    ``write/encoded.py``, what was written stays when a run fails: the program that reads sees the
    exit status, or, in an Arrow stream, that its end is missing.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.ipc

from numtok.errors import OutputError
from numtok.tokenizer.stored import plain, plain_schema

STDOUT = "-"
STREAM_FORMATS = ("jsonl", "arrow")
CHUNK = 1 << 16
LONG = 1 << 26  # bytes of a batch, which is then one long row
PIECE = 1 << 16  # values of a list
_INFINITE = {
    float("inf"): "1e999",
    float("-inf"): "-1e999",
}  # numbers in JSON, which read back as infinite


class StreamWriter:
    """``write`` record batches; ``rows`` and ``bytes_written`` tell how far it is."""

    def __init__(
        self, file: BinaryIO, schema: pa.Schema, kind: str, compression: str | None
    ) -> None:
        self.rows, self.bytes_written = 0, 0
        self._file, self._kind = file, kind
        self._arrow: Any = None
        if kind == "arrow":
            self._stored = plain_schema(schema)
            options = pa.ipc.IpcWriteOptions(
                compression=None if compression in (None, "none") else pa.Codec(compression),
                use_threads=False,
            )
            self._arrow = pa.ipc.new_stream(self, self._stored, options=options)

    closed = False  # as pyarrow asks what it writes to

    def write(self, batch: pa.RecordBatch | bytes) -> None:
        """Append the rows; or bytes, as Arrow's writer calls it.

        Raises:
            BrokenPipeError: whoever reads has closed the pipe.
            OutputError: the system refuses otherwise.
        """
        if isinstance(batch, pa.RecordBatch):
            self.rows += batch.num_rows
            if self._arrow is not None:
                self._arrow.write_batch(plain(batch))
                return
            if batch.nbytes > LONG:
                for piece in json_pieces(batch):
                    self._put(piece.encode())
                return
            batch = "".join(json_lines(batch)).encode()
        self._put(batch)

    def _put(self, data: bytes) -> None:
        try:
            for start in range(
                0, len(data), CHUNK
            ):  # a reader that goes away is noticed between two of them
                self._file.write(data[start : start + CHUNK])
                self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            message = (
                f"cannot write to standard output: {error.strerror or error}, after"
                f" {self.bytes_written:,} bytes"
            )
            raise OutputError(message) from error
        self.bytes_written += len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def finish(self) -> None:
        """Say that nothing more comes, where the format has a word for it."""
        if self._arrow is not None:
            self._arrow.close()


def json_lines(batch: pa.RecordBatch) -> Iterator[str]:
    """One object per row.

    Tensors are plain lists, infinite values ``1e999``, dates and decimals their text.
    """
    for row in plain(batch).to_pylist():
        yield _json(row) + "\n"


def json_pieces(batch: pa.RecordBatch) -> Iterator[str]:
    """What :func:`json_lines` gives, in pieces of bounded size: as Python's lists and its integers,
    the ids of a long row take ten times their memory.
    """
    stored = plain(batch)
    for row in range(stored.num_rows):
        for name, column in zip(stored.schema.names, stored.slice(row, 1).columns, strict=True):
            yield f"{'{' if name == stored.schema.names[0] else ', '}{_json(name)}: "
            if column.null_count or not (
                pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
            ):
                yield _json(column[0].as_py())
                continue
            values = column.flatten()
            yield "["
            for start in range(0, len(values), PIECE):
                yield (", " if start else "") + _json(values.slice(start, PIECE).to_pylist())[1:-1]
            yield "]"
        yield "}\n"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except (
        ValueError
    ):  # there is an infinite value, or what is not a number, which JSON has no word for
        return _dumps(value)


def _dumps(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(
                f"{json.dumps(key, ensure_ascii=False)}: {_dumps(inner)}"
                for key, inner in value.items()
            )
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_dumps, value)) + "]"
    if isinstance(value, float) and value in _INFINITE:
        return _INFINITE[value]
    if isinstance(value, float) and value != value:
        return "null"
    return json.dumps(value, ensure_ascii=False, default=str)


@contextlib.contextmanager
def open_stream(
    schema: pa.Schema, format: str | None, compression: str | None
) -> Iterator[StreamWriter]:
    """A context in which to ``write`` record batches to standard output.

    Raises:
        OutputError: for a format that is no stream, or Arrow's bytes on a terminal.
    """
    kind = format or STREAM_FORMATS[0]
    if kind not in STREAM_FORMATS:
        raise OutputError(
            f"standard output takes {' or '.join(STREAM_FORMATS)}, not {kind!r}, which is a file:"
            " give it a name with -o"
        )
    if kind == "arrow" and compression not in (None, "none", "zstd", "lz4"):
        raise OutputError(
            f"no compression {compression!r} in an Arrow stream; choose zstd, lz4 or none"
        )
    if kind == "arrow" and sys.stdout.isatty():
        raise OutputError(
            "an Arrow stream is not for a terminal; pipe it into a program, or write"
            " --output-format jsonl"
        )
    writer = StreamWriter(sys.stdout.buffer, schema, kind, compression)
    yield writer
    writer.finish()
