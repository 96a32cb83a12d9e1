"""Plain text files.

In: a ``Source``. Out: ``TextBatch`` es with one document per line, or one for the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numtok.corpus.read.batches import LONGEST_ROW, ReadOptions, SkippedRow, TextBatch, too_long
from numtok.corpus.read.lines import BOM, Block, decoded, not_utf8, read_blocks, refuse_utf16
from numtok.corpus.read.sources import ByteStream, Source
from numtok.errors import InputError


def read_text(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """Documents of a text file: its lines without their ``\\n`` or ``\\r\\n``, or
    (``text_unit="file"``) the whole of it.
    """
    if options.keep_columns or options.text_column is not None or options.template is not None:
        raise InputError(
            "a text file has no columns; leave out text_column=..., template=... and those to keep",
            source.name,
        )
    with ByteStream(source) as stream:
        if options.text_unit == "file":
            yield from _whole(stream, options)
            return
        row = 0
        for block in read_blocks(stream, options.batch_bytes):
            try:
                texts = split_lines(block.data)
                bad: list[SkippedRow] = []
            except pa.ArrowInvalid:
                texts, bad = _good_lines(block, source, options)
            yield TextBatch(texts, {}, row, block.position, source, tuple(bad))
            row += len(texts) + len(bad)


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
    texts = pa.array([decoded(data[mark:], stream.source, offset=mark)], pa.large_string())
    yield TextBatch(texts, {}, 0, stream.position, stream.source)


def split_lines(data: bytes) -> pa.Array:
    """The lines as large_string; ``ArrowInvalid`` if they are not UTF-8."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    stop = len(data) - data.endswith(b"\n")
    offsets = pa.py_buffer(np.array([0, stop], np.int64))
    # one string: (1,)
    whole = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(data)])
    whole.validate(full=True)
    return pc.split_pattern(whole, "\n").flatten()  # (lines,)


def _good_lines(
    block: Block, source: Source, options: ReadOptions
) -> tuple[pa.Array, list[SkippedRow]]:
    """Line by line: the good lines and the bad ones, or an error at the first bad one."""
    texts: list[str] = []
    bad: list[SkippedRow] = []
    offset = block.offset
    raw_lines = block.data.split(b"\n")[: block.lines]
    for number, raw in enumerate(raw_lines, block.line):
        try:
            texts.append(raw.removesuffix(b"\r").decode())
        except UnicodeDecodeError as error:
            blamed = not_utf8(error, offset, source, number)
            if options.on_error == "raise":
                raise blamed from None
            bad.append(SkippedRow(number, blamed.message))
        offset += len(raw) + 1
    return pa.array(texts, pa.large_string()), bad
