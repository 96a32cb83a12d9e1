"""Record batches into an Arrow IPC file with checksums (:mod:`numtok.corpus.arrow_files`)."""

from __future__ import annotations

import contextlib
from typing import BinaryIO

import pyarrow as pa
import pyarrow.ipc

from numtok.corpus.arrow_files import no_rows, seal
from numtok.corpus.write.parquet import ZSTD_LEVEL


class ArrowSink:
    """An open IPC file: ``write`` record batches, then ``finish``; ``abandon`` in any case."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, compression: str) -> None:
        self._schema, self._batches = schema, 0
        codec = (
            None
            if compression == "none"
            else pa.Codec(compression, ZSTD_LEVEL if compression == "zstd" else None)
        )
        self._writer = pa.ipc.new_file(
            file, schema, options=pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows."""
        self._write(batch)

    def finish(self) -> None:
        """Write the mark that ends it, and the footer."""
        self._write(no_rows(self._schema), end=True)
        self._writer.close()

    def abandon(self) -> None:
        """Close what is open without complaint: Arrow's writer would otherwise write its footer
        later, into a closed file.
        """
        with contextlib.suppress(Exception):
            self._writer.close()

    def _write(self, batch: pa.RecordBatch, end: bool = False) -> None:
        self._writer.write_batch(batch, custom_metadata=seal(batch, self._batches, end))
        self._batches += 1
