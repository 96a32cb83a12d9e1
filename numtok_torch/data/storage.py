"""Encoded files as chunks that are read on demand: row groups of Parquet, record batches of Arrow
IPC, batches in memory.

In: paths, a folder, a record batch or a table. Out: :class:`Storage`, which knows how many rows
    each chunk has without reading it, and gives a :class:`Chunk`, whose rows are dictionaries of
    numpy arrays, views of the Arrow buffers wherever these are not compressed. Arrow files are
    memory-mapped.

A ``Storage`` can be pickled: files are opened again in the other process, the cache stays behind.
    It does not use Arrow's threads, which do not survive a fork.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.jobs.folder import shards_of
from numtok.corpus.read.encoded import SUFFIXES, EncodedFile, open_encoded
from numtok.errors import InputError, SchemaError
from numtok.locations import is_url
from numtok.representations.columns import SEQ_LENGTHS
from numtok.tokenizer.schema import METADATA_KEY, flat, read_metadata
from numtok.tokenizer.stored import check_rows, conform, conform_schema
from numtok_torch.data.arrow_cache import as_arrow
from numtok_torch.data.streams import Ints, stored_columns

OPEN_FILES = 16

Row = dict[str, Any]


@dataclass
class Chunk:
    """Some rows, decoded as far as Arrow goes.

    Attributes:
        arrays: (column, values, which of ``offsets``): row r has ``values[offsets[r]:offsets[r +
            1]]``.
        texts: the same for columns that are no arrays.
        offsets: each [rows + 1]. Mostly there are two: columns with one value per token share one,
            and those with one per number.
        scalars: columns with one value per row.
        valid: [rows]; a row that is not is null.
        nbytes: of the Arrow data.
        made: what a reader made of it, to be kept as long as it.
    """

    arrays: list[tuple[str, npt.NDArray[Any], int]]
    texts: list[tuple[str, pa.Array, int]]
    offsets: list[list[int]]
    scalars: dict[str, pa.Array]
    valid: list[bool]
    nbytes: int
    made: dict[str, Any] = attribute(default_factory=dict)

    def row(self, number: int) -> Row:
        """One row: arrays are read-only views, texts are Python's."""
        parts = [slice(offsets[number], offsets[number + 1]) for offsets in self.offsets]
        row: Row = {name: values[parts[which]] for name, values, which in self.arrays}
        for name, texts, which in self.texts:
            row[name] = texts[parts[which]].to_pylist()
        for name, column in self.scalars.items():
            row[name] = column[number].as_py()
        return row


