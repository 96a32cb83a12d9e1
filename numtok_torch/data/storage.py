"""Encoded files as chunks that are read on demand: row groups of Parquet, record batches of Arrow
IPC, batches in memory; all in number layout, in numpy arrays. Parquet whose rows are read at random
is converted once, to Arrow files in the cache, found by a digest of the footer, size, time of change
and columns; what is damaged or gone there is made again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.file_cache import make_private, user_folder
from numtok.corpus.flow import Sink, run_ordered
from numtok.corpus.jobs.folder import shards_of
from numtok.corpus.read.encoded import SUFFIXES, EncodedFile, open_encoded
from numtok.corpus.read.parquet import identity
from numtok.corpus.write.encoded import open_writer
from numtok.errors import InputError, OutputError, SchemaError
from numtok.files import lock
from numtok.locations import is_url
from numtok.representations.columns import SEQ_LENGTHS
from numtok.tokenizer.layout import conform, conform_schema, to_number_layout
from numtok.tokenizer.schema import METADATA_KEY, check_rows, flat, read_metadata, valid_rows
from numtok_torch.data.rows import Ints, stored_columns

OPEN_FILES = 16
DISK_BYTES = 32 << 30
BATCH_BYTES = 1 << 20  # of a converted file: little to check for one row
READ_BATCHES = 4  # that are read at a time while a file is converted
GROUP_BYTES = 1 << 25  # of row groups that are then read whole, two at a time
LEAST_BYTES = 1 << 20  # of a row group; files of smaller ones are read as they are
DAY = 86400.0  # seconds
FREE_BYTES = 1 << 30  # of the disk stay free, or a tenth of a small one
FORMAT = f"numtok rows 4\0{BATCH_BYTES}"
NOTE = (
    "numtok: rows at random: %s is converted to Arrow, once, in %s; NUMTOK_CACHE names another"
    " folder, disk_bytes=0 converts nothing"
)
NO_ROOM = (
    "numtok: no room in %s to convert %s (%s), so that all of a row group is read for each row:"
    " make room, or raise disk_bytes"
)

Row = dict[str, Any]
T = TypeVar("T")


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
    nbytes: int  # of the Arrow data
    laid: Any = None  # its documents end to end, once :mod:`numtok_torch.data.blocks` has laid them

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Chunk:
        """Of a batch in either layout whose rows hold together."""
        batch = to_number_layout(batch)
        shared: list[Ints] = []
        chunk = cls([], [], shared, {}, valid_rows(batch.column("input_ids")), batch.nbytes)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not isinstance(column, pa.ListArray | pa.LargeListArray):
                chunk.scalars[name] = column
                continue
            values, offsets = flat(column)
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
    """The chunks of one data set. It can be pickled: files are opened again in the other process,
    the cache stays behind. It reads without Arrow's threads, and converts large row groups with them.

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
        disk_bytes: how much disk converted Parquet files may take. 0: nothing is converted.

    Raises:
        InputError: if a file is not there, or is of another kind, or damaged.
        SchemaError: if it was not written by numtok, the files do not belong together, or a column
            is missing.
    """

    def __init__(
        self, source: Any, columns: Sequence[str] | None, cache_bytes: int, disk_bytes: int = 0
    ) -> None:
        self._cache_bytes, self._disk_bytes = cache_bytes, disk_bytes
        self._memory: list[pa.RecordBatch] = []
        self._chunks: list[tuple[str, int, int]] = []  # of files: path, number, first row
        self._converted: dict[str, str] = {}  # Parquet files, to the Arrow files in their place
        self._forget()
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        if isinstance(source, pa.Table):
            self.schema = conform_schema(_selected(source.schema, columns, "the data in memory"))
            batches = source.select(self.schema.names).to_batches()
            self._memory = [conform(batch) for batch in batches if batch.num_rows]
            counts = [batch.num_rows for batch in self._memory]
        else:
            counts = self._survey(_find_files(source), columns)
        self.metadata = read_metadata(self.schema)
        self.rows: Ints = np.array(counts, np.int64)

    def _survey(self, paths: Sequence[str], columns: Sequence[str] | None) -> list[int]:
        """Rows per chunk of all files, and their common schema."""
        counts: list[int] = []
        for path in paths:
            file = open_encoded(path, at_random=True)
            schema = _selected(file.schema, columns, path)
            if path == paths[0]:
                self.schema = schema
            _check_same(self.schema, schema, paths[0], path)
            place, is_new = as_arrow(file, schema.names, self._disk_bytes)
            if place:
                self._converted[path] = place
            if is_new:
                self._new.add(path)
            first = 0
            for number, rows in enumerate(self._ask(path, lambda one: one.chunk_rows())):
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
        return {name: one for name, one in vars(self).items() if name not in ("_open", "_cache")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def _forget(self) -> None:
        self._open = functools.lru_cache(OPEN_FILES)(self._opened)
        self._cache: OrderedDict[int, Chunk] = OrderedDict()
        self._cached_bytes = 0
        self._new: set[str] = set()  # those whose Arrow files this process wrote: it knows them
        self._process = os.getpid()

    def _opened(self, path: str) -> EncodedFile:
        if (place := self._converted.get(path)) is None:
            return open_encoded(path, at_random=True)
        return open_encoded(place, mapped=True, verified=path not in self._new)

    def read(self, number: int) -> Chunk:
        """A chunk, from the cache if it is there."""
        if self._process != os.getpid():  # forked: the parent's open files are its own
            self._forget()
        chunk = self._cache.get(number)
        if chunk is not None:
            self._cache.move_to_end(number)
            return chunk
        chunk = self._cache[number] = Chunk.of(self._batch(number))
        self._cached_bytes += chunk.nbytes
        while len(self._cache) > 1 and self._cached_bytes > self._cache_bytes:
            self._cached_bytes -= self._cache.popitem(last=False)[1].nbytes
        return chunk

    def _batch(self, number: int) -> pa.RecordBatch:
        if self._memory:
            path, first, batch = "", int(self.rows[:number].sum()), self._memory[number]
        else:
            path, at, first = self._chunks[number]
            batch = self._ask(path, lambda file: file.chunk(at, self.schema.names))
        if path not in self._converted:  # else they were checked before
            check_rows(batch, path, first)
        return batch

    def _ask(self, path: str, what: Callable[[EncodedFile], T]) -> T:
        """Of an open file; one in the cache that is damaged or gone is made again."""
        try:
            return what(self._open(path))
        except (InputError, SchemaError):
            if path not in self._converted:
                raise
        self._open.cache_clear()
        place = self._converted[path]
        Path(place).unlink(missing_ok=True)
        file = open_encoded(path, at_random=True)
        if as_arrow(file, self.schema.names, self._disk_bytes)[0] != place:
            raise InputError("was changed, or cannot be converted any more; begin again", path)
        return what(self._open(path))


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


def as_arrow(file: EncodedFile, columns: Sequence[str], disk_bytes: int) -> tuple[str, bool]:
    """The path of the Arrow file for a Parquet file, and whether it was converted now. An empty one
    if it is read as it is: another kind of file, one with small row groups, without a cache folder
    or room, or with damage, which whoever reads there is told of.
    """
    folder = user_folder() if disk_bytes > 0 else None
    sizes = [file.chunk_bytes(number, columns) for number in range(len(file.chunk_rows()))]
    if folder is None or not file.identity or max(sizes, default=0) < LEAST_BYTES:
        return "", False
    name = "\0".join([FORMAT, file.identity, *columns])
    place = folder / "rows" / f"{hashlib.sha256(name.encode()).hexdigest()[:40]}.arrow"
    try:
        make_private(folder)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        with _locked(place.parent):
            if is_new := not place.exists():
                logging.getLogger("numtok").warning(NOTE, file.path, place.parent)
                _make_room(place.parent, sum(sizes), disk_bytes)
                _convert(file, columns, place)
        os.utime(place)  # when it was last of use
    except (OSError, OutputError) as error:
        logging.getLogger("numtok").warning(NO_ROOM, place.parent, file.path, error)
        return "", False
    except (InputError, SchemaError):
        return "", False
    return str(place), is_new


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process converts, the others wait for it; not on a file system without locks."""
    with open(folder / "lock", "w") as file:
        with contextlib.suppress(OSError):
            lock(file.fileno())
        yield


