"""Encoded files as chunks of rows, in number layout and numpy arrays: row groups of Parquet, record
batches of Arrow IPC or in memory. For rows at random, each file is written once to an uncompressed
Arrow file in the cache folder, which is then mapped into memory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.file_cache import make_private, user_folder
from numtok.corpus.jobs.folder import shards_of
from numtok.corpus.read.encoded import SUFFIXES, EncodedFile, open_encoded
from numtok.errors import InputError, OutputError, SchemaError
from numtok.files import lock, new_file
from numtok.representations.columns import SEQ_LENGTHS
from numtok.storage import is_url
from numtok.tokenizer.layout import conform, conform_schema, to_number_layout
from numtok.tokenizer.schema import (
    METADATA_KEY,
    check_rows,
    no_rows,
    read_metadata,
    valid_rows,
)
from numtok_torch.data.packing import Ints
from numtok_torch.data.rows import stored_columns

OPEN_FILES = 16
MAPPED_CHUNKS = 256  # that are held open: views, which take little memory
BATCH_BYTES = 16 << 20  # of a converted file, about
FOOTER_BYTES = 1 << 16  # at the end of a file, of which a state is made
FORMAT = f"numtok rows 5 {BATCH_BYTES}"
NOTE = "numtok: %s is converted to Arrow, once, in %s; NUMTOK_CACHE names another folder, 0 none"
NOT_CONVERTED = (
    "numtok: cannot convert %s in %s (%s), so that all of a row group is read for each row; make"
    " room, or name another folder with NUMTOK_CACHE"
)

Row = dict[str, Any]


@dataclass
class Chunk:
    """Some rows, decoded as far as Arrow goes."""

    # (column, values, which of ``offsets``): row r has ``values[offsets[r]:offsets[r + 1]]``
    arrays: list[tuple[str, npt.NDArray[Any], int]]
    texts: list[tuple[str, pa.Array, int]]  # the same for columns that are no arrays
    # int64[rows + 1] each. Mostly there are two: columns with one value per token share one, and
    # those with one per number.
    offsets: list[Ints]
    scalars: dict[str, pa.Array]  # columns with one value per row
    valid: npt.NDArray[np.bool_]  # [rows]; a row that is not is null
    laid: Any = None  # its documents end to end, once :mod:`numtok_torch.data.blocks` has laid them

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Chunk:
        """Of a batch in number layout whose rows hold together."""
        shared: list[Ints] = []
        chunk = cls([], [], shared, {}, valid_rows(batch.column("input_ids")))
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not isinstance(column, pa.ListArray | pa.LargeListArray):
                chunk.scalars[name] = column
                continue
            values, offsets = memory.flat(column)
            same = (at for at, known in enumerate(shared) if np.array_equal(known, offsets))
            which = next(same, len(shared))
            shared += [offsets] if which == len(shared) else []
            if isinstance(values, pa.FixedShapeTensorArray):
                chunk.arrays.append((name, values.to_numpy_ndarray(), which))
            elif pa.types.is_primitive(values.type):
                chunk.arrays.append((name, memory.from_arrow(values), which))
            else:
                chunk.texts.append((name, values, which))
        return chunk

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
    """The chunks of one data set. It can be pickled: files are opened again in the other process.

    Attributes:
        schema: of the columns that are read, with its metadata.
        metadata: what the files say about themselves (``numtok.tokenizer.schema.read_metadata``).
        rows: int64[chunks], rows per chunk.
        is_quick: whether every chunk is in memory or mapped, so that none is decoded.

    Args:
        source: a file, a folder (searched for .parquet, .arrow, .feather and .ipc files, in the
            order of their paths), a list of these, or a ``RecordBatch`` or ``Table``.
        columns: to read besides those that tell the tokens and where numbers are; None for all
            tensors of ``FORMAT.md``.
        at_random: whether files are converted, if there is a cache folder with room.

    Raises:
        InputError: if a file is not there, or is of another kind, or damaged.
        SchemaError: if it was not written by numtok, the files do not belong together, a column
            is missing, or rows do not hold together.
    """

    def __init__(self, source: Any, columns: Sequence[str] | None, at_random: bool = False) -> None:
        self._memory: list[pa.RecordBatch] = []
        self._chunks: list[tuple[str, int, int]] = []  # of files: path, number, first row
        self._mapped: set[str] = set()  # those of the paths that are of converted files
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        if isinstance(source, pa.Table):
            self.schema = conform_schema(_selected(source.schema, columns, "the data in memory"))
            batches = source.select(self.schema.names).to_batches()
            self._memory = [conform(batch) for batch in batches if batch.num_rows]
            counts = [batch.num_rows for batch in self._memory]
        else:
            paths, counts = _find_files(source), []
            for path in paths:
                counts += self._add(path, paths[0], columns, at_random)
        self.metadata = read_metadata(self.schema)
        self.rows: Ints = np.array(counts, np.int64)
        self.is_quick = all(path in self._mapped for path, _, _ in self._chunks)
        self._forget()

    def _add(
        self, path: str, first_path: str, columns: Sequence[str] | None, at_random: bool
    ) -> list[int]:
        """Rows per chunk of a file, those that have any."""
        state = state_of(path)  # before it is opened: if that is another file, it is made anew
        file = open_encoded(path, at_random=True)
        schema = _selected(file.schema, columns, path)
        if path == first_path:
            self.schema = schema
        _check_same(self.schema, schema, first_path, path)
        place = converted(file, schema, state) if at_random else None
        if place is None:
            counts = file.chunk_rows()
        else:
            self._mapped.add(place)
            mapped = _map(place)
            counts = [mapped.get_batch(at).num_rows for at in range(mapped.num_record_batches)]
        first = 0
        for number, rows in enumerate(counts):
            self._chunks += [(place or path, number, first)] if rows else []
            first += rows
        return [rows for rows in counts if rows]

    def __len__(self) -> int:
        return int(self.rows.sum())

    def __getstate__(self) -> dict[str, Any]:
        return {name: one for name, one in vars(self).items() if name not in ("read", "_open")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        #: a chunk by its number
        self.read = functools.lru_cache(MAPPED_CHUNKS if self.is_quick else 1)(self._read)
        self._open = functools.lru_cache(OPEN_FILES)(self._opened)

    def _opened(self, path: str, process: int) -> Any:
        """An open file of this process: one that forked must not move its parent's place in it."""
        return _map(path) if path in self._mapped else open_encoded(path, at_random=True)

    def _read(self, number: int) -> Chunk:
        if self._memory:
            path, first, batch = "", int(self.rows[:number].sum()), self._memory[number]
        else:
            path, at, first = self._chunks[number]
            file = self._open(path, os.getpid())
            if path in self._mapped:
                return Chunk.of(file.get_batch(at))
            batch = file.chunk(at, self.schema.names)
        check_rows(batch, path, first)
        return Chunk.of(to_number_layout(batch))