class Storage:
    """The chunks of one data set.

    Attributes:
        schema: of the columns that are read, with its metadata.
        metadata: what the files say about themselves (``numtok.tokenizer.schema.read_metadata``).
        rows: int64[chunks], rows per chunk.

    Args:
        source: a file, a folder (searched for .parquet, .arrow, .feather and .ipc files, in the
            order of their paths), a list of these, or a ``RecordBatch`` or ``Table``.
        columns: to read besides those that tell the tokens and where numbers are; None for all
            tensors of ``FORMAT.md``.
        cache_bytes: how much Arrow data of chunks read last is kept in memory.
        disk_bytes: how much disk the files may take that Parquet is converted to for reading at
            random (:mod:`numtok_torch.data.arrow_cache`). 0: nothing is converted.

    Raises:
        InputError: if a file is not there, or is of another kind, or damaged.
        SchemaError: if it was not written by numtok, the files do not belong together, or a column
            is missing.
    """

    def __init__(
        self, source: Any, columns: Sequence[str] | None, cache_bytes: int, disk_bytes: int = 0
    ) -> None:
        self.cache_bytes, self._disk_bytes = cache_bytes, disk_bytes
        self._memory: list[pa.RecordBatch] = []
        self._chunks: list[tuple[str, int, int]] = []  # of files: path, number, first row
        self._converted: dict[
            str, str
        ] = {}  # Parquet files, to the Arrow files read in their place
        self._forget()
        if isinstance(source, pa.RecordBatch | pa.Table):
            whole = (
                pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
            )
            self.schema = conform_schema(_selected(whole.schema, columns, "the data in memory"))
            self._memory = [
                conform(batch)
                for batch in whole.select(self.schema.names).to_batches()
                if batch.num_rows
            ]
            counts = [batch.num_rows for batch in self._memory]
        else:
            counts = self._survey(_find_files(source), columns)
        self.metadata = read_metadata(self.schema)
        self.rows: Ints = np.array(counts, np.int64)

    def _survey(self, paths: Sequence[str], columns: Sequence[str] | None) -> list[int]:
        """Rows per chunk of all files, and their common schema."""
        counts: list[int] = []
        for path in paths:
            schema = _selected(open_encoded(path, at_random=True).schema, columns, path)
            if path == paths[0]:
                self.schema = schema
            else:
                _check_same(self.schema, schema, paths[0], path)
            if (place := as_arrow(path, schema.names, self._disk_bytes)) is not None:
                self._converted[path] = place
            first = 0
            for number, rows in enumerate(self._file(path).chunk_rows()):
                if rows:
                    self._chunks.append((path, number, first))
                    counts.append(rows)
                first += rows
        return counts

    def __len__(self) -> int:
        return int(self.rows.sum())

    @property
    def is_converted(self) -> bool:
        """Whether any file is read as an Arrow file in the cache, in chunks of its own."""
        return bool(self._converted)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in vars(self).items()
            if name not in ("_files", "_cache", "_process")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        self._files: OrderedDict[str, EncodedFile] = OrderedDict()
        self._cache: OrderedDict[int, Chunk] = OrderedDict()
        self._cached_bytes = 0
        self._process = os.getpid()

    def read(self, number: int) -> Chunk:
        """A chunk, from the cache if it is there."""
        if self._process != os.getpid():  # forked: the parent's open files are its own
            self._forget()
        if (chunk := self._cache.get(number)) is not None:
            if self._is_there(number):
                self._cache.move_to_end(number)
                return chunk
            self._cached_bytes -= self._cache.pop(number).nbytes
        chunk = self._decode(number)
        self._cache[number] = chunk
        self._cached_bytes += chunk.nbytes
        while len(self._cache) > 1 and self._cached_bytes > self.cache_bytes:
            self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
        return chunk

    def _is_there(self, number: int) -> bool:
        """Whether the map below a chunk is; of a file that cannot be made again, or else an error."""
        path = "" if self._memory else self._chunks[number][0]
        try:
            if (file := self._files.get(path)) is not None:
                file.check_size()
        except InputError:
            if path not in self._converted:
                raise
            return False
        return True

    def _decode(self, number: int) -> Chunk:
        if self._memory:
            batch, first = self._memory[number], int(self.rows[:number].sum())
            check_rows(batch, "", first)
            return decode(batch)
        path, chunk, first = self._chunks[number]
        if path not in self._converted:
            batch = self._file(path).chunk(chunk, self.schema.names)
            check_rows(batch, path, first)
            return decode(batch)
        try:
            return decode(self._file(path).chunk(chunk, self.schema.names))
        except (InputError, SchemaError):  # what is damaged in the cache is made again
            self._files.pop(path, None)
            Path(self._converted[path]).unlink(missing_ok=True)
            return decode(self._file(path).chunk(chunk, self.schema.names))

    def _file(self, path: str) -> EncodedFile:
        if path not in self._files:
            self._files[path] = open_encoded(self._place(path), at_random=True)
            if len(self._files) > OPEN_FILES:
                self._files.popitem(last=False)
        self._files.move_to_end(path)
        return self._files[path]

    def _place(self, path: str) -> str:
        """Where a file is read: itself, or the Arrow file made of it, made again if it is gone."""
        place = self._converted.get(path, path)
        if place == path or os.path.exists(place):
            return place
        if as_arrow(path, self.schema.names, self._disk_bytes) != place:
            raise InputError("was changed, or cannot be converted any more; begin again", path)
        return place


