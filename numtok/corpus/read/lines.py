"""Bytes cut into blocks of whole lines, and plain text files.

In: a ``ByteStream``. Out: ``Block`` s that end at a line break (JSON lines and text files both start from these), and, for
``.txt``, ``TextBatch`` es with one document per line or per file.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.corpus.read.batches import LONGEST_ROW, SKIP_HINT, ReadOptions, TextBatch
from numtok.corpus.read.sources import ByteStream, Source
from numtok.errors import InputError

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole lines: their bytes, the 1-based number of the first, its byte offset, and stored bytes consumed after them."""

    data: bytes
    line: int
    offset: int
    position: int

    @functools.cached_property
    def lines(self) -> int:
        """How many lines there are; the last needs no line break."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))


def read_blocks(stream: ByteStream, size: int, longest: int = LONGEST_ROW) -> Iterator[Block]:
    """Blocks of about ``size`` bytes, longer only for a longer line; a byte order mark at the start is left out.

    ``InputError`` at a line longer than ``longest`` bytes: a few kilobytes of compressed file can hold a line that fills the memory.
    """
    waiting: list[bytes] = []  # pieces of a line that is not complete yet; joined once, so that a long line costs linear time
    held = 0
    line, offset, start = 1, 0, True
    size = max(size, len(BOM))
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


def refuse_utf16(head: bytes, source: Source) -> None:
    """``InputError`` if the first bytes are the mark of UTF-16, which can never be UTF-8."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError('this is UTF-16, not UTF-8; convert it with "iconv -f UTF-16 -t UTF-8"', source.name, 1)


def too_long(what: str, longest: int, source: Source, line: int | None = None) -> InputError:
    """The error for what would have to be held in memory whole, but is too long for that."""
    message = f"{what} is longer than {longest >> 20:,} MiB, the most that is held in memory; cut it into several documents"
    return InputError(message + (", or check what the compressed file expands to" if source.compression else ""), source.name, line)


def not_utf8(error: UnicodeDecodeError, offset: int, source: Source, line: int) -> InputError:
    """The error for bytes that are not UTF-8; ``offset`` is that of the decoded bytes in the (decompressed) file."""
    column = len(error.object[: error.start].decode("utf-8", "replace")) + 1
    message = (
        f"not UTF-8: byte 0x{error.object[error.start]:02x} at byte offset {offset + error.start}; "
        f'convert the file with "iconv -f ENCODING -t UTF-8", {SKIP_HINT}'
    )
    return InputError(message, source.name, line, column)


def read_text(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Documents of a text file: its lines without their ``\\n`` or ``\\r\\n``, or (``text_unit="file"``) the whole of it."""
    if options.keep_columns or options.text_column is not None:
        raise InputError("a text file has no columns; leave out --text-column and the columns to keep", source.name)
    with ByteStream(source) as stream:
        if options.text_unit == "file":
            yield from _whole(stream, options)
            return
        row = 0
        for block in read_blocks(stream, options.batch_bytes):
            try:
                texts, skipped = split_lines(block.data), 0
            except pa.ArrowInvalid:
                texts, skipped = _good_lines(block, source, options)
            yield TextBatch(texts, {}, row, block.position, source, skipped)
            row += len(texts) + skipped


def _whole(stream: ByteStream, options: ReadOptions) -> Iterator[TextBatch]:
    """One document, held in memory; an empty file is no document."""
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
    try:
        texts, skipped = pa.array([data[mark:].decode()], pa.large_string()), 0
    except UnicodeDecodeError as error:
        if options.on_error == "raise":
            before = error.object[: error.start]
            line, line_start = before.count(b"\n") + 1, before.rfind(b"\n") + 1
            moved = UnicodeDecodeError("utf-8", error.object[line_start:], error.start - line_start, error.end - line_start, error.reason)
            raise not_utf8(moved, mark + line_start, stream.source, line) from None
        texts, skipped = pa.array([], pa.large_string()), 1
    yield TextBatch(texts, {}, 0, stream.position, stream.source, skipped)


def split_lines(data: bytes) -> pa.Array:
    """The lines as large_string; ``ArrowInvalid`` if they are not UTF-8."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    stop = len(data) - data.endswith(b"\n")
    offsets = pa.py_buffer(np.array([0, stop], np.int64))
    whole = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)])  # one string: (1,)
    whole.validate(full=True)
    return pc.split_pattern(whole, "\n").flatten()  # (lines,)


def _good_lines(block: Block, source: Source, options: ReadOptions) -> tuple[pa.Array, int]:
    """Line by line: the good lines and the count of bad ones, or an error at the first bad one."""
    texts: list[str] = []
    offset = block.offset
    raw_lines = block.data.split(b"\n")[: block.lines]
    for number, raw in enumerate(raw_lines, block.line):
        try:
            texts.append(raw.removesuffix(b"\r").decode())
        except UnicodeDecodeError as error:
            if options.on_error == "raise":
                raise not_utf8(error, offset, source, number) from None
        offset += len(raw) + 1
    return pa.array(texts, pa.large_string()), len(raw_lines) - len(texts)
