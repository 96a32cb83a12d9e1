"""One Parquet file out of several: their row groups one behind the other, as they are.

In: row groups, out of Parquet files in memory that several threads may have made. Out: one file.
    Nothing is decoded: the bytes are copied, and the footer says where they are now. The fields'
    numbers are those of
    https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
"""

from __future__ import annotations

from typing import Any, BinaryIO, NamedTuple

from numtok.corpus import parquet_footer
from numtok.corpus.write import thrift
from numtok.corpus.write.thrift import Struct

MAGIC = b"PAR1"
_ROWS, _ROW_GROUPS = 3, 4  # of the footer
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7  # of a row group
_SIZES = ((2, 6), (6, 7))  # of a row group, of a chunk's metadata: in memory, in the file
_CHUNK_OFFSETS, _CHUNK_METADATA = (
    (2, 4, 6),
    3,
)  # of a column chunk: its place, those of its indexes, its metadata
_PAGE_OFFSETS = (
    9,
    10,
    11,
    14,
)  # of the metadata: pages of data, of an index, of a dictionary; a Bloom filter
_MOST_ORDINALS = 1 << 15


class RowGroup(NamedTuple):
    """A row group.

    Attributes:
        pieces: its bytes.
        described: what a footer says of it; the bytes begin where they do in a file of their own,
            behind the ``PAR1``.
    """

    pieces: list[Any]
    described: Struct

    @classmethod
    def of(cls, file: Any) -> RowGroup:
        """That of a Parquet file that has one."""
        part = memoryview(file)
        end, footer = _footer(part)
        [described] = footer[_ROW_GROUPS][1][1]
        return cls([part[len(MAGIC) : end]], described)

    def insert(self, place: int, data: bytes, chunk: Struct) -> None:
        """Another column chunk, as the column with this number; its places are those of a file of
        its own, too.
        """
        _shift(chunk[_CHUNK_METADATA][1], _PAGE_OFFSETS, sum(map(len, self.pieces)))
        self.described[_COLUMNS][1][1].insert(place, chunk)
        for whole, part in _SIZES:
            kind, value = self.described[whole]
            self.described[whole] = kind, value + chunk[_CHUNK_METADATA][1][part][1]
        self.pieces.append(data)


class JoinedFile:
    """A Parquet file that is being put together.

    Args:
        file: opened for writing.
        empty: the bytes of a Parquet file without rows, whose footer has the schema and the
            metadata.
    """

    def __init__(self, file: BinaryIO, empty: Any) -> None:
        self._file, self._size = file, 0
        self._footer = _footer(memoryview(empty))[1]
        self._groups: list[Struct] = []
        self._rows = 0
        self._write(MAGIC)

    def append(self, group: RowGroup) -> None:
        """Put a row group behind those that are there."""
        _move(group.described, self._size - len(MAGIC), len(self._groups))
        self._groups.append(group.described)
        self._rows += group.described[_GROUP_ROWS][1]
        for piece in group.pieces:
            self._write(piece)

    def finish(self) -> None:
        """Write the footer, with the checksum that makes damage known."""
        footer = self._footer | {
            _ROWS: (thrift.I64, self._rows),
            _ROW_GROUPS: (thrift.LIST, (thrift.STRUCT, self._groups)),
        }
        self._write(parquet_footer.sealed(thrift.encode(footer)))

    def _write(self, data: Any) -> None:
        rest = memoryview(data)
        while rest:
            written = self._file.write(rest)
            self._size += written
            rest = rest[written:]


def _footer(part: memoryview) -> tuple[int, Struct]:
    """(where it begins, what it says)."""
    end = len(part) - len(MAGIC) - 4
    start = end - int.from_bytes(part[end : end + 4], "little")
    return start, thrift.decode(part[start:end])


def _move(group: Struct, distance: int, ordinal: int) -> None:
    """Let a row group begin so much further on."""
    _shift(group, (_GROUP_OFFSET,), distance)
    for chunk in group[_COLUMNS][1][1]:
        _shift(chunk, _CHUNK_OFFSETS, distance)
        _shift(chunk[_CHUNK_METADATA][1], _PAGE_OFFSETS, distance)
    if ordinal < _MOST_ORDINALS:
        group[_ORDINAL] = thrift.I16, ordinal
    else:
        group.pop(_ORDINAL, None)


def _shift(struct: Struct, fields: tuple[int, ...], distance: int) -> None:
    for number in fields:
        kind, place = struct.get(number, (0, 0))
        if place:  # 0 is for "not there", where a field is no longer used
            struct[number] = kind, place + distance
