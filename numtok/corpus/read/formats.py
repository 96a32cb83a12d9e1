"""The table of input formats: what a file's name must end in, and what reads it. A new format is a reader beside the others and a line here.

======================  ============================================================  ==================================
suffix                  rows                                                          held in memory
======================  ============================================================  ==================================
.jsonl .ndjson          one object per line                                           ``batch_bytes``, or the longest line
.json                   JSON lines; or one array of objects; or one object            the whole file, unless JSON lines
.csv .tsv               records after a header line                                   ``batch_bytes``, or the longest row
.txt                    lines, or the whole file as one document                      ``batch_bytes``, or the longest line
.parquet                rows                                                          some pages of the columns wanted
.arrow .feather .ipc    rows of an IPC file or stream                                 one record batch, memory-mapped
======================  ============================================================  ==================================

Each may end in .gz, .zst, .bz2 or .xz as well. Parquet and Arrow must be seekable, so from standard input or under such a
suffix they are first unpacked into a temporary file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from numtok.corpus.read.arrow import read_arrow
from numtok.corpus.read.batches import ReadOptions, TextBatch
from numtok.corpus.read.csv_table import read_csv
from numtok.corpus.read.json_document import read_json
from numtok.corpus.read.jsonl import read_json_lines
from numtok.corpus.read.parquet import read_parquet
from numtok.corpus.read.sources import Source
from numtok.corpus.read.text import read_text


class Format(NamedTuple):
    """An input format: the suffixes of its files, and the reader of one."""

    suffixes: tuple[str, ...]
    read: Callable[[Source, ReadOptions], Iterator[TextBatch]]


FORMATS: dict[str, Format] = {
    # the name of a format is the first of its suffixes
    "jsonl": Format(("jsonl", "ndjson"), read_json_lines),
    "json": Format(("json",), read_json),
    "csv": Format(("csv",), read_csv),
    "tsv": Format(("tsv",), read_csv),
    "txt": Format(("txt",), read_text),
    "parquet": Format(("parquet",), read_parquet),
    "arrow": Format(("arrow", "feather", "ipc"), read_arrow),
}
SUFFIXES = {suffix: name for name, format in FORMATS.items() for suffix in format.suffixes}
