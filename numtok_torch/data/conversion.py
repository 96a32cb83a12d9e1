"""Encoded files as a memory-mapped Arrow table in the cache of ``datasets``, and as a stream of it.

In: Parquet or Arrow IPC files that numtok wrote. Out: a ``datasets.Dataset`` of rows in number
layout, tensors as plain lists, which ``datasets`` has no type for; or a ``datasets.IterableDataset``
of rows of numpy arrays, whose shards are the row groups of the files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import pyarrow as pa
from datasets.exceptions import DatasetGenerationError

from numtok.corpus.read.encoded import open_encoded
from numtok.errors import NumtokError
from numtok.tokenizer.layout import schema_with_lists, tensors_as_lists
from numtok.tokenizer.schema import check_rows
from numtok_torch.data.storage import Chunk, Row, RowSelection, common_schema

BATCH_BYTES = 16 << 20  # of decoded rows, about
FORMAT = 1  # of the converted rows; raised when older ones must not be read


@dataclass
class ConversionConfig(datasets.BuilderConfig):  # type: ignore[misc]  # datasets is untyped
    """Names all that the converted rows depend on; ``datasets`` makes the name of a folder in its
    cache of it.

    ``states`` are those of the files, so that one that changed is converted anew.
    """

    paths: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    nulls: str = "error"
    block_size: int | None = None
    separator: int | None = None
    states: tuple[Any, ...] = ()
    format: int = FORMAT


class EncodedRows(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Converts encoded files, once, to an Arrow file in the cache of ``datasets``."""

    BUILDER_CONFIG_CLASS = ConversionConfig

    def _selection(self) -> RowSelection:
        config = self.config
        schema = common_schema(config.paths, config.columns)
        return RowSelection(schema, config.nulls, config.block_size, config.separator)

    def _info(self) -> Any:
        schema = schema_with_lists(self._selection().row_schema).remove_metadata()
        return datasets.DatasetInfo(features=datasets.Features.from_arrow_schema(schema))

    def _split_generators(self, dl_manager: Any) -> list[Any]:
        return [datasets.SplitGenerator(name="train")]

    def _generate_tables(self) -> Iterator[tuple[Any, pa.Table]]:
        selection = self._selection()
        for number, rows in enumerate(selection.rows(self._batches())):
            yield (
                (0, number),
                pa.Table.from_batches([tensors_as_lists(rows)]).replace_schema_metadata(),
            )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for path in self.config.paths:
            with contextlib.closing(open_encoded(path)) as file:
                yield from file.batches(BATCH_BYTES, list(self.config.columns))


def convert(paths: Sequence[str], schema: pa.Schema, **options: Any) -> Any:
    """Return the ``datasets.Dataset`` of the rows of files, converted if it is not cached; a table
    without rows if there are none, which ``datasets`` does not open.

    Args:
        paths: of files that belong together.
        schema: of what is read of them.
        options: ``nulls``, ``block_size`` and ``separator`` of :class:`RowSelection`.

    Raises:
        NumtokError: for what is wrong with the files.
    """
    stats = [os.stat(path) for path in paths]
    builder = EncodedRows(
        dataset_name="numtok_rows",
        paths=tuple(map(os.path.realpath, paths)),
        columns=tuple(schema.names),
        # a program that copies or unpacks sets the time of modification back
        states=tuple((one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino) for one in stats),
        **options,
    )
    try:
        builder.download_and_prepare()
    except DatasetGenerationError as error:
        if isinstance(error.__cause__, NumtokError):
            raise error.__cause__ from None
        raise
    if not builder.info.splits["train"].num_examples:
        return builder.info.features.arrow_schema.empty_table()
    return builder.as_dataset(split="train")


def stream(paths: Sequence[str], schema: pa.Schema) -> Any:
    """Return a ``datasets.IterableDataset`` of the rows of files, without null rows; each row group
    is one of its shards.
    """
    chunks: list[tuple[str, int]] = []
    for path in paths:
        with contextlib.closing(open_encoded(path)) as file:
            chunks += [(path, number) for number, rows in enumerate(file.chunk_rows()) if rows]
    options = {"chunks": chunks, "columns": tuple(schema.names)}
    return datasets.IterableDataset.from_generator(read_chunks, gen_kwargs=options)


def read_chunks(chunks: Sequence[tuple[str, int]], columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of chunks (path, number of the row group)."""
    for path, number in chunks:
        with contextlib.closing(open_encoded(path, at_random=True)) as file:
            batch = file.chunk(number, columns)
            check_rows(batch, path, sum(file.chunk_rows()[:number]))
        selection = RowSelection(batch.schema, "skip", None, None)
        for rows in selection.rows([batch]):
            chunk = Chunk.of(rows)
            yield from map(chunk.row, range(rows.num_rows))
