"""Arrow IPC files that notice damage: a checksum for every column of every batch, and a mark at the
end. ``FORMAT.md`` is the normative text.

In: record batches. Out: :func:`seal` gives each what goes into its custom metadata;
    :class:`ArrowFile` reads the file, checks the seals, and refuses what does not agree with them.
    Files without seals, which other programs wrote, are read as they are.

Arrow itself would read a flipped bit as another number, or as the end of the file.
"""

from __future__ import annotations

import functools
import json
import os
import weakref
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from numtok import locations
from numtok.errors import InputError

SEAL = b"numtok"
_HEADER = 8  # bytes before the first message: ARROW1 and two zeros


def checksum(column: pa.Array) -> int:
    """CRC-32 of a column as it is in a message: of each buffer in the order of the format, its
    length as int64 and its bytes.
    """
    crc = 0
    for buffer in column.buffers():
        size = 0 if buffer is None else buffer.size
        crc = zlib.crc32(size.to_bytes(8, "little"), crc)
        crc = zlib.crc32(buffer, crc) if size else crc
    return crc


def seal(batch: pa.RecordBatch, number: int, end: bool = False) -> dict[bytes, bytes]:
    """The custom metadata of the batch with this number; ``end`` for the empty one behind the last."""
    # What is in a message is not what is in memory (slices, spare capacity): Arrow's own writer
    # says.
    written = pa.ipc.read_record_batch(batch.serialize(), batch.schema)
    sums = {
        name: checksum(column)
        for name, column in zip(batch.schema.names, written.columns, strict=True)
    }
    described = {"batch": number, "rows": batch.num_rows, "crc32": sums} | (
        {"end": True} if end else {}
    )
    return {SEAL: json.dumps(described, separators=(",", ":")).encode()}


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows; ``pa.array([], ...)`` and ``empty_table`` cannot make extension types
    inside lists, ``nulls`` can.
    """
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _opened(path: str, mapped: bool) -> Any:
    if locations.is_url(path):
        return locations.for_arrow(path)
    return pa.memory_map(path) if mapped else pa.OSFile(path)


class ArrowFile:
    """An IPC file or stream.

    Attributes:
        schema: of the file. size: in bytes.

    Args:
        path: of the file.
        name: of the file in messages, where that is not its path.
        mapped: map the file into memory: columns that are not compressed are then views of it. A
            file that is cut short while it is mapped would kill the process; each read looks at its
            size before. Else it is read piece by piece.

    Raises:
        InputError: if the file does not agree with its seals, here or when a batch is read; what
            Arrow raises, for other damage.
    """

    def __init__(self, path: str, mapped: bool = False, name: str | None = None) -> None:
        self.name = name or path
        self._source = _opened(path, mapped)
        self.size: int = self._source.size()
        self._descriptor = (
            os.open(path, os.O_RDONLY) if mapped else None
        )  # of the same file, whatever becomes of its name
        if self._descriptor is not None:
            weakref.finalize(self, os.close, self._descriptor)
        self._checked: set[tuple[int, str]] = set()
        self._projected: tuple[tuple[str, ...], Any] | None = None
        self._is_stream = self._source.read(6) != b"ARROW1"
        self._source.seek(0)
        self._reader = (
            pa.ipc.open_stream(self._source) if self._is_stream else pa.ipc.open_file(self._source)
        )
        self.schema: pa.Schema = self._reader.schema
        self._sealed = not self._is_stream and self._has_end()

    def _has_end(self) -> bool:
        """Whether the last batch is the mark that ends a file with seals; without it, batches are
        missing.
        """
        last = self._reader.num_record_batches - 1
        if last < 0:
            return False
        batch, custom = self._reader.get_batch_with_custom_metadata(last)
        described = self._seal(custom)
        if described is None or not described.get("end"):
            return False
        self._check(batch, described, last)
        self._source.seek(_HEADER)
        if not pa.ipc.open_stream(self._source).schema.equals(self.schema, check_metadata=True):
            raise self._damaged("its two copies of the schema differ")
        return True

    @functools.cached_property
    def batches(self) -> int:
        """How many there are; those of a stream, which has no index, are looked for once, and then
        kept.
        """
        return (
            len(self._stream_batches)
            if self._is_stream
            else self._reader.num_record_batches - self._sealed
        )

    @functools.cached_property
    def _stream_batches(self) -> list[tuple[pa.RecordBatch, Any]]:
        self._source.seek(0)
        opened = pa.ipc.open_stream(self._source, options=pa.ipc.IpcReadOptions(use_threads=False))
        return [
            (stored.batch, stored.custom_metadata)
            for stored in opened.iter_batches_with_custom_metadata()
        ]

    def read(self, columns: Sequence[str] | None = None) -> Iterator[tuple[pa.RecordBatch, int]]:
        """All batches in order, each with the bytes of the file up to its end, about."""
        if not self._is_stream:
            for number in range(self.batches):
                yield self.batch(number, columns), self.size * (number + 1) // self.batches
            return
        names = list(self.schema.names if columns is None else columns)
        self._source.seek(0)
        opened = pa.ipc.open_stream(self._source, options=self._only(names))
        for number, stored in enumerate(opened.iter_batches_with_custom_metadata()):
            yield (
                self._trusted(stored.batch.select(names), stored.custom_metadata, number),
                self._source.tell(),
            )

    def batch(self, number: int, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """These columns of a batch, in this order; the others are neither read nor decompressed."""
        self.check_size()
        names = list(self.schema.names if columns is None else columns)
        if self._is_stream:
            batch, custom = self._stream_batches[number]
        else:
            batch, custom = self._opened(tuple(names)).get_batch_with_custom_metadata(number)
        return self._trusted(batch.select(names), custom, number)

    def _opened(self, names: tuple[str, ...]) -> Any:
        """The file, opened for some columns; mostly they are the same each time."""
        if self._projected is None or self._projected[0] != names:
            self._projected = names, pa.ipc.open_file(self._source, options=self._only(names))
        return self._projected[1]

    def _only(self, names: Sequence[str]) -> pa.ipc.IpcReadOptions:
        return pa.ipc.IpcReadOptions(
            included_fields=[self.schema.get_field_index(name) for name in names], use_threads=False
        )

    def _trusted(self, batch: pa.RecordBatch, custom: Any, number: int) -> pa.RecordBatch:
        """The batch, looked at once."""
        if self._checked.issuperset((number, name) for name in batch.schema.names):
            return batch
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"column {name!r} is damaged or not UTF-8: {error}; write the file again from"
                    " valid text",
                    self.name,
                ) from None
        described = self._seal(custom)
        if described is not None or self._sealed:
            if described is None or not (self._sealed or self._is_stream):
                raise self._damaged(
                    f"batch {number} has no checksums, or the end of the file is missing"
                )
            self._check(batch, described, number)
        self._checked.update((number, name) for name in batch.schema.names)
        return batch

    def check_size(self) -> None:
        """Refuse to touch a mapped file that has become shorter; views of it that were given out
        before must not be touched either.
        """
        if self._descriptor is not None and os.fstat(self._descriptor).st_size < self.size:
            raise self._damaged("it was cut short while it was being read")

    def close(self) -> None:
        """Close the file; views of a map stay valid."""
        self._source.close()

    def _seal(self, custom: Any) -> dict[str, Any] | None:
        if custom is None or SEAL not in custom:
            return None
        try:
            described = json.loads(custom[SEAL])
        except (ValueError, RecursionError):
            described = None
        if not isinstance(described, dict):
            raise self._damaged("the checksums of a batch are damaged")
        return described

    def _check(self, batch: pa.RecordBatch, described: dict[str, Any], number: int) -> None:
        if (
            described.get("batch") != number
            or described.get("rows") != batch.num_rows
            or not isinstance(described.get("crc32"), dict)
        ):
            raise self._damaged(f"batch {number} is not the one that was written there")
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if described["crc32"].get(name) != checksum(column):
                raise self._damaged(
                    f"column {name!r} of batch {number} does not have the checksum it was written"
                    " with"
                )

    def _damaged(self, what: str) -> InputError:
        return InputError(
            f"the file is damaged: {what}; fetch it again, or make it anew", self.name
        )
