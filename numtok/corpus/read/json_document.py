"""``.json`` files: JSON lines; or one array of objects, or a single object, whose text is held in
memory whole, and read as ``jsonl`` reads lines.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

from numtok.corpus.read import jsonl
from numtok.corpus.read.batches import ReadOptions, TextBatch, too_long
from numtok.corpus.read.kept_values import DECODER
from numtok.corpus.read.lines import BadRow, Block, decoded, read_blocks
from numtok.corpus.read.sources import ByteStream, Source
from numtok.errors import InputError

_SPACE = re.compile(r"[ \t\r\n]*")
_LONGEST_DOCUMENT = 1 << 29  # bytes


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
        yield from jsonl.batches_of_blocks(whole, source, options)


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
        return isinstance(jsonl.parse_line(data.lstrip().split(b"\n", 1)[0]), dict)
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
