"""JSON lines, one object per line; and ``.json`` files that hold one array of objects, or a single
object, whose text is held in memory whole.

Arrow's parser does the work, a block at a time and only for the columns wanted. What it refuses is
parsed again line by line with ``json``, the reference: it accepts a line or tells what is wrong.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.json

from numtok.arrays import memory
from numtok.corpus.read.batches import (
    TEXT_COLUMNS,
    ReadOptions,
    SkippedRow,
    TextBatch,
    too_long,
)
from numtok.corpus.read.kept_values import DECODER, WAY_OUT, fitted, guess_type, shown, sure
from numtok.corpus.read.lines import BadRow, Block, decoded, line_by_line, read_blocks
from numtok.corpus.read.sources import ByteStream, Source
from numtok.corpus.read.template import AS_WRITTEN, Cells, Template, as_written
from numtok.errors import InputError

# Arrow's parser crashes the process when the first row is a bare `null`, so it only gets blocks
# that start with an object.
_STARTS_WITH_OBJECT = re.compile(rb"[ \t\r\n]*\{")
_SAMPLE_BYTES = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")
_LONGEST_DOCUMENT = 1 << 29  # bytes
_FIT_IN_INT32 = (1 << 31) - 2
KINDS = {
    int: "a number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    str: "a string",
}


@dataclass(frozen=True)
class Columns:
    """The text column's name, and the Arrow type of each kept column other than that."""

    text: str
    kept: dict[str, pa.DataType]
    template: Template | None = None

    def row_of_line(self, raw: bytes) -> list[Any] | None:
        """Return the text, or all that a template may take, and the kept values of a line, which
        may be ``null``; None for a blank one. ``BadRow`` if it cannot be used.
        """
        if not raw.strip(b" \t\r"):
            return None
        value = parse_line(raw)
        if value is None:
            return [None] * (1 + len(self.kept))
        if not isinstance(value, dict):
            raise BadRow(
                f"the row is {KINDS.get(type(value), 'a number')}, not an object; if the file is"
                " one array of objects, tell with input_format='json' (--format json)"
            )
        if self.template is None:
            text = value.get(self.text)
            _check_text(text, self.text)
        else:
            text = as_written(parse_line(raw, AS_WRITTEN))
            for name in self.template.columns or tuple(text):
                _check_unicode(name + text.get(name, ""), f"column {name!r}")
        values = [text]
        for name, dtype in self.kept.items():
            fits, stored = fitted(value.get(name), dtype)
            if not fits:
                raise BadRow(
                    f"kept column {name!r} holds {shown(value[name])}, which {dtype}, the type of"
                    f" the rows before, cannot hold as it is; {WAY_OUT}"
                )
            values.append(stored)
        return values

    def arrays(
        self, rows: Sequence[list[Any]]
    ) -> tuple[pa.Array, dict[str, pa.Array], Cells | None]:
        """Return rows as Arrow columns: the texts, the kept columns by name, and where the columns
        of a template stand in the texts.
        """
        texts, *kept = zip(*rows, strict=True) if rows else [()] * (1 + len(self.kept))
        columns = {
            name: pa.array(values, dtype)
            for (name, dtype), values in zip(self.kept.items(), kept, strict=True)
        }
        if self.template is None:
            return pa.array(texts, pa.large_string()), columns, None
        joined, cells = self.template.of_rows(texts)
        return joined, columns, cells


def _check_text(text: Any, name: str) -> None:
    """Raise ``BadRow`` if it is not a text, or one that is no Unicode."""
    if text is None:
        return
    if not isinstance(text, str):
        raise BadRow(
            f"text column {name!r} holds {KINDS.get(type(text), 'a number')}, not a string; choose"
            " another with text_column=NAME (--text-column NAME)"
        )
    _check_unicode(text, f"text column {name!r}")


def _check_unicode(text: str, where: str) -> None:
    """Raise ``BadRow`` if a text is no Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        escape = f"\\u{ord(text[error.start]):04x}"
        raise BadRow(
            f"{where} has half of a surrogate pair ({escape}), which is no character; mend the row"
        ) from None


def read_json_lines(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the documents of a JSON lines file; see ``read_batches``."""
    columns = columns_of_head(source, options) if source.start else None
    with ByteStream(source) as stream:
        blocks = read_blocks(stream, options.batch_bytes)
        yield from batches_of_blocks(blocks, source, options, columns)


