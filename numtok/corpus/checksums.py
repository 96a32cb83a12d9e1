"""The checksums of Arrow IPC files, which Arrow has not: a CRC-32 for each column in the custom
metadata of each batch. ``FORMAT.md`` is the normative text.
"""

from __future__ import annotations

import json
import zlib

import pyarrow as pa
import pyarrow.ipc

KEY = b"numtok"


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


def sums_of(batch: pa.RecordBatch, number: int) -> dict[bytes, bytes]:
    """The custom metadata of the batch with this number."""
    # What is in a message is not what is in memory (slices, spare capacity): Arrow's own writer
    # says.
    written = pa.ipc.read_record_batch(batch.serialize(), batch.schema)
    sums = dict(zip(batch.schema.names, map(checksum, written.columns), strict=True))
    described = {"batch": number, "rows": batch.num_rows, "crc32": sums}
    return {KEY: json.dumps(described, separators=(",", ":")).encode()}
