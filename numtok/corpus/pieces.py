"""The batches of all inputs as one stream.

In: sources. Out: ``Piece`` s, each a batch and how far into the inputs it ends; the columns that
    are kept beside the texts; and the first megabyte of text, put aside for what is measured on a
    sample.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from numtok.corpus.read.batches import TextBatch
from numtok.corpus.read.documents import Source, read_batches
from numtok.corpus.settings import EncodeSettings
from numtok.corpus.summary import SAMPLE_BYTES, front


class Piece(NamedTuple):
    """A batch, and the stored bytes of all inputs up to its end."""

    batch: TextBatch
    read: int


class Reader:
    """All batches of all sources, with the first ``sample_bytes`` of text put aside."""

    def __init__(
        self, sources: Sequence[Source], settings: EncodeSettings, sample_bytes: int = SAMPLE_BYTES
    ) -> None:
        self.sources = sources
        self.how: dict[str, Any] = {
            name: getattr(settings, name)
            for name in ("text_column", "batch_bytes", "text_unit", "on_error", "template")
        }
        self.text_column = ""  # of the first file that has one
        self.sampled: list[pa.Array] = []
        self._sample_left = sample_bytes

    def with_kept_columns(
        self, names: Sequence[str], known: Sequence[pa.Field] | None = None
    ) -> tuple[Iterable[Piece], list[pa.Field]]:
        """(pieces, the fields of the kept columns): their types are those of the first batch,
        unless they are ``known``.
        """
        kinds: dict[str, pa.DataType] = {field.name: field.type for field in known or ()}
        pieces = self._pieces(tuple(names), kinds)
        if not names or known is not None:
            return pieces, list(known or ())
        first: list[Piece] = []
        for piece in pieces:  # one whose rows were all left out has no types
            first.append(piece)
            if len(piece.batch.texts):
                break
        known_by = first[-1].batch.kept if first else {}
        kinds.update({name: known_by[name].type if first else pa.string() for name in names})
        return itertools.chain(first, pieces), [
            pa.field(name, kind) for name, kind in kinds.items()
        ]

    def _pieces(self, names: tuple[str, ...], kinds: dict[str, pa.DataType]) -> Iterator[Piece]:
        done = 0
        for source in self.sources:
            for batch in read_batches(source, keep_columns=names, kept_types=kinds, **self.how):
                self.text_column = self.text_column or batch.column
                self._put_aside(batch.texts)
                yield Piece(batch, done + batch.position)
            done += source.size or 0

    def _put_aside(self, texts: pa.Array) -> None:
        if self._sample_left > 0 and len(texts):
            copied = pa.concat_arrays(
                [front(texts, self._sample_left)]
            )  # a slice would keep the whole batch in memory
            self.sampled.append(copied)
            self._sample_left -= copied.nbytes