def columns_of_head(source: Source, options: ReadOptions) -> Columns | None:
    """Return the columns of a part of a file: those by which the parts before it are read."""
    head = dataclasses.replace(source, start=0, stop=source.start, size=source.start)
    with ByteStream(head) as stream:
        blocks = read_blocks(stream, options.batch_bytes)
        columns_of_blocks = (columns_of_block(block, head, options) for block in blocks)
        return next((columns for columns in columns_of_blocks if columns), None)


def batches_of_blocks(
    blocks: Iterator[Block], source: Source, options: ReadOptions, columns: Columns | None = None
) -> Iterator[TextBatch]:
    """Yield one batch per block that has rows; the first that has any field gives the columns."""
    first_row = 0
    for block in blocks:
        columns = columns or columns_of_block(block, source, options)
        use = columns or columns_of_rows([], source, options)
        fast = _parse_fast(block, use)
        if fast:
            texts, kept = fast
            bad: list[SkippedRow] = []
            cells = None
        else:
            rows, bad = line_by_line(block, source, options, use.row_of_line)
            texts, kept, cells = use.arrays(rows)
        memory.trim_memory(len(block.data))
        if len(texts) or bad:
            if use.text in options.keep_columns:
                kept[use.text] = texts
            where = (first_row, block.position, source, tuple(bad), use.text)
            yield TextBatch(texts, kept, *where, cells=cells)
        first_row += len(texts) + len(bad)


def _parse_fast(block: Block, columns: Columns) -> tuple[pa.Array, dict[str, pa.Array]] | None:
    """Return the block by Arrow's parser, or None where that may differ from the reference."""
    if (
        not _STARTS_WITH_OBJECT.match(block.data)
        or len(block.data) > _FIT_IN_INT32
        or columns.template is not None
    ):
        return None
    schema = pa.schema([(columns.text, pa.large_string()), *columns.kept.items()])
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(block.data),
            read_options=pyarrow.json.ReadOptions(
                use_threads=False, block_size=len(block.data) + 1
            ),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
        # Arrow takes an object over two lines, or two objects on one, but a cut between blocks
        # would make the first fail at random.
        if table.num_rows != block.lines:
            return None
        texts, *kept = (column.combine_chunks() for column in table.columns)
        for column in (texts, *kept):
            column.validate(full=True)
    except pa.ArrowException:
        return None
    if not all(sure(column, block.data) for column in kept):
        return None
    return texts, dict(zip(columns.kept, kept, strict=True))


def parse_line(raw: bytes, decoder: json.JSONDecoder = DECODER) -> Any:
    """Return the value on one line; ``BadRow`` if there is none. Bytes that are not UTF-8 become
    lone surrogates, so that they only matter in a column that is used, as in Arrow's parser.
    """
    line = raw.decode("utf-8", "surrogateescape")
    try:
        value, stop = decoder.raw_decode(line, len(line) - len(line.lstrip(" \t\r")))
    except json.JSONDecodeError as error:
        raise BadRow(f"not valid JSON: {error.msg}; mend the line", error.pos + 1) from None
    except RecursionError:
        raise BadRow("nested too deeply to be read; mend the line") from None
    if rest := line[stop:].lstrip(" \t\r"):
        raise BadRow(
            "not valid JSON: more text after the value; put one object on each line",
            len(line) - len(rest) + 1,
        )
    return value


def columns_of_block(block: Block, source: Source, options: ReadOptions) -> Columns | None:
    """Return the columns by the block's first rows; None while no row has a field."""
    of_text = options.template.columns if options.template else (options.text_column,)
    wanted = {*options.keep_columns, *of_text} - {None}
    for limit in (_SAMPLE_BYTES, len(block.data)):
        rows = _sample(block.data, limit)
        if wanted <= {name for row in rows for name in row}:
            break
    return columns_of_rows(rows, source, options) if any(rows) else None


