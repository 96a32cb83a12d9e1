"""Encoded files as record batches of rows in number layout, and such batches as numpy arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.corpus.jobs.folder import shards_of
from numtok.corpus.pack import PackedRows
from numtok.corpus.read.encoded import SUFFIXES, schema_of
from numtok.errors import InputError, SchemaError
from numtok.representations.columns import SEQ_LENGTHS
from numtok.storage import is_url
from numtok.tokenizer.layout import (
    conform,
    conform_schema,
    number_schema,
    to_number_layout,
)
from numtok.tokenizer.schema import (
    METADATA_KEY,
    check_rows,
    declared_columns,
    read_metadata,
    valid_rows,
)
from numtok_torch.data.packing import Ints, Mask
from numtok_torch.data.rows import stored_columns

Row = dict[str, Any]
NULLS = ("error", "skip")


class RowSelection:
    """Makes the rows of a data set from encoded batches: one for each document, or for each block
    of tokens.

    Attributes:
        schema: of the encoded batches, or of the packed ones that have the blocks.
        row_schema: of the rows, in number layout.

    Args:
        schema: of the encoded batches, in either layout; all its columns are kept.
        nulls: ``"error"`` to refuse null rows, ``"skip"`` to leave them out.
        block_size: join the documents and cut them into rows of so many tokens, as
            ``numtok encode --pack`` does; None to keep one row for each document.
        separator: the id of the token after every document of a block; None for none.
    """

    def __init__(
        self, schema: pa.Schema, nulls: str, block_size: int | None, separator: int | None
    ) -> None:
        self._nulls = nulls
        self._packed: PackedRows | None = None
        self.schema = schema
        if block_size is not None:
            self._packed = PackedRows(number_schema(schema), block_size, "sequential", separator)
            self.schema = _part(self._packed.schema, {*schema.names, "number_mask", "seq_lengths"})
        self.row_schema: pa.Schema = number_schema(self.schema)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield encoded batches with the columns of ``row_schema``, packed into blocks if there is
        a block size. SchemaError for a null row that is not to be skipped; at the end, a warning if
        numbers are longer than a block.
        """
        before = 0
        for batch in batches:
            documents = self._without_nulls(to_number_layout(batch), before)
            before += batch.num_rows
            yield from self._of_row_schema(
                [documents] if self._packed is None else self._packed.arrange(documents)
            )
        if self._packed is not None:
            yield from self._of_row_schema(self._packed.rest())
            if count := self._packed.cut_numbers:  # their values stay with their first tokens
                warnings.warn(
                    f"{count} numbers are longer than a block and were cut, as if they went on"
                    " behind it; take a larger block_size",
                    stacklevel=2,
                )

    def _without_nulls(self, batch: pa.RecordBatch, before: int) -> pa.RecordBatch:
        valid = valid_rows(batch.column("input_ids"))
        if self._nulls == "error" and not valid.all():
            raise SchemaError(
                f"row {before + int(valid.argmin())} is null: its document was; make the data set"
                " with nulls='skip'"
            )
        return _take(batch, valid)

    def _of_row_schema(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = to_number_layout(batch).select(self.row_schema.names)
            if self._packed is not None:  # documents without tokens alone make no block
                rows = _take(rows, np.diff(memory.flat(rows.column("input_ids"))[1]) > 0)
            yield rows


def _take(batch: pa.RecordBatch, wanted: Mask) -> pa.RecordBatch:
    """Return the rows that are wanted, bool[rows]; without a copy if these are all."""
    return batch if wanted.all() else batch.take(pa.array(np.flatnonzero(wanted)))


def batches_of(table: pa.Table, schema: pa.Schema) -> list[pa.RecordBatch]:
    """Return the batches of a table of rows in the types of the schema, without a copy."""
    parts = table.replace_schema_metadata(schema.metadata).to_batches()
    return [conform(part) for part in parts if part.num_rows]


def checked(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the batches of encoded data in memory. SchemaError for rows that do not hold together."""
    first = 0
    for batch in map(conform, table.to_batches()):
        check_rows(batch, "", first)
        first += batch.num_rows
        yield batch


@dataclass
class Chunk:
    """The rows of a record batch as views of its buffers."""

    # (column, values, int64[rows + 1]): row r has ``values[offsets[r]:offsets[r + 1]]``
    arrays: list[tuple[str, npt.NDArray[Any], Ints]]
    texts: list[tuple[str, pa.Array, Ints]]  # the same for columns that are no arrays
    scalars: dict[str, pa.Array]  # columns with one value per row

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Chunk:
        """Make the views of a batch in number layout whose rows hold together."""
        chunk = cls([], [], {})
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if not isinstance(column, pa.ListArray | pa.LargeListArray):
                chunk.scalars[name] = column
                continue
            values, offsets = memory.flat(column)
            if isinstance(values, pa.FixedShapeTensorArray):
                chunk.arrays.append((name, values.to_numpy_ndarray(), offsets))
            elif pa.types.is_primitive(values.type):
                chunk.arrays.append((name, memory.from_arrow(values), offsets))
            else:
                chunk.texts.append((name, values, offsets))
        return chunk

    def row(self, number: int) -> Row:
        """Return one row: arrays are read-only views, texts are Python's."""
        row: Row = {
            name: values[offsets[number] : offsets[number + 1]]
            for name, values, offsets in self.arrays
        }
        for name, texts, offsets in self.texts:
            row[name] = texts[offsets[number] : offsets[number + 1]].to_pylist()
        for name, column in self.scalars.items():
            row[name] = column[number].as_py()
        return row


def find_files(source: Any) -> list[str]:
    """Return the paths of a file, a folder or a list of them. InputError if there are none."""
    if is_url(source):
        raise InputError(
            "is in a store, and data sets read files of this machine: copy it to this machine, or"
            ' mount it; or stream it, as with datasets.load_dataset("parquet", data_files=...,'
            " streaming=True)",
            source,
        )
    if isinstance(source, Sequence) and not isinstance(source, str):
        if not source:
            raise InputError(f"no file to read: got an empty {type(source).__name__}")
        return [path for part in source for path in find_files(part)]
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
    paths = sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    shown = [
        str(path)
        for path in paths
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    ]
    if not shown:
        raise InputError(
            f"the folder holds no {', '.join(SUFFIXES)} file; give one that numtok wrote",
            str(root),
        )
    return shown


def selected_schema(schema: pa.Schema, columns: Sequence[str] | None, where: str) -> pa.Schema:
    """Return the part of a schema that is read: ``columns``, or all tensors."""
    metadata = read_metadata(schema, where)
    own = stored_columns() & declared_columns(schema, where).keys()  # others are the user's
    wanted = [name for name in schema.names if name in own]
    if columns is not None:
        always = ["input_ids", "number_index" if metadata["layout"] == "number" else "number_mask"]
        always += [SEQ_LENGTHS.name] if metadata["pack"] else []
        wanted = list(dict.fromkeys([*always, *columns]))
    if missing := [name for name in wanted if name not in schema.names]:
        raise SchemaError(f"{where} has no column {missing[0]!r}; it has {', '.join(schema.names)}")
    return conform_schema(_part(schema, wanted))


def _part(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return the schema of some columns, with numtok's metadata alone."""
    fields = [field for field in schema if field.name in names]
    return pa.schema(fields, {METADATA_KEY: schema.metadata[METADATA_KEY]})


def common_schema(paths: Sequence[str], columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema of what is read of several files. SchemaError if they do not belong
    together.
    """
    schemas = [selected_schema(schema_of(path), columns, path) for path in paths]
    for schema, path in zip(schemas, paths, strict=True):
        _check_same(schemas[0], schema, paths[0], path)
    return schemas[0]


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
    for name in kinds | other_kinds:
        if (kind := kinds.get(name)) != (other_kind := other_kinds.get(name)):
            raise SchemaError(
                f"{path} and {other_path} do not have the same columns: {name} is"
                f" {kind or 'missing'} in the one, {other_kind or 'missing'} in the other"
            )
