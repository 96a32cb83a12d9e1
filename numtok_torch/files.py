"""Encoded files: where they are, and their chunks: row groups of Parquet, record batches of Arrow IPC files and streams.

In: paths. Out: :class:`File`, memory-mapped, which reads nothing but the columns asked for of the chunk asked for. None uses Arrow's threads, which do
not survive a fork.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from numtok.errors import InputError

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
    """An open file of either kind: its schema, the rows of its chunks, and each as a record batch."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    @abstractmethod
    def counts(self) -> list[int]:
        """Rows of each chunk."""

    @abstractmethod
    def batch(self, number: int, columns: list[str]) -> pa.RecordBatch:
        """These columns of a chunk."""


class _Parquet(File):
    def __init__(self, path: str) -> None:
        self._file = pq.ParquetFile(path, memory_map=True, pre_buffer=False, page_checksum_verification=True)
        super().__init__(self._file.schema_arrow)

    def counts(self) -> list[int]:
        metadata = self._file.metadata
        return [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]

    def batch(self, number: int, columns: list[str]) -> pa.RecordBatch:
        table = self._file.read_row_group(number, columns=columns, use_threads=False).select(columns)
        return table.combine_chunks().to_batches()[0]


class _Arrow(File):
    """An IPC file; only the columns asked for are decompressed."""

    def __init__(self, path: str) -> None:
        self._mapped = pa.memory_map(path)
        super().__init__(pa.ipc.open_file(self._mapped).schema)

    def _reader(self, columns: list[str]) -> Any:
        fields = [self.schema.get_field_index(name) for name in columns]
        return pa.ipc.open_file(self._mapped, options=pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False))

    def counts(self) -> list[int]:
        reader = self._reader(["number_index"])
        return [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]

    def batch(self, number: int, columns: list[str]) -> pa.RecordBatch:
        return self._reader(columns).get_batch(number).select(columns)


class _Stream(File):
    """An IPC stream, which has no index: its batches are found once, and stay in the map."""

    def __init__(self, path: str) -> None:
        reader = pa.ipc.open_stream(pa.memory_map(path))
        super().__init__(reader.schema)
        self._batches = list(reader)

    def counts(self) -> list[int]:
        return [batch.num_rows for batch in self._batches]

    def batch(self, number: int, columns: list[str]) -> pa.RecordBatch:
        return self._batches[number].select(columns)


def open_file(path: str) -> File:
    """Open a file by what it begins with; ``InputError`` if that is neither kind."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic.startswith(b"PAR1"):
        return _Parquet(path)
    if magic == b"ARROW1":
        return _Arrow(path)
    if magic.startswith(b"\xff\xff\xff\xff"):
        return _Stream(path)
    raise InputError("neither a Parquet nor an Arrow IPC file; give a file that `numtok encode` wrote", path)
