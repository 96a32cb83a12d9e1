"""Which columns of a table hold numbers: for whoever finds none in its texts."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import pyarrow as pa

from numtok.corpus.read.batches import ReadOptions
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.sources import Source
from numtok.corpus.read.template import ROW, Template, as_texts
from numtok.errors import NumtokError
from numtok.numbers.grammar import Grammar
from numtok.numbers.scan import scan

_TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")
_LOOKED_AT = 1 << 20  # bytes of a table


class _Looking(Template):
    """Keeps the texts of each column that it is given."""

    def __init__(self) -> None:
        super().__init__(ROW)
        self.seen: dict[str, list[str | None]] = {}

    def of_columns(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        for name, column in columns.items():
            self.seen.setdefault(name, []).extend(as_texts(column).to_pylist())
        return super().of_columns(columns)


def columns_with_numbers(source: Source, grammar: Grammar) -> tuple[str, ...]:
    """The columns in which the first rows hold numbers; none for a pipe, or what is no table."""
    if source.size is None or source.format not in _TABLES:
        return ()
    looking = _Looking()
    with contextlib.suppress(NumtokError, pa.ArrowException, OSError):
        how = ReadOptions(None, (), _LOOKED_AT, template=looking)
        next(FORMATS[source.format].read(source, how), None)
    return tuple(
        name
        for name, texts in looking.seen.items()
        if len(scan([text or "" for text in texts], grammar))
    )