def _find_files(source: Any) -> list[str]:
    """The paths of a file, a folder or a list of them."""
    if is_url(source):
        raise InputError(
            "is read row by row, at random, for which a store is too slow: copy it to this machine,"
            ' or mount it; or stream it, as with datasets.load_dataset("parquet", data_files=...,'
            " streaming=True)",
            source,
        )
    if isinstance(source, Sequence) and source and not isinstance(source, str):
        return [path for part in source for path in _find_files(part)]
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"cannot read {type(source).__name__} as data: give a path, a folder, a list of them, a"
            " RecordBatch or a Table"
        )
    root = Path(source)
    if root.is_file():
        return [str(root)]
    if not root.is_dir():
        raise InputError("no such file or folder; check the path", str(root))
    if (shards := shards_of(root)) is not None:
        return shards
    found = sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES)
    shown = [
        str(path)
        for path in found
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    ]
    if not shown:
        raise InputError(
            f"the folder holds no {', '.join(SUFFIXES)} file; give one that numtok wrote",
            str(root),
        )
    return shown


def _selected(schema: pa.Schema, columns: Sequence[str] | None, where: str) -> pa.Schema:
    """The part of the schema that is read."""
    metadata = read_metadata(schema, where)
    wanted = [name for name in schema.names if name in stored_columns()]
    if columns is not None:
        always = ["input_ids", "number_index" if metadata["layout"] == "number" else "number_mask"]
        always += [SEQ_LENGTHS.name] if metadata["pack"] else []
        wanted = list(dict.fromkeys([*always, *columns]))
    if missing := [name for name in wanted if name not in schema.names]:
        raise SchemaError(f"{where} has no column {missing[0]!r}; it has {', '.join(schema.names)}")
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


def state_of(path: str) -> str:
    """Return a digest that tells a file from all others that had its path: of its size, inode, times
    of change, and end, where Parquet and Arrow IPC have their footers.

    The time of modification alone is set back by programs that copy or unpack.
    """
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        file.seek(max(0, found.st_size - FOOTER_BYTES))
        end = hashlib.sha256(file.read(FOOTER_BYTES)).hexdigest()
    return _digest(found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, end)


def converted(file: EncodedFile, schema: pa.Schema, state: str) -> str | None:
    """The path of an uncompressed Arrow file, in number layout, with the columns of ``schema``, of
    a file in this state. None without a cache folder, or without room in it.

    Nothing is forced to the disk, as from a damaged end, which a power cut leaves, it is made anew.
    """
    folder = user_folder()
    if folder is None:
        return None
    folder = folder / "rows"
    name = _digest(os.path.realpath(file.path), *schema.names)
    place = folder / f"{name}-{_digest(FORMAT, state)}.arrow"
    try:
        if not _is_whole(place):
            _convert_once(file, schema, make_private(folder), place)
        for other in set(folder.glob(f"{name}-*.arrow")) - {place}:  # of a former state
            with contextlib.suppress(OSError):  # gone meanwhile, or open, on Windows
                other.unlink()
    except (OSError, OutputError) as error:
        logging.getLogger("numtok").warning(NOT_CONVERTED, file.path, folder, error)
        return None
    return str(place)


def _digest(*parts: Any) -> str:
    told = "\0".join(map(str, parts))
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _map(place: str | Path) -> pa.ipc.RecordBatchFileReader:
    try:
        return pa.ipc.open_file(pa.memory_map(str(place)))
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(
            f"is gone from the cache, or damaged ({error}); make the data set again", str(place)
        ) from error


def _is_whole(place: Path) -> bool:
    try:
        return bool(_map(place))
    except InputError:
        return False


def _convert_once(file: EncodedFile, schema: pa.Schema, folder: Path, place: Path) -> None:
    """One process converts, the others wait for it."""
    empty = to_number_layout(no_rows(schema))
    with open(folder / "lock", "wb") as waiting:
        with contextlib.suppress(OSError):  # a file system without locks
            lock(waiting.fileno())
        if _is_whole(place):
            return
        logging.getLogger("numtok").warning(NOTE, file.path, folder)
        with new_file(place, overwrite=True) as out, pa.ipc.new_file(out, empty.schema) as writer:
            for batch in _read_ahead(file.batches(BATCH_BYTES, schema.names)):
                writer.write(to_number_layout(batch))


def _read_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same; while one is worked on, a thread reads the next."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, batches, None)
            yield batch