def _convert(file: EncodedFile, columns: Sequence[str], place: Path) -> None:
    """Not forced to the disk: what a power cut leaves is damaged, and made again."""
    schema = pa.schema([file.schema.field(name) for name in columns], file.schema.metadata)

    def checked(parts: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
        for part in parts:
            check_rows(part)
            yield from (part.slice(first, rows) for first in range(0, part.num_rows, rows))

    def pieces() -> Iterator[tuple[Iterator[pa.RecordBatch], int]]:
        """Row groups that are not read yet, and parts of those that are too large for that."""
        for number, rows in enumerate(file.chunk_rows()):
            size = file.chunk_bytes(number, columns)
            is_large, few = size > GROUP_BYTES, max(1, rows * BATCH_BYTES // max(1, size))
            parts = file.parts(number, columns, few * READ_BATCHES, use_threads=is_large)
            if is_large:
                yield from ((checked([part], few), part.nbytes) for part in parts)
            else:
                yield checked(parts, few), size
        if identity(file.path) != file.identity:
            raise InputError("was changed while it was read; begin again", file.path)

    @contextlib.contextmanager
    def sink() -> Iterator[Sink[list[pa.RecordBatch]]]:
        with open_writer(place, schema, "arrow", "none", overwrite=True, durable=False) as writer:

            def write(batches: list[pa.RecordBatch]) -> None:
                for batch in batches:
                    writer.write(batch)

            yield write

    # two are read, one is written
    run_ordered(pieces(), lambda one: list(one[0]), sink, lambda one: one[1], 2, 3 * GROUP_BYTES)


def _make_room(folder: Path, size: int, disk_bytes: int) -> None:
    """Remove what nobody opened for a day; OSError if that is not enough."""
    found = [(path.stat(), path) for path in folder.glob("*.arrow")]
    used, disk = sum(stat.st_size for stat, _ in found), shutil.disk_usage(folder)
    kept = min(FREE_BYTES, disk.total // 10)
    missing = size + max(used - disk_bytes, kept - disk.free)
    for stat, path in sorted(found, key=lambda one: one[0].st_mtime):
        if missing > 0 and stat.st_mtime < time.time() - DAY:
            path.unlink(missing_ok=True)
            missing -= stat.st_size
    if missing > 0:
        raise OSError(
            f"{size >> 20} MiB are needed; {used >> 20} of {disk_bytes >> 20} MiB are taken,"
            f" {disk.free >> 20} MiB of the disk are free, of which {kept >> 20} MiB stay so"
        )
