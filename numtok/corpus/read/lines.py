"""Bytes cut into blocks of whole lines, from which JSON lines and text files both start; and the
errors about bytes that are no lines of text.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from numtok.corpus.read.batches import LONGEST_ROW, SKIP_HINT, too_long
from numtok.corpus.read.sources import ByteStream, Source
from numtok.errors import InputError

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Block:
    """Whole lines."""

    data: bytes
    line: int  # the number of the first in the source, from 1
    offset: int  # its byte in the file
    position: int  # stored bytes consumed after them
    numbers: Sequence[int] = ()  # of all of them, if they do not follow one another

    @functools.cached_property
    def lines(self) -> int:
        """How many lines there are; the last needs no line break."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))


def read_blocks(stream: ByteStream, size: int, longest: int = LONGEST_ROW) -> Iterator[Block]:
    """Blocks of about ``size`` bytes, longer only for a longer line; a byte order mark at the start
    is left out. ``InputError`` at a line longer than ``longest`` bytes.
    """
    # of a line that is not complete yet; joined once, so that a long line costs linear time
    waiting: list[bytes] = []
    held = 0
    line, offset, start = 1, stream.source.start, stream.source.start == 0
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
        raise InputError(
            'this is UTF-16, not UTF-8; convert it with "iconv -f UTF-16 -t UTF-8"', source.name, 1
        )


def decoded(data: bytes, source: Source, line: int = 1, offset: int = 0) -> str:
    """The text; an error names the line, of which ``line`` is the first, and the byte."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        within = (error.start - start, error.end - start)
        moved = UnicodeDecodeError("utf-8", data[start:], *within, error.reason)
        line += data.count(b"\n", 0, error.start)
        raise not_utf8(moved, offset + start, source, line) from None


def not_utf8(error: UnicodeDecodeError, offset: int, source: Source, line: int) -> InputError:
    """The error for bytes, from ``offset`` of the decompressed file on, that are not UTF-8."""
    column = len(error.object[: error.start].decode("utf-8", "replace")) + 1
    message = (
        f"not UTF-8: byte 0x{error.object[error.start]:02x} at byte offset {offset + error.start}; "
        f'convert the file with "iconv -f ENCODING -t UTF-8", {SKIP_HINT}'
    )
    return InputError(message, source.name, line, column)