def columns_of_rows(
    rows: Sequence[dict[str, Any]], source: Source, options: ReadOptions
) -> Columns:
    """Return the columns by these sample rows; where none has any field, every document is null."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        text = options.text_column or "text"
        types = {name: options.kept_types.get(name, pa.string()) for name in options.keep_columns}
        types.pop(text, None)
        return Columns(text, types, options.template)
    kinds = {name: {type(row[name]) for row in rows if row.get(name) is not None} for name in names}
    named = [name for name in TEXT_COLUMNS if name in kinds]
    strings = [
        name
        for name in names
        if kinds[name] == {str} or (name in named and (str in kinds[name] or not kinds[name]))
    ]
    # With no string anywhere, a column by the right name is taken, so that the error will tell
    # which row holds what.
    strings = strings or named[:1] or [name for name in names if not kinds[name]]
    text = options.wanted(source, names, lambda: strings)[0]
    text = "" if options.template else text
    types = {
        name: options.kept_types.get(name) or guess_type(rows, name, source)
        for name in options.keep_columns
        if name != text
    }
    return Columns(text, types, options.template)


def _sample(data: bytes, limit: int) -> list[dict[str, Any]]:
    """Return the objects on the first lines, up to about ``limit`` bytes; bad ones are left out."""
    rows = []
    cut = data.find(b"\n", limit)
    for line in data[: cut if cut >= 0 else None].split(b"\n"):
        with contextlib.suppress(BadRow):
            row = parse_line(line)
            if isinstance(row, dict):
                rows.append(row)
    return rows


# One array, or one object
# -------------------------------------------------------------------------------------------------


def read_json(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the documents of a ``.json`` file; see ``read_batches``."""
    with ByteStream(source) as stream:
        blocks = read_blocks(stream, options.batch_bytes, _LONGEST_DOCUMENT)
        first = next((block for block in blocks if block.data.strip()), None)
        if first is None:
            return
        whole: Iterator[Block] = itertools.chain([first], blocks)
        if not _first_line_is_object(first.data):
            whole = _lines(_whole_file(whole, source), first, stream, options.batch_bytes)
        yield from batches_of_blocks(whole, source, options)


def _whole_file(blocks: Iterator[Block], source: Source) -> bytes:
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
    """Whether the first line that is not blank is an object, as in JSON lines."""
    try:
        return isinstance(parse_line(data.lstrip().split(b"\n", 1)[0]), dict)
    except BadRow:
        return False


def _lines(data: bytes, first: Block, stream: ByteStream, size: int) -> Iterator[Block]:
    """Yield the elements of one array, or the one object, each on a line."""
    text = decoded(data, stream.source, first.line, first.offset)
    lines: list[bytes] = []
    numbers: list[int] = []
    begin, done, line = 0, 0, first.line

    def block(position: int) -> Block:
        return Block(b"\n".join(lines), numbers[0], first.offset, position, tuple(numbers))

    for at, stop in _elements(text, stream.source, first.line):
        if lines and at - begin >= size:
            yield block(stream.position * at // len(text))
            lines, numbers, begin = [], [], at
        line, done = line + text.count("\n", done, at), at
        lines.append(text[at:stop].replace("\n", " ").encode())
        numbers.append(line)
    if lines:
        yield block(stream.position)


def _elements(text: str, source: Source, line: int) -> Iterator[tuple[int, int]]:
    """Yield where each element of the array (or the single value) begins and ends."""
    at = _space(text, 0)
    array = text[at] == "["
    at = _space(text, at + 1) if array else at
    empty = array and text[at : at + 1] == "]"
    while not empty:
        stop = _end(text, at, source, line)
        yield at, stop
        at = _space(text, stop)
        if not array or text[at : at + 1] == "]":
            break
        if text[at : at + 1] != ",":
            raise _invalid(text, at, "Expecting ',' or ']'", source, line)
        at = _space(text, at + 1)
    at = _space(text, at + 1 if array else at)
    if at < len(text):
        raise _invalid(text, at, "more text after the value", source, line)


def _end(text: str, at: int, source: Source, line: int) -> int:
    try:
        return DECODER.raw_decode(text, at)[1]
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
    """Return the first offset from ``at`` on that is not blank."""
    match = _SPACE.match(text, at)
    return match.end() if match else at