def _find_files(source: Any) -> list[str]:
    """The paths behind a file, a folder or a list of them."""
    if is_url(source):
        raise InputError(
            "is read row by row, at random, for which a store is too slow: copy it to this machine,"
            ' or mount it; or stream it, as with datasets.load_dataset("parquet", data_files=...,'
            " streaming=True)",
            source,
        )
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():
            if (shards := shards_of(path)) is not None:
                return shards
            files = sorted(
                file
                for file in path.rglob("*")
                if file.suffix in SUFFIXES and not _hidden(file.relative_to(path))
            )
            if not files:
                raise InputError(
                    f"the folder holds no {', '.join(SUFFIXES)} file; give what `numtok encode`"
                    " wrote",
                    str(path),
                )
            return [str(file) for file in files]
        if not path.is_file():
            raise InputError("no such file or folder; check the path", str(path))
        return [str(path)]
    if isinstance(source, Sequence) and source:
        return [path for part in source for path in _find_files(part)]
    raise InputError(
        f"cannot read {type(source).__name__} as data: give a path, a folder, a list of them, a"
        " RecordBatch or a Table"
    )


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _selected(schema: pa.Schema, columns: Sequence[str] | None, where: str) -> pa.Schema:
    """The part of the schema that is read."""
    metadata = read_metadata(schema, where)
    always = ["input_ids", "number_index" if metadata["layout"] == "number" else "number_mask"]
    always += [SEQ_LENGTHS.name] if metadata["pack"] else []
    wanted = (
        [name for name in schema.names if name in stored_columns()]
        if columns is None
        else list(columns)
    )
    if missing := [name for name in (*always, *wanted) if name not in schema.names]:
        raise SchemaError(f"{where} has no column {missing[0]!r}; it has {', '.join(schema.names)}")
    if columns is not None:
        wanted = [*always, *(name for name in wanted if name not in always)]
    return pa.schema(
        [schema.field(name) for name in wanted], {METADATA_KEY: schema.metadata[METADATA_KEY]}
    )


def _check_same(schema: pa.Schema, other: pa.Schema, path: str, other_path: str) -> None:
    first, second = read_metadata(schema, path), read_metadata(other, other_path)
    if differing := [key for key in ("tokenizer", "frame") if first[key] != second[key]]:
        raise SchemaError(
            f"{path} and {other_path} do not belong together: their {differing[0]} is"
            f" {first[differing[0]]} and {second[differing[0]]}; encode them with the same"
            " tokenizer and options"
        )
    kinds, other_kinds = (
        {field.name: getattr(field.type, "value_type", field.type) for field in fields}
        for fields in (schema, other)
    )
    if kinds != other_kinds:
        raise SchemaError(
            f"{path} and {other_path} do not have the same columns: {', '.join(schema.names)};"
            f" {', '.join(other.names)}"
        )


def decode(batch: pa.RecordBatch) -> Chunk:
    """A record batch, whose rows hold together (:func:`numtok.tokenizer.stored.check_rows`), as
    numpy arrays.
    """
    shared: list[Ints] = []  # each of them once
    scalars: dict[str, pa.Array] = {}
    ids = batch.column("input_ids")
    valid: list[bool] = ids.is_valid().to_pylist() if ids.null_count else [True] * len(ids)
    chunk = Chunk([], [], [], scalars, valid, batch.nbytes)
    for field in batch.schema:
        column = batch.column(field.name)
        if not isinstance(column, pa.ListArray | pa.LargeListArray):
            scalars[field.name] = column
            continue
        values, offsets = flat(column)
        which = next(
            (at for at, known in enumerate(shared) if np.array_equal(known, offsets)), len(shared)
        )
        shared += [offsets] if which == len(shared) else []
        decoded = _numpy(values)
        if isinstance(decoded, np.ndarray):
            chunk.arrays.append((field.name, decoded, which))
        else:
            chunk.texts.append((field.name, decoded, which))
    chunk.offsets = [offsets.tolist() for offsets in shared]
    return chunk


def _numpy(values: pa.Array) -> npt.NDArray[Any] | pa.Array:
    """Numbers and tensors as an array, all else as it is."""
    if isinstance(values, pa.FixedShapeTensorArray):
        return np.asarray(values.to_numpy_ndarray())
    if (
        pa.types.is_integer(values.type)
        or pa.types.is_floating(values.type)
        or pa.types.is_boolean(values.type)
    ):
        return memory.from_arrow(values)
    return values
