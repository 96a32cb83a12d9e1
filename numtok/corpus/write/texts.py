"""Texts into .jsonl or .txt files, the counterpart of ``encoded.py`` for decoded text.

In: record batches whose first column is the text. Out: one JSON object per row, or one line per
    row; the file appears when it is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from numtok.errors import OutputError
from numtok.files import new_file

TEXT_FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "txt"}


class TextWriter:
    """An open text file: ``write`` record batches; ``rows`` and ``bytes_written`` tell how far it
    is.
    """

    def __init__(self, path: str, file: BinaryIO, kind: str) -> None:
        self.path, self.rows, self.bytes_written = path, 0, 0
        self._file, self._kind = file, kind

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows.

        ``OutputError`` if the disk refuses, or a text with a line break is to be a line.
        """
        lines = (
            self._json_lines(batch) if self._kind == "jsonl" else self._plain_lines(batch.column(0))
        )
        data = memoryview("".join(lines).encode())
        try:
            while data:
                count = self._file.write(data)
                self.bytes_written += count
                data = data[count:]
        except OSError as error:
            raise self._refusal(error) from error
        self.rows += batch.num_rows

    def finish(self) -> None:
        """Force all of it to the disk."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._refusal(error) from error

    def _json_lines(self, batch: pa.RecordBatch) -> Iterator[str]:
        for number, row in enumerate(batch.to_pylist(), self.rows + 1):
            try:
                yield json.dumps(row, ensure_ascii=False, allow_nan=False, default=_as_json) + "\n"
            except ValueError:
                name = next(name for name, value in row.items() if not _is_json(value))
                message = (
                    f"column {name!r} of document {number} holds what JSON cannot"
                    f" ({row[name]!r:.60}); write .parquet or .arrow instead"
                )
                raise OutputError(f"{self.path}: {message}") from None

    def _plain_lines(self, texts: pa.Array) -> Iterator[str]:
        breaks = pc.fill_null(pc.match_substring_regex(texts, r"[\r\n]"), False)
        if pc.any(breaks).as_py():
            row = self.rows + pc.index(breaks, True).as_py() + 1
            raise OutputError(
                f"{self.path}: document {row} has a line break, so it is no line of a .txt file;"
                " write .jsonl instead"
            )
        return ((text or "") + "\n" for text in texts.to_pylist())

    def _refusal(self, error: OSError) -> OutputError:
        reason = (
            f"{error.strerror or error}, after {self.bytes_written:,} bytes; nothing is left under"
            " that name"
        )
        refusal = OutputError(
            f"cannot write {self.path}: {reason}: make room or choose another place, then run again"
        )
        refusal.errno = error.errno
        return refusal


def _as_json(value: Any) -> str:
    """Dates, times and decimals as their text; bytes have none."""
    if isinstance(value, bytes):
        raise ValueError("bytes")
    return str(value)


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False, default=_as_json)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def open_text_writer(path: str, kind: str, overwrite: bool = False) -> Iterator[TextWriter]:
    """A context in which to ``write`` record batches as ``"jsonl"`` or ``"txt"``; see
    ``open_writer``.
    """
    with new_file(path, overwrite) as file:
        writer = TextWriter(path, file, kind)
        yield writer
        writer.finish()
