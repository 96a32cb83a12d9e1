"""Text documents out of files, in bounded memory: ``TextBatch`` es, each some rows of one file: the
text column as an Arrow array, the columns to keep, and where they stand in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from numtok.corpus.read.batches import ReadOptions, SkippedRow, TextBatch, left_out
from numtok.corpus.read.find import find_inputs
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.parts import in_whole_file
from numtok.corpus.read.sources import Source, named_errors
from numtok.corpus.read.template import Template
from numtok.errors import InputError, MissingInputError

__all__ = ["Source", "TextBatch", "check_text_unit", "find_inputs", "read_batches"]


def check_text_unit(sources: Sequence[Source], text_unit: str) -> None:
    """Refuse ``text_unit="file"`` where there is no text file that it would say something of."""
    if text_unit == "file" and not any(source.format == "txt" for source in sources):
        raise InputError("text_unit='file' is for .txt files, and there is none; leave it out")


def read_batches(
    source: Source,
    text_column: str | None = None,
    keep_columns: Sequence[str] = (),
    batch_bytes: int = 8 << 20,
    text_unit: Literal["line", "file"] = "line",
    on_error: Literal["raise", "skip"] = "raise",
    kept_types: Mapping[str, pa.DataType] | None = None,
    template: str | None = None,
) -> Iterator[TextBatch]:
    """The documents of one source, in order.

    Args:
        source: from ``find_inputs``.
        text_column: the column that holds the text; by default ``text``, ``content``, ``document``,
            ``body``, or the only string column. A row without it, or with null in it, is a null
            document.
        keep_columns: other columns to hand out beside the texts.
        batch_bytes: about how much input makes a batch; a longer document stays whole.
        text_unit: in ``.txt``, whether a line or the whole file is a document.
        on_error: ``"skip"`` leaves out rows of JSON lines, CSV and text files that cannot be read,
            and of any file what lies after damage; ``bad`` of a batch tells. A file that is not
            there, or has no such column, raises in any case.
        kept_types: Arrow types for kept columns. Without them a JSON column has the type that its
            first rows suggest, which may differ from file to file; CSV columns are strings; Parquet
            and Arrow columns have their own.
        template: in place of ``text_column``, columns in braces, ``{name} costs {price}``, or
            ``row``; see :mod:`numtok.corpus.read.template`.

    Raises:
        InputError: naming the file, and the line and column as far as known. No text is ever
            changed to make it fit.
    """
    options = ReadOptions(
        text_column,
        tuple(keep_columns),
        batch_bytes,
        text_unit,
        on_error,
        dict(kept_types or {}),
        None if template is None else Template(template),
    )
    rows = 0
    try:
        with named_errors(source):
            for batch in FORMATS[source.format].read(source, options):
                rows = batch.first_row + len(batch.texts) + batch.skipped
                yield batch
    except InputError as error:
        if on_error == "raise" or isinstance(error, MissingInputError):
            with in_whole_file(source):
                raise
        reason = f"all from here on is left out: {error.message}"
        yield left_out(source, options, rows, [SkippedRow(error.line, reason)])
