"""What the batches of an Arrow IPC file hold once they are decompressed, by its headers alone: a few
kilobytes may stand for gigabytes.

In: a file or a stream that can be sought. Out: the bytes of each message's body, as stored and
    decompressed. The headers are FlatBuffers, of which a few fields are read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

_HEADER, _BODY_LENGTH = 2, 3  # fields of Message
_BUFFERS, _COMPRESSION = 2, 3  # of RecordBatch
_DATA = 1  # of DictionaryBatch, a RecordBatch
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3  # kinds of Message


def body_sizes(source: Any) -> Iterator[tuple[int, int]]:
    """(stored, decompressed) bytes of each batch of rows or of a dictionary, in order; it ends
    where the file is not as it should be, which is left to Arrow to tell.
    """
    source.seek(0)
    at = 8 if source.read(6) == b"ARROW1" else 0
    while True:
        source.seek(at)
        start = source.read(8)
        if len(start) < 8 or start[:4] != b"\xff\xff\xff\xff":
            return
        length = int.from_bytes(start[4:], "little")
        message = source.read(length)
        if not length or len(message) < length:
            return
        at += 8 + length
        try:
            kind, stored, buffers = _parsed(message)
        except (struct.error, IndexError):
            return
        if kind in (_DICTIONARY_BATCH, _RECORD_BATCH):
            yield stored, sum(_decompressed(source, at, *buffer) for buffer in buffers)
        at += stored


def _parsed(message: bytes) -> tuple[int, int, list[tuple[int, int]]]:
    """(kind, bytes of the body, place and length of each compressed buffer in it)."""
    table = struct.unpack_from("<I", message)[0]
    body = _field(message, table, _BODY_LENGTH)
    stored = struct.unpack_from("<q", message, body)[0] if body else 0
    kind = message[_field(message, table, 1)]
    batch = _child(message, _field(message, table, _HEADER))
    if kind == _DICTIONARY_BATCH:
        batch = _child(message, _field(message, batch, _DATA))
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH) or not _field(message, batch, _COMPRESSION):
        return kind, stored, []
    vector = _child(message, _field(message, batch, _BUFFERS))
    count = struct.unpack_from("<I", message, vector)[0]
    return (
        kind,
        stored,
        list(struct.iter_unpack("<qq", message[vector + 4 : vector + 4 + 16 * count])),
    )


def _field(message: bytes, table: int, number: int) -> int:
    """Where a field of a table is; 0 if it is left out."""
    entries = table - struct.unpack_from("<i", message, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", message, entries)[0]:
        return 0
    offset = struct.unpack_from("<H", message, entries + 4 + 2 * number)[0]
    return table + offset if offset else 0


def _child(message: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", message, place)[0])


def _decompressed(source: Any, body: int, offset: int, length: int) -> int:
    if length < 8:
        return 0
    source.seek(body + offset)
    size = int.from_bytes(source.read(8), "little", signed=True)
    return length if size < 0 else size  # -1: not compressed
