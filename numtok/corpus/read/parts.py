"""Parts of a file: where it can be cut, and what a place in a part is called in the whole. What lies
before a part is counted only once an error has to name a line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from numtok import locations
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.sources import Source, named_errors
from numtok.errors import InputError

_CHUNK = 1 << 20
_BLANK = b" \t\r"


def line_start(path: str, position: int, size: int) -> int:
    """The first byte from ``position`` on at which a line begins; ``size``, that of the file, if
    there is none.
    """
    if position == 0:
        return 0
    at = position - 1
    with locations.open_file(path, _CHUNK) as file:
        file.seek(at)
        while at < size and (chunk := file.read(_CHUNK)):
            if (found := chunk.find(b"\n")) >= 0:
                return min(at + found + 1, size)
            at += len(chunk)
    return size


def group_sizes(source: Source) -> list[int]:
    """The bytes of each row group, as stored."""
    from numtok.corpus.read.parquet import open_parquet  # only what reads Parquet loads it

    with named_errors(source), open_parquet(source.path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        return [
            sum(group.column(column).total_compressed_size for column in range(group.num_columns))
            for group in groups
        ]


@contextlib.contextmanager
def in_whole_file(source: Source) -> Iterator[None]:
    """Errors about a line of a part name the line of the file."""
    try:
        yield
    except InputError as error:
        if error.line is not None and source.start:
            error.line += sum(chunk.count(b"\n") for chunk in _before(source))
        raise


def rows_before(source: Source) -> int:
    """Rows of the file in front of the part: blank lines are none of JSON lines."""
    if not source.start:
        return 0
    if FORMATS[source.format].cut == "row groups":
        from numtok.corpus.read.parquet import open_parquet

        with open_parquet(source.path) as file:
            return sum(file.metadata.row_group(number).num_rows for number in range(source.start))
    rows, rest = 0, b""
    for chunk in _before(source):
        *lines, rest = (rest + chunk).split(b"\n")
        rows += (
            len(lines) if source.format == "txt" else sum(1 for line in lines if line.strip(_BLANK))
        )
    return rows


def _before(source: Source) -> Iterator[bytes]:
    """The bytes of the file in front of the part."""
    left = source.start
    with locations.open_file(source.path) as file:
        while left and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            yield chunk
