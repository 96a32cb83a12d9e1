"""Files of lines: cut into blocks of whole ones, and read. Text files are read here, each line or
the whole a document; ``jsonl`` has JSON lines. The quick way takes a block at once; a block that it
refuses is read line by line, which tells the place of what is wrong, or leaves it out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from numtok.arrays.cached import cached_property
from numtok.corpus.read.batches import (
    LONGEST_ROW,
    SKIP_HINT,
    ReadOptions,
    SkippedRow,
    TextBatch,
    too_long,
)
from numtok.corpus.read.sources import ByteStream, Source
from numtok.errors import InputError

Row = TypeVar("Row")

BOM = b"\xef\xbb\xbf"
HEAD = 4  # bytes, of the longest mark of an encoding, that of UTF-32


@dataclass(frozen=True)
class Block:
    """Whole lines."""

    data: bytes
    line: int  # the number of the first in the source, from 1
    offset: int  # its byte in the file
    position: int  # stored bytes consumed after them
    numbers: Sequence[int] = ()  # of all of them, if they do not follow one another

    @cached_property
    def lines(self) -> int:
        """The number of lines; the last needs no line break."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))


def read_blocks(stream: ByteStream, size: int, longest: int = LONGEST_ROW) -> Iterator[Block]:
    """Yield blocks of about ``size`` bytes, longer only for a longer line. A byte order mark at the
    start is left out. ``InputError`` at a line longer than ``longest`` bytes.
    """
    # of a line that is not complete yet; joined once, so that a long line costs linear time
    waiting: list[bytes] = []
    held = 0
    line, offset, start = 1, stream.source.start, stream.source.start == 0
    size = max(size, HEAD)
    while piece := stream.read(size):
        last = len(piece) < size
        if start:
            refuse_utf16(piece, stream.source)
            offset, start = (len(BOM) if piece.startswith(BOM) else 0), False
            piece = piece[offset:]
        cut = len(piece) if last else piece.rfind(b"\n") + 1
        if not cut:
            waiting.append(piece)
            held += len(piece)
            if held > longest:
                raise too_long("this line", longest, stream.source, line)
            continue
        block = Block(b"".join([*waiting, memoryview(piece)[:cut]]), line, offset, stream.position)
        waiting = [piece[cut:]]
        held = len(waiting[0])
        yield block
        line, offset = line + block.lines, offset + len(block.data)
    if rest := b"".join(waiting):
        yield Block(rest, line, offset, stream.position)


class BadRow(Exception):
    """A row cannot be used; says why, and where in the line if known."""

    def __init__(self, reason: str, column: int | None = None) -> None:
        super().__init__(reason)
        self.column = column


def line_by_line(
    block: Block, source: Source, options: ReadOptions, read: Callable[[bytes], Row | None]
) -> tuple[list[Row], list[SkippedRow]]:
    """Return what ``read`` makes of each line; InputError at the first that is bad, or all bad
    ones.
    """
    rows: list[Row] = []
    bad: list[SkippedRow] = []
    offset, numbers = block.offset, block.numbers or itertools.count(block.line)
    for number, raw in zip(numbers, block.data.split(b"\n")[: block.lines], strict=False):
        try:
            if (row := read(raw)) is not None:
                rows.append(row)
        except (BadRow, UnicodeDecodeError) as error:
            blamed = _blame(error, raw, source, number, offset)
            if options.on_error == "raise":
                raise blamed from None
            bad.append(SkippedRow(number, blamed.message))
        offset += len(raw) + 1
    return rows, bad


def _blame(error: Exception, raw: bytes, source: Source, line: int, offset: int) -> InputError:
    """Return the error for a bad row; not being UTF-8 comes first, as it explains most of them."""
    try:
        raw.decode()
    except UnicodeDecodeError as encoding:
        return not_utf8(encoding, offset, source, line)
    return InputError(f"{error}, {SKIP_HINT}", source.name, line, getattr(error, "column", None))


def refuse_utf16(head: bytes, source: Source) -> None:
    """Raise ``InputError`` if the first bytes are the mark of UTF-16 or UTF-32, which can never be
    UTF-8.
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        kind = "UTF-32" if head.startswith(b"\xff\xfe\0\0") else "UTF-16"
        raise InputError(
            f'this is {kind}, not UTF-8; convert it with "iconv -f {kind} -t UTF-8"',
            source.name,
            1,
        )


def decoded(data: bytes, source: Source, line: int = 1, offset: int = 0) -> str:
    """Return the text; an error names the line, of which ``line`` is the first, and the byte."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        within = (error.start - start, error.end - start)
        moved = UnicodeDecodeError("utf-8", data[start:], *within, error.reason)
        line += data.count(b"\n", 0, error.start)
        raise not_utf8(moved, offset + start, source, line) from None


def not_utf8(error: UnicodeDecodeError, offset: int, source: Source, line: int) -> InputError:
    """Return the error for bytes, from ``offset`` of the decompressed file on, that are not UTF-8."""
    column = len(error.object[: error.start].decode("utf-8", "replace")) + 1
    message = (
        f"not UTF-8: byte 0x{error.object[error.start]:02x} at byte offset {offset + error.start}; "
        f'convert the file with "iconv -f ENCODING -t UTF-8", {SKIP_HINT}'
    )
    return InputError(message, source.name, line, column)


def read_text(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield the documents of a text file: its lines without their ``\\n`` or ``\\r\\n``, or
    (``text_unit="file"``) the whole of it.
    """
    if options.keep_columns or options.text_column is not None or options.template is not None:
        raise InputError(
            "a text file has no columns; leave out text_column=... (--text-column), template=..."
            " (--template) and those to keep",
            source.name,
        )
    with ByteStream(source) as stream:
        if options.text_unit == "file":
            yield from _whole(stream, options)
            return
        row = 0
        for block in read_blocks(stream, options.batch_bytes):
            bad: list[SkippedRow] = []
            try:
                texts = split_lines(block.data)
            except pa.ArrowInvalid:
                good, bad = line_by_line(
                    block, source, options, lambda raw: raw.removesuffix(b"\r").decode()
                )
                texts = pa.array(good, pa.large_string())
            yield TextBatch(texts, {}, row, block.position, source, tuple(bad))
            row += len(texts) + len(bad)


def _whole(stream: ByteStream, options: ReadOptions) -> Iterator[TextBatch]:
    """Yield one document, held in memory; an empty file is no document."""
    pieces, held = [], 0
    while piece := stream.read(8 << 20):
        pieces.append(piece)
        held += len(piece)
        if held > LONGEST_ROW:
            raise too_long("this file", LONGEST_ROW, stream.source)
    data = b"".join(pieces)
    if not data:
        return
    refuse_utf16(data, stream.source)
    mark = len(BOM) if data.startswith(BOM) else 0
    texts = pa.array([decoded(data[mark:], stream.source, offset=mark)], pa.large_string())
    yield TextBatch(texts, {}, 0, stream.position, stream.source)


def split_lines(data: bytes) -> pa.Array:
    """Return the lines as large_string; ``ArrowInvalid`` if they are not UTF-8."""
    import pyarrow.compute as pc

    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    whole = one_text(data, len(data) - data.endswith(b"\n"))
    return pc.split_pattern(whole, "\n").flatten()  # (lines,)


def one_text(data: bytes, stop: int) -> pa.Array:
    """Return the bytes up to ``stop`` as large_string[1]; ``ArrowInvalid`` if they are not UTF-8."""
    offsets = pa.py_buffer(np.array([0, stop], np.int64))
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)])
    text.validate(full=True)
    return text
