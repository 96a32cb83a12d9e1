"""Encoded files for other people's trainers: what ``numtok export`` does. Each row is a sequence,
and a document; each stream has one value per token in a ``.bin``, all values end to end,
little-endian, and an ``.idx``, as Megatron-LM and GPT-NeoX map them into memory:

========================  ==================  ====================================================
bytes                     type                content
========================  ==================  ====================================================
9                         ``MMIDIDX\\0\\0``     magic
8                         uint64              version, 1
1                         uint8               code of the dtype
8                         uint64              n sequences
8                         uint64              d + 1, for d documents
4 n                       int32[n]            values of each sequence
8 n                       int64[n]            the byte of the ``.bin`` at which each begins
8 (d + 1)                 int64[d + 1]        the sequence with which each document begins, and n
========================  ==================  ====================================================
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok import locations
from numtok.arrays import memory
from numtok.corpus.decode import tokenizer_of
from numtok.corpus.read.encoded import open_encoded
from numtok.corpus.read.find import find_inputs
from numtok.corpus.read.sources import Source
from numtok.corpus.settings import check_choice
from numtok.corpus.summary import BATCH_BYTES, Progress, Run
from numtok.corpus.write.samples import ABOUT, KINDS, open_samples
from numtok.errors import OutputError, SchemaError
from numtok.files import new_file
from numtok.representations.columns import Column
from numtok.representations.values import tensor_values
from numtok.tokenizer.layout import to_number_layout, to_token_layout, token_schema
from numtok.tokenizer.packing import end_token as find_end_token
from numtok.tokenizer.packing import with_ends
from numtok.tokenizer.schema import declared_columns, flat, read_metadata

MAGIC = b"MMIDIDX\x00\x00"
_COMMON = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}
CODES = {  # of dtypes; those of the two floats are not the same in the two programs
    "megatron": {**_COMMON, "float64": 6, "float32": 7},
    "gpt-neox": {**_COMMON, "float32": 6, "float64": 7},
}
SMALL_VOCABULARY = 65500  # both programs take uint16 for fewer tokens
_AT_ONCE = 1 << 20  # entries of an index that are made at once
# What the format has no code for, as the type that holds the same bits.
_STORED = {"bool": "uint8", "uint32": "int32", "uint64": "int64"}


@dataclass
class Exported:
    """What was written.

    Attributes:
        files: the prefix of the two files of each column; ``input_ids`` is the first.
        sequences: in each of them.
        tokens: in each of them, end tokens included.
        left_out: rows without tokens, which are not written.
        bytes: the size of all files.
        seconds: how long it took.
    """

    files: dict[str, str] = field(default_factory=dict)
    sequences: int = 0
    tokens: int = 0
    left_out: int = 0
    bytes: int = 0
    seconds: float = 0.0


def export_files(
    inputs: str | Path | Sequence[str | Path],
    prefix: str | Path,
    *,
    to: Literal["megatron", "gpt-neox", "mds", "webdataset"] = "megatron",
    end_token: str | int | None = None,
    tokenizer: Any = None,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Exported:
    """Write the ``.bin`` and ``.idx`` files of Megatron-LM and GPT-NeoX from encoded files.

    ``PREFIX`` has the token ids, ``PREFIX_number_value`` and so on one number column each.
    ``PREFIX.json`` says the shape and the dtype of each, and has numtok's metadata.

    Args:
        inputs: a file that :func:`numtok.encode_files` wrote, a folder of them, or a list.
        prefix: with which all names begin.
        to: the program that is to read the files, ``"megatron"`` or ``"gpt-neox"``: they number
            float32 and float64 differently.
        end_token: a token, or its id, to put after each document; None for none. Packed rows have
            theirs already.
        tokenizer: the source tokenizer, if ``end_token`` is one of its tokens.
        overwrite: replace files that are there already, once the new ones are complete.
        progress: called several times a second.

    Raises:
        NumtokError: if files do not belong together, or cannot be read or written; nothing new is
            left then.
    """
    check_choice("to", to, (*CODES, *KINDS))
    sources = find_inputs(inputs)
    output = prefix if to in KINDS else f"{prefix}.bin"
    run, exported = Run(sources, output, progress), Exported()
    path = sources[0].path
    with contextlib.closing(open_encoded(path)) as first:
        described = first.schema
    metadata = read_metadata(described, path)
    end = _end(end_token, tokenizer, metadata, path)
    streams = _streams(described)
    if to in KINDS:
        batches = _batches(sources, metadata, end)
        _export_samples(batches, streams, metadata, run, exported, to, overwrite)
        exported.seconds = run.seconds
        return exported
    with contextlib.ExitStack() as stack:
        about = stack.enter_context(new_file(f"{prefix}.json", overwrite))
        files = {}
        for name, column in streams.items():
            exported.files[name] = str(prefix) if name == "input_ids" else f"{prefix}_{name}"
            dtype = _dtype(column, metadata)
            opened = open_indexed(exported.files[name], dtype, to, overwrite)
            files[name] = stack.enter_context(opened)
        for batch, of, run.read in _batches(sources, metadata, end):
            _write(batch, of, streams, files, exported)
            run.report.tokens = exported.tokens
            run.written = sum(file.bytes_written for file in files.values())
            run.tick()
        stored = {name: file.dtype for name, file in files.items()}
        told = _about(streams, stored, exported, metadata, to)
        _put(about, f"{json.dumps(told, indent=1)}\n".encode(), f"{prefix}.json")
    exported.bytes = sum(
        locations.size(f"{name}{suffix}") or 0
        for name in exported.files.values()
        for suffix in (".bin", ".idx")
    )
    exported.seconds = run.seconds
    return exported


def _end(
    token: str | int | None, tokenizer: Any, metadata: dict[str, Any], path: str
) -> int | None:
    """The id of the end token."""
    if token is not None and metadata["pack"]:
        raise SchemaError(
            "the documents of packed rows end with their end token already; leave out end_token",
            path=path,
        )
    end = find_end_token(tokenizer_of(path, tokenizer), token) if isinstance(token, str) else token
    if end is not None and not 0 <= end < metadata["vocab_size"]:
        raise SchemaError(
            f"end_token={end} is no id of the tokenizer, which has {metadata['vocab_size']}",
            path=path,
        )
    return end


def _streams(schema: pa.Schema) -> dict[str, Column]:
    """All columns with one value per token in token layout, texts excepted; the ids first."""
    tokens = token_schema(schema) if read_metadata(schema)["layout"] == "number" else schema
    known = declared_columns(tokens)
    stored = (known[name] for name in tokens.names if name in known)
    return {
        column.name: column
        for column in stored
        if column.per == "token" and not pa.types.is_string(column.value_type)
    }


def _value_dtype(column: Column) -> str:
    return memory.dtype_of(column.value_type).name


def _dtype(column: Column, metadata: dict[str, Any]) -> str:
    if column.name == "input_ids":
        return "uint16" if metadata["vocab_size"] < SMALL_VOCABULARY else "int32"
    return _STORED.get(_value_dtype(column), _value_dtype(column))


def _batches(
    sources: Sequence[Source], first: dict[str, Any], end: int | None
) -> Iterator[tuple[pa.RecordBatch, str, int]]:
    """(rows in token layout, their file, bytes read so far)."""
    done = 0
    for source in sources:
        rows, size = 0, source.size or 0
        with contextlib.closing(open_encoded(source.path)) as file:
            metadata = read_metadata(file.schema, source.path)
            for key in ("tokenizer", "numbers", "pack", "frame"):
                if metadata[key] != first[key]:
                    raise SchemaError(
                        f"its {key} is not that of {sources[0].path}; export what belongs together",
                        path=source.path,
                    )
            for batch in file.batches(BATCH_BYTES):
                rows += batch.num_rows
                if end is not None:
                    batch = with_ends(to_number_layout(batch), end)
                read = done + size * rows // max(file.rows or rows, 1)
                yield to_token_layout(batch), source.path, read
        done += size


def _write(
    batch: pa.RecordBatch,
    path: str,
    streams: dict[str, Column],
    files: dict[str, IndexedFile],
    exported: Exported,
) -> None:
    sizes = np.diff(flat(batch.column("input_ids"))[1])
    exported.left_out += int(np.count_nonzero(sizes == 0))
    sizes = sizes[sizes > 0]
    for name, column in streams.items():
        values = _array(flat(_column(batch, name, path))[0]).reshape(-1)
        stored = files[name].dtype
        files[name].write(
            values.astype(stored) if name == "input_ids" else values.view(stored),
            sizes * math.prod(column.shape),
        )
    exported.sequences += len(sizes)
    exported.tokens += int(sizes.sum())


def _array(values: pa.Array) -> npt.NDArray[Any]:
    tensors = isinstance(values, pa.ExtensionArray)
    return tensor_values(values) if tensors else memory.from_arrow(values)


def _export_samples(
    batches: Iterator[tuple[pa.RecordBatch, str, int]],
    streams: dict[str, Column],
    metadata: dict[str, Any],
    run: Run,
    exported: Exported,
    to: str,
    overwrite: bool,
) -> None:
    """A dictionary of arrays for each row."""
    dtypes = {name: np.dtype(_sample_dtype(one, metadata)) for name, one in streams.items()}
    folder = str(run.output)
    exported.files = dict.fromkeys(streams, folder)
    names = {name: dtype.name for name, dtype in dtypes.items()}
    with open_samples(folder, to, names, overwrite) as (temporary, write):
        for batch, path, run.read in batches:
            ends = flat(batch.column("input_ids"))[1]
            ends = ends - ends[0]
            columns = {}
            for name, column in streams.items():
                values = _array(flat(_column(batch, name, path))[0])
                columns[name] = values.reshape(-1, *column.shape).astype(dtypes[name], copy=False)
            for start, stop in itertools.pairwise(ends.tolist()):
                exported.left_out += start == stop
                exported.sequences += start < stop
                if start < stop:
                    write({name: values[start:stop] for name, values in columns.items()})
            exported.tokens += int(ends[-1])
            run.report.tokens = exported.tokens
            run.tick()
        told = _about(streams, dtypes, exported, metadata, to)
        (temporary / ABOUT).write_text(f"{json.dumps(told, indent=1)}\n", "utf-8")
    exported.bytes = sum(one.stat().st_size for one in Path(folder).rglob("*") if one.is_file())


def _sample_dtype(column: Column, metadata: dict[str, Any]) -> str:
    """Arrays know all dtypes; MDS takes no bool."""
    dtype = _dtype(column, metadata) if column.name == "input_ids" else _value_dtype(column)
    return "uint8" if dtype == "bool" else dtype


def _column(batch: pa.RecordBatch, name: str, path: str) -> pa.Array:
    if name not in batch.schema.names:
        raise SchemaError(
            f"has no column {name!r}, which other files have; export what belongs together",
            path=path,
        )
    return batch.column(name)


def _about(
    streams: dict[str, Column],
    stored: Mapping[str, np.dtype[Any]],
    exported: Exported,
    metadata: dict[str, Any],
    to: str,
) -> dict[str, Any]:
    """What ``PREFIX.json`` says."""
    about = {
        name: {
            "file": Path(exported.files[name]).name,
            "stored": stored[name].name,
            "dtype": _value_dtype(column),
            "shape": list(column.shape),
            "fill": column.fill,
        }
        for name, column in streams.items()
    }
    return {
        "to": to,
        "sequences": exported.sequences,
        "tokens": exported.tokens,
        "streams": about,
        "numtok": metadata,
    }


def _put(file: Any, data: Any, path: str) -> None:
    """All of the bytes."""
    left = memoryview(data)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {error.strerror or error}; nothing is left under that name: make"
            " room, then run again"
        ) from error


class IndexedFile:
    """One stream's pair; use :func:`open_indexed`, which gives both files their names once they are
    whole.

    Attributes:
        dtype: of the values.
        bytes_written: of the ``.bin``.
    """

    def __init__(
        self,
        path: str,
        values: BinaryIO,
        index: BinaryIO,
        dtype: npt.DTypeLike,
        codes: dict[str, int],
    ) -> None:
        self.dtype, self.bytes_written = np.dtype(dtype), 0
        self._path, self._values, self._index, self._codes = path, values, index, codes
        self._sizes: list[npt.NDArray[np.int32]] = []

    def write(self, values: npt.NDArray[Any], sizes: npt.NDArray[np.int64]) -> None:
        """Append sequences.

        Args:
            values: end to end.
            sizes: int64[sequences], how many of them each has.

        Raises:
            OutputError: for a sequence of more than 2**31 - 1 values; or if the disk refuses.
        """
        if len(sizes) and sizes.max() > np.iinfo(np.int32).max:
            raise OutputError(
                f"{self._path}: a sequence has {sizes.max():,} values, more than the format can"
                " tell; export shorter rows, encoded with pack=..."
            )
        self._sizes.append(sizes.astype(np.int32))
        self._put(self._values, np.ascontiguousarray(values, self.dtype.newbyteorder("<")))

    def finish(self) -> None:
        """Write the index, and force both files to the disk."""
        sizes = np.concatenate(self._sizes) if self._sizes else np.empty(0, np.int32)
        header = MAGIC + struct.pack(
            "<QBQQ", 1, self._codes[self.dtype.name], len(sizes), len(sizes) + 1
        )
        self._put(self._index, np.frombuffer(header, np.uint8))
        self._put(self._index, sizes.astype("<i4", copy=False))
        begin = 0
        for at in range(0, len(sizes), _AT_ONCE):
            ends = (
                begin + np.cumsum(sizes[at : at + _AT_ONCE], dtype=np.int64) * self.dtype.itemsize
            )
            self._put(self._index, np.append(begin, ends[:-1]).astype("<i8", copy=False))
            begin = int(ends[-1])
        for at in range(0, len(sizes) + 1, _AT_ONCE):
            self._put(self._index, np.arange(at, min(at + _AT_ONCE, len(sizes) + 1), dtype="<i8"))
        for file in (self._values, self._index):
            os.fsync(file.fileno())

    def _put(self, file: BinaryIO, values: npt.NDArray[Any]) -> None:
        _put(file, values.data.cast("B") if values.size else b"", self._path)
        self.bytes_written += values.nbytes if file is self._values else 0


@contextlib.contextmanager
def open_indexed(
    prefix: str, dtype: npt.DTypeLike, to: str, overwrite: bool
) -> Iterator[IndexedFile]:
    """A context in which to ``write`` sequences to ``prefix.bin`` and ``prefix.idx``.

    Raises:
        OutputError: if one of them exists, or the system refuses. Neither gets its name then.
    """
    path = f"{prefix}.bin"
    # the index gets its name last
    with new_file(f"{prefix}.idx", overwrite) as index, new_file(path, overwrite) as values:
        file = IndexedFile(path, values, index, dtype, CODES[to])
        yield file
        file.finish()
