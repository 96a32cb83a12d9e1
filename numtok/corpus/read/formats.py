"""The table of input formats: what a file's name must end in, and what reads it. A new format is a
reader beside the others and a line here.

Each may end in .gz, .zst, .bz2 or .xz as well. Parquet and Arrow must be seekable, so from standard
input or under such a suffix they are first unpacked into a temporary file.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from numtok.corpus.read.batches import ReadOptions, TextBatch
from numtok.corpus.read.sources import Source

Reader = Callable[[Source, ReadOptions], Iterator[TextBatch]]


class Format(NamedTuple):
    """An input format: the suffixes of its files, the reader of one, and where such a file can be
    cut into parts if it is not compressed.
    """

    suffixes: tuple[str, ...]
    read: Reader
    cut: Literal["lines", "row groups"] | None = None


def _in(module: str, name: str) -> Reader:
    """Return a reader, which is imported when it first reads: each takes other parts of Arrow."""

    def read(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
        reader: Reader = getattr(importlib.import_module(f"numtok.corpus.read.{module}"), name)
        return reader(source, options)

    return read


FORMATS: dict[str, Format] = {
    # the name of a format is the first of its suffixes
    "jsonl": Format(("jsonl", "ndjson"), _in("jsonl", "read_json_lines"), "lines"),
    "json": Format(("json",), _in("json_document", "read_json")),
    "csv": Format(("csv",), _in("csv_table", "read_csv")),
    "tsv": Format(("tsv",), _in("csv_table", "read_csv")),
    "txt": Format(("txt",), _in("lines", "read_text"), "lines"),
    "parquet": Format(("parquet",), _in("parquet", "read_parquet"), "row groups"),
    "arrow": Format(("arrow", "feather", "ipc"), _in("arrow", "read_arrow")),
}
SUFFIXES = {suffix: name for name, format in FORMATS.items() for suffix in format.suffixes}
