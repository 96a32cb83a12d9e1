"""``.json`` files: JSON lines, streamed as in ``jsonl``; or one array of objects, or a single
object, which are held in memory whole.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from numtok.corpus.read import jsonl
from numtok.corpus.read.batches import ReadOptions, TextBatch, too_long
from numtok.corpus.read.jsonl import BadRow
from numtok.corpus.read.lines import Block, read_blocks
from numtok.corpus.read.sources import ByteStream, Source
from numtok.corpus.read.template import AS_WRITTEN
from numtok.errors import InputError

_SAMPLE_ROWS = 1000
_LONGEST_DOCUMENT = 1 << 29  # bytes


def read_json(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of a ``.json`` file; see ``read_batches``."""
    with ByteStream(source) as stream:
        blocks = read_blocks(stream, options.batch_bytes, _LONGEST_DOCUMENT)
        first = next((block for block in blocks if block.data.strip()), None)
        if first is None:
            return
        whole = itertools.chain([first], blocks)
        if _first_line_is_object(first.data):
            yield from jsonl.batches_of_blocks(whole, source, options)
        else:
            text = _text(whole, source)
            yield from _batches(text, source, options, stream.position)


def _first_line_is_object(data: bytes) -> bool:
    """Whether the first line that is not blank is a complete object, as in JSON lines (or a
    one-line file).
    """
    try:
        return isinstance(jsonl.parse_line(data.lstrip().split(b"\n", 1)[0]), dict)
    except BadRow:
        return False


def _text(blocks: Iterator[Block], source: Source) -> str:
    """The whole file."""
    pieces, held = [], 0
    for block in blocks:
        pieces.append(block.data)
        held += len(block.data)
        if held > _LONGEST_DOCUMENT:
            raise InputError(
                f"{too_long('this JSON document', _LONGEST_DOCUMENT, source)}; or save it as JSON"
                " lines: one object per line"
            )
    try:
        return b"".join(pieces).decode()
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(
            f"not UTF-8: byte 0x{error.object[error.start]:02x};"
            ' convert the file with "iconv -f ENCODING -t UTF-8"',
            source.name,
            line,
        ) from None


def _batches(text: str, source: Source, options: ReadOptions, position: int) -> Iterator[TextBatch]:
    """The rows in batches of about ``batch_bytes`` of JSON, as if all were of one length."""
    rows = _rows(text, source)
    written = _rows(text, source, AS_WRITTEN) if options.template else itertools.repeat(None)
    objects = [row for row in rows[:_SAMPLE_ROWS] if isinstance(row, dict)]
    columns = jsonl.columns_of_rows(objects, source, options)
    step = max(1, options.batch_bytes * len(rows) // len(text))
    used = enumerate(zip(rows, written, strict=False), 1)
    for first in range(0, len(rows), step):
        values = [_values(columns, source, *numbered) for numbered in itertools.islice(used, step)]
        texts, kept = columns.arrays(values)
        if columns.text in options.keep_columns:
            kept[columns.text] = texts
        done = position * (first + len(values)) // len(rows)
        yield TextBatch(texts, kept, first, done, source, (), columns.text)


def _rows(text: str, source: Source, decoder: json.JSONDecoder | None = None) -> list[Any]:
    try:
        value = (decoder or jsonl.DECODER).decode(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"not valid JSON: {error.msg}; mend the file (one object per line, or one array of"
            " objects)",
            source.name,
            error.lineno,
            error.colno,
        ) from None
    except RecursionError:
        raise InputError("nested too deeply to be read; mend the file", source.name) from None
    return value if isinstance(value, list) else [value]


def _values(columns: jsonl.Columns, source: Source, number: int, row: tuple[Any, Any]) -> list[Any]:
    try:
        return columns.row(*row)
    except BadRow as error:
        raise InputError(str(error), source.name, row=number) from None
