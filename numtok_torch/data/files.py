"""Encoded files: where they are, and their chunks: row groups of Parquet, record batches of Arrow IPC files and streams.

In: paths. Out: :class:`File`, which reads nothing but the columns asked for of the chunk asked for, and notices damage. IPC files are memory-mapped, Parquet is
not: its pages are decoded into memory of their own anyway. None uses Arrow's threads, which do not survive a fork.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from numtok.corpus import parquet_footer
from numtok.corpus.arrow_files import ArrowFile
from numtok.errors import InputError
from numtok.tokenizer.stored import conform, conform_schema

SUFFIXES = (".parquet", ".arrow", ".feather", ".ipc")


def find_files(source: Any) -> list[str]:
    """The paths behind a file, a folder or a list of them."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and not _hidden(file.relative_to(path)))
            if not found:
                raise InputError(f"the folder holds no {', '.join(SUFFIXES)} file; give what `numtok encode` wrote", str(path))
            return [str(file) for file in found]
        if not path.is_file():
            raise InputError("no such file or folder; check the path", str(path))
        return [str(path)]
    if isinstance(source, Sequence) and source:
        return [path for one in source for path in find_files(one)]
    raise InputError(f"cannot read {type(source).__name__} as data: give a path, a folder, a list of them, a RecordBatch or a Table")


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


class File(ABC):
    """An open file of either kind: its schema, the rows of its chunks, and each as a record batch, with numtok's types."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.path, self.schema = path, conform_schema(schema, path)

    @abstractmethod
    def counts(self) -> list[int]:
        """Rows of each chunk."""

    @abstractmethod
    def batch(self, number: int, columns: list[str]) -> pa.RecordBatch:
        """These columns of a chunk."""

    def check_size(self) -> None:  # noqa: B027 (only maps can be lost)
        """Refuse to go on with a file whose map is no longer there."""


class _Parquet(File):
    def __init__(self, path: str) -> None:
        parquet_footer.check(path)
        self._file = pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
        super().__init__(path, self._file.schema_arrow)

    def counts(self) -> list[int]:
        metadata = self._file.metadata
        return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]

    def batch(self, number: int, columns: list[str]) -> pa.RecordBatch:
        table = self._file.read_row_group(number, columns=columns, use_threads=False).select(columns)
        return conform(table.combine_chunks().to_batches()[0], self.path)


class _Arrow(File):
    """An IPC file or stream, memory-mapped: only the columns asked for are decompressed. The batches of a stream, which has no index, stay in the map."""

    def __init__(self, path: str) -> None:
        self._file = ArrowFile(path, mapped=True)
        super().__init__(path, self._file.schema)

    def counts(self) -> list[int]:
        return [self._file.batch(number, ["number_index"]).num_rows for number in range(self._file.batches)]

    def batch(self, number: int, columns: list[str]) -> pa.RecordBatch:
        return conform(self._file.batch(number, columns), self.path)

    def check_size(self) -> None:
        self._file.check_size()


def open_file(path: str) -> File:
    """Open a file by what it begins with; ``InputError`` if that is neither kind."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic.startswith(b"PAR1"):
        return _Parquet(path)
    if magic == b"ARROW1" or magic.startswith(b"\xff\xff\xff\xff"):
        return _Arrow(path)
    raise InputError("neither a Parquet nor an Arrow IPC file; give a file that `numtok encode` wrote", path)
