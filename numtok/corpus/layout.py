"""Which rows a file gets of encoded batches: those in number layout as they come, or in token
layout; packed ones are in :mod:`numtok.corpus.pack`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from numtok.tokenizer.layout import to_token_layout, token_schema


class Rows:
    """Rows as they were encoded: number layout.

    Attributes:
        schema: of the file.
        count: rows of the file, once it is whole. cut_numbers: numbers longer than a row, which
            were cut.

    Args:
        encoded: the schema of the batches that come.
    """

    def __init__(self, encoded: pa.Schema) -> None:
        self.schema, self.count, self.cut_numbers = encoded, 0, 0

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What can be done to a batch by itself; called from several threads."""
        return batch

    def arrange(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The batches to write once this one has come, in the order of the documents."""
        yield batch

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Those to write at the end."""
        return iter(())


class TokenRows(Rows):
    """One value per token in every column: :mod:`numtok.tokenizer.layout`."""

    def __init__(self, encoded: pa.Schema) -> None:
        super().__init__(token_schema(encoded))

    def convert(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return to_token_layout(batch)
