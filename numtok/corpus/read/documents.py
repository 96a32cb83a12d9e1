"""Text documents out of files, in bounded memory: ``TextBatch`` es, each some rows of one file or of
a part of one. ``INPUT_FORMATS`` is the table of input formats: what a file's name must end in, and what
reads it. A new format is a reader beside the others and a line there.

Each may end in .gz, .zst, .bz2 or .xz as well. Parquet and Arrow must be seekable, so from standard
input or under such a suffix they are first unpacked into a temporary file.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import pyarrow as pa

from numtok import storage
from numtok.corpus.read.batches import ReadOptions, SkippedRow, TextBatch, skipped_batch
from numtok.corpus.read.sources import Source, named_errors
from numtok.corpus.read.template import ROW, Template
from numtok.errors import InputError, MissingInputError, NumtokError
from numtok.numbers.grammar import Grammar
from numtok.numbers.scan import scan
from numtok.options import shown_option

_CHUNK = 1 << 20
_BLANK = b" \t\r"
_DEFAULTS = ReadOptions()
_TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")
_SAMPLE_BYTES = 1 << 20  # of a table

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


INPUT_FORMATS: dict[str, Format] = {
    # the name of a format is the first of its suffixes
    "jsonl": Format(("jsonl", "ndjson"), _in("jsonl", "read_json_lines"), "lines"),
    "json": Format(("json",), _in("json_document", "read_json")),
    "csv": Format(("csv",), _in("csv_table", "read_csv")),
    "tsv": Format(("tsv",), _in("csv_table", "read_csv")),
    "txt": Format(("txt",), _in("lines", "read_text"), "lines"),
    "parquet": Format(("parquet",), _in("parquet", "read_parquet"), "row groups"),
    "arrow": Format(("arrow", "feather", "ipc"), _in("arrow", "read_arrow")),
}
SUFFIXES = {suffix: name for name, format in INPUT_FORMATS.items() for suffix in format.suffixes}


def check_formats(sources: Sequence[Source], text_unit: str, delimiter: str | None) -> None:
    """Refuse ``text_unit="file"`` without a text file, and ``delimiter`` without CSV or TSV."""
    if delimiter is not None and not any(one.format in ("csv", "tsv") for one in sources):
        raise InputError(
            f"{shown_option('delimiter', delimiter)} is for CSV and TSV files, and there is none;"
            " leave it out"
        )
    if text_unit == "file" and not any(source.format == "txt" for source in sources):
        raise InputError(
            "text_unit='file' (--text-unit file) is for .txt files, and there is none; leave it out"
        )


def read_batches(source: Source, options: ReadOptions = _DEFAULTS) -> Iterator[TextBatch]:
    """Yield the documents of one source, in order; InputError names the file, line and column. No
    text is ever changed to make it fit. A file that is not there, or has no such column, raises
    even where ``on_error`` is ``"skip"``.
    """
    rows = 0
    try:
        with named_errors(source):
            for batch in INPUT_FORMATS[source.format].read(source, options):
                rows = batch.first_row + len(batch.texts) + batch.skipped
                yield batch
    except InputError as error:
        if options.on_error == "raise" or isinstance(error, MissingInputError):
            if error.line is not None and source.start:  # of a part: the line of the file
                error.line += lines_before(source)
            if error.row is not None:
                error.row += rows_before(source)
            raise
        reason = f"all from here on is left out: {error.message}"
        yield skipped_batch(source, options, rows, [SkippedRow(error.line, reason)])


def line_start(path: str, position: int, size: int) -> int:
    """Return where the next line begins from ``position`` on; ``size``, that of the file, if none
    does.
    """
    if position == 0:
        return 0
    at = position - 1
    with storage.open_file(path, _CHUNK) as file:
        file.seek(at)
        while at < size and (chunk := file.read(_CHUNK)):
            if (line_break := chunk.find(b"\n")) >= 0:
                return min(at + line_break + 1, size)
            at += len(chunk)
    return size


def group_sizes(source: Source) -> list[int]:
    """Return the bytes of each row group, as stored."""
    from numtok.corpus.read.parquet import open_parquet  # only what reads Parquet loads it

    with named_errors(source), open_parquet(source.path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        return [
            sum(group.column(column).total_compressed_size for column in range(group.num_columns))
            for group in groups
        ]


def rows_before(source: Source) -> int:
    """Count the rows of the file in front of the part. Blank lines are no rows of JSON lines."""
    if not source.start:
        return 0
    if INPUT_FORMATS[source.format].cut == "row groups":
        from numtok.corpus.read.parquet import open_parquet

        with open_parquet(source.path) as file:
            return sum(file.metadata.row_group(number).num_rows for number in range(source.start))
    rows, rest = 0, b""
    for chunk in _before(source):
        *lines, rest = (rest + chunk).split(b"\n")
        is_text = source.format == "txt"
        rows += len(lines) if is_text else sum(1 for line in lines if line.strip(_BLANK))
    return rows


def lines_before(source: Source) -> int:
    """Return the lines of the file in front of the part; of Parquet, the rows."""
    if not source.start or INPUT_FORMATS[source.format].cut != "lines":
        return rows_before(source)
    return sum(chunk.count(b"\n") for chunk in _before(source))


def _before(source: Source) -> Iterator[bytes]:
    """Yield the bytes of the file in front of the part."""
    left = source.start
    with storage.open_file(source.path) as file:
        while left and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            yield chunk


def columns_with_numbers(
    source: Source, grammar: Grammar, delimiter: str | None = None
) -> tuple[str, ...]:
    """Return the columns in which the first rows hold numbers; none for a pipe, what is no table, or
    a table with columns of lists or objects.
    """
    if source.size is None or source.format not in _TABLES:
        return ()
    with contextlib.suppress(NumtokError, pa.ArrowException, OSError):
        options = ReadOptions(None, (), _SAMPLE_BYTES, template=Template(ROW), delimiter=delimiter)
        batch = next(INPUT_FORMATS[source.format].read(source, options), None)
        if batch is not None and batch.cells is not None:
            numbers = scan(batch.texts, grammar)
            columns = batch.cells.column_of(numbers.document, numbers.stop)
            return tuple(batch.cells.counted(columns))
    return ()
