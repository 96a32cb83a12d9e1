"""Arrow IPC files and streams, such as ``datasets`` writes.

In: a ``Source``. Out: ``TextBatch`` es; only the text column and the kept ones are read, a record
    batch at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from numtok.corpus.arrow_files import ArrowFile
from numtok.corpus.read.batches import (
    ReadOptions,
    TextBatch,
    checked_batches,
    pick_text_column,
    text_columns,
)
from numtok.corpus.read.sources import Source, plain_path


def read_arrow(source: Source, options: ReadOptions) -> Iterator[TextBatch]:
    """The documents of an Arrow IPC file or stream, batch by batch; columns left out are neither
    read nor decompressed.
    """
    with plain_path(source) as path, contextlib.closing(ArrowFile(path, name=source.name)) as file:
        text = pick_text_column(
            source,
            options.text_column,
            file.schema.names,
            text_columns(file.schema),
            options.keep_columns,
        )
        wanted = list(dict.fromkeys([text, *options.keep_columns]))
        first_row = 0
        for batch, done in file.read(wanted):
            position = (
                (source.size or 0) * done // max(file.size, 1)
            )  # of a compressed file, its own size
            yield from checked_batches(source, batch, wanted, first_row, position, options)
            first_row += batch.num_rows
