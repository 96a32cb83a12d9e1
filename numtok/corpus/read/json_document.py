"""``.json`` files: JSON lines, streamed as in ``jsonl``; or one array of objects, or a single
object, whose text is held in memory whole, while its rows are parsed one at a time.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from numtok.corpus.read import jsonl
from numtok.corpus.read.batches import ReadOptions, TextBatch, too_long
from numtok.corpus.read.jsonl import BadRow
from numtok.corpus.read.kept_values import DECODER
from numtok.corpus.read.lines import Block, decoded, read_blocks
from numtok.corpus.read.sources import ByteStream, Source
from numtok.corpus.read.template import AS_WRITTEN
from numtok.errors import InputError

_SPACE = re.compile(r"[ \t\r\n]*")
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
            yield from _read_document(_whole_file(whole, source), first, stream, options)


def _whole_file(blocks: Iterator[Block], source: Source) -> bytes:
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
    return b"".join(pieces)


def _first_line_is_object(data: bytes) -> bool:
    """Whether the first line that is not blank is a complete object, as in JSON lines (or a
    one-line file).
    """
    try:
        return isinstance(jsonl.parse_line(data.lstrip().split(b"\n", 1)[0]), dict)
    except BadRow:
        return False


def _read_document(
    data: bytes, first: Block, stream: ByteStream, options: ReadOptions
) -> Iterator[TextBatch]:
    """The rows of one array, or the one row of an object, in batches of about ``batch_bytes`` of
    JSON.
    """
    source = stream.source
    text = decoded(data, source, first.line, first.offset)
    elements = _elements(text, source, first.line)
    sample = list(itertools.islice(elements, _SAMPLE_ROWS))
    columns = jsonl.columns_of_rows(
        [value for _, value in sample if isinstance(value, dict)], source, options
    )
    rows: list[list[Any]] = []
    first_row, begin = 0, 0

    def batch(position: int) -> TextBatch:
        texts, kept = columns.arrays(rows)
        if columns.text in options.keep_columns:
            kept[columns.text] = texts
        return TextBatch(texts, kept, first_row, position, source, (), columns.text)

    for at, value in itertools.chain(sample, elements):
        if rows and at - begin >= options.batch_bytes:
            yield batch(stream.position * at // len(text))
            first_row, begin, rows = first_row + len(rows), at, []
        try:
            written = AS_WRITTEN.raw_decode(text, at)[0] if columns.template else None
            rows.append(columns.row(value, written))
        except BadRow as error:
            line = first.line + text.count("\n", 0, at)
            raise InputError(str(error), source.name, line) from None
    if rows:
        yield batch(stream.position)


def _elements(text: str, source: Source, line: int) -> Iterator[tuple[int, Any]]:
    """Each element of the array (or the single value) with the offset where it starts."""
    at = _space(text, 0)
    array = text[at] == "["
    at = _space(text, at + 1) if array else at
    empty = array and text[at : at + 1] == "]"
    while not empty:
        value, stop = _value(text, at, source, line)
        yield at, value
        at = _space(text, stop)
        if not array or text[at : at + 1] == "]":
            break
        if text[at : at + 1] != ",":
            raise _invalid(text, at, "Expecting ',' or ']'", source, line)
        at = _space(text, at + 1)
    at = _space(text, at + 1 if array else at)
    if at < len(text):
        raise _invalid(text, at, "more text after the value", source, line)


def _value(text: str, at: int, source: Source, line: int) -> tuple[Any, int]:
    try:
        return DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _invalid(text, error.pos, error.msg, source, line) from None
    except RecursionError:
        raise _invalid(text, at, "nested too deeply to be read", source, line) from None


def _invalid(text: str, at: int, reason: str, source: Source, line: int) -> InputError:
    message = (
        f"not valid JSON: {reason}; mend the file (one object per line, or one array of objects)"
    )
    return InputError(
        message, source.name, line + text.count("\n", 0, at), at - text.rfind("\n", 0, at)
    )


def _space(text: str, at: int) -> int:
    """The first offset from ``at`` on that is not blank."""
    match = _SPACE.match(text, at)
    return match.end() if match else at
