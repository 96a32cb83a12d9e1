"""Whole corpora: files of text to one file of encoded rows, and back.

In: files, folders, globs or standard input. Out: one Parquet or Arrow file that appears when it is complete, and a ``Summary``.
Memory is bounded whatever the size of the input: a few batches are on their way at once. ``decode_corpus`` is the inverse.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from numtok.corpus.decode import decode_corpus, tokenizer_of
from numtok.corpus.fit import Fit, ScaleFit, sample_files, sample_stream
from numtok.corpus.flow import Sink, run_ordered
from numtok.corpus.read.batches import TextBatch
from numtok.corpus.read.documents import Source, find_inputs, read_batches
from numtok.corpus.settings import EncodeOptions, EncodeSettings
from numtok.corpus.summary import (
    SAMPLE_BYTES,
    Progress,
    Run,
    Summary,
    processors,
    refuse_input_as_output,
    sample,
)
from numtok.corpus.write.encoded import open_writer
from numtok.errors import InputError, NumtokError
from numtok.tokenizer import schema
from numtok.tokenizer.results import EncodeReport
from numtok.tokenizer.tokenizer import Tokenizer

__all__ = ["Progress", "Summary", "decode_corpus", "encode_corpus", "tokenizer_of"]

ON_THE_WAY = 2  # batches between reader and writer, besides one for each worker

Encoded = tuple[pa.RecordBatch, EncodeReport]


class _Piece(NamedTuple):
    """A batch, and the stored bytes of all inputs up to its end."""

    batch: TextBatch
    read: int


def encode_corpus(
    inputs: Sequence[str | Path],
    output: str | Path,
    tokenizer: Tokenizer,
    *,
    fit: ScaleFit | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Unpack[EncodeOptions],
) -> Summary:
    """Encode files into one Parquet or Arrow file, a row per document, in the order of the inputs.

    Args:
        inputs: files, folders, globs, or ``-`` for standard input; see :func:`numtok.corpus.read.find.find_inputs`.
        output: ends in .parquet, .arrow, .feather or .ipc, unless ``output_format`` tells.
        tokenizer: what encodes; its ``encode_with_report`` is called from several threads.
        fit: find the scale and the clip of the tokenizer's xVal first, on a sample of the texts: from all over the files, or, where one of the
            inputs is a pipe, on the first 32 MB, which are kept in memory meanwhile. ``Summary.fit`` says what was found.
        progress: called from the calling thread, several times a second.
        options: what to read, to store and how: see :class:`numtok.corpus.settings.EncodeOptions`.

    Raises:
        NumtokError: naming the file and row; nothing is left under the output's name then, nor after an interrupt.
    """
    settings = EncodeSettings(**options)
    sources = find_inputs(inputs, settings.input_format)
    refuse_input_as_output(sources, output)
    _refuse_own_names(settings.keep_columns, tokenizer)
    run, summary = Run.start(sources, output, progress), Summary()
    reader = _Reader(sources, settings)
    pieces, kept = reader.with_kept_columns(settings.keep_columns)
    if fit is not None:
        tokenizer, pieces, summary.fit = _fitted(fit, tokenizer, reader, pieces)
    summary.representations = tuple(tokenizer.representations)
    encoder = _Encoder(tokenizer, settings, kept)
    # The costs are counted before the output gets its name: an interrupt then leaves nothing.
    sink = functools.partial(_sink, encoder, run, lambda: summary.costs(reader.sampled, tokenizer))
    workers = settings.workers or processors()
    run_ordered(pieces, encoder, sink, _size, workers, (workers + ON_THE_WAY) * settings.batch_bytes, run.tick)
    return run.complete(summary)


class _Encoder:
    """Encodes one piece; from several threads.

    Attributes:
        schema: of what comes out: numtok's columns, and the kept ones behind them.
    """

    def __init__(self, tokenizer: Tokenizer, settings: EncodeSettings, kept: Sequence[pa.Field]) -> None:
        own = tokenizer.batch_schema(settings.keep_text, settings.add_special_tokens)
        self.settings, self.schema = settings, pa.schema([*own, *kept], own.metadata)
        self._tokenizer = tokenizer

    def __call__(self, piece: _Piece) -> Encoded:
        how = self.settings
        with _located(piece.batch):
            encoded, report = self._tokenizer.encode_with_report(
                piece.batch.texts, how.keep_text, how.add_special_tokens, how.parse_special
            )
            return _with_kept(encoded, piece.batch, self.schema), report


@contextmanager
def _sink(encoder: _Encoder, run: Run, before_the_end: Callable[[], None]) -> Iterator[Sink[_Piece, Encoded]]:
    """The output, and the counts of what is in it."""
    how = encoder.settings
    with open_writer(run.output, encoder.schema, how.output_format, how.compression, how.overwrite, tensors=how.tensors) as writer:

        def write(piece: _Piece, result: Encoded) -> None:
            writer.write(result[0])
            run.report += result[1]
            if nulls := piece.batch.texts.null_count:
                run.without_text += nulls
                run.first_without_text = run.first_without_text or _first_null(piece.batch)
            run.read, run.skipped, run.written = piece.read, run.skipped + piece.batch.skipped, writer.bytes_written

        yield write
        before_the_end()


class _Reader:
    """All batches of all sources, with the first megabyte of text put aside."""

    def __init__(self, sources: Sequence[Source], settings: EncodeSettings) -> None:
        self.sources = sources
        self.how: dict[str, Any] = {name: getattr(settings, name) for name in ("text_column", "batch_bytes", "text_unit", "on_error")}
        self.sampled: list[pa.Array] = []
        self._sampled_bytes = 0

    def with_kept_columns(self, names: Sequence[str]) -> tuple[Iterable[_Piece], list[pa.Field]]:
        """(pieces, the fields of the kept columns): their types are those of the first batch."""
        kinds: dict[str, pa.DataType] = {}
        pieces = self._pieces(tuple(names), kinds)
        if not names:
            return pieces, []
        first = list(itertools.islice(pieces, 1))
        kinds.update({name: first[0].batch.kept[name].type if first else pa.string() for name in names})
        return itertools.chain(first, pieces), [pa.field(name, kind) for name, kind in kinds.items()]

    def _pieces(self, names: tuple[str, ...], kinds: dict[str, pa.DataType]) -> Iterator[_Piece]:
        done = 0
        for source in self.sources:
            for batch in read_batches(source, keep_columns=names, kept_types=kinds, **self.how):
                self._put_aside(batch.texts)
                yield _Piece(batch, done + batch.position)
            done += source.size or 0

    def _put_aside(self, texts: pa.Array) -> None:
        if self._sampled_bytes < SAMPLE_BYTES and len(texts):
            some = sample(texts, SAMPLE_BYTES - self._sampled_bytes)
            copied = pa.array(some.to_pylist(), pa.large_string())  # a slice would keep the whole batch in memory
            self.sampled.append(copied)
            self._sampled_bytes += copied.nbytes


def _fitted(fit: ScaleFit, tokenizer: Tokenizer, reader: _Reader, pieces: Iterable[_Piece]) -> tuple[Tokenizer, Iterable[_Piece], Fit]:
    """The tokenizer with the scale that was found; and all pieces, of which a pipe gives the first only once."""
    if any(source.size is None for source in reader.sources):
        texts, pieces = sample_stream(pieces, lambda piece: piece.batch.texts)
        representations, found_on = fit(tokenizer.representations, tokenizer.grammar, texts)
    else:
        representations, found_on = fit(tokenizer.representations, tokenizer.grammar, sample_files(reader.sources, **reader.how))
    return tokenizer.with_options(representations), pieces, found_on


def _size(piece: _Piece) -> int:
    return int(piece.batch.texts.nbytes)


def _refuse_own_names(keep_columns: Sequence[str], tokenizer: Tokenizer) -> None:
    """A kept column must not look like one of numtok's, be it written this time or not."""
    own = schema.columns_of(tokenizer.representations, keep_text=True)
    taken = [name for name in keep_columns if name in own]
    if taken:
        hint = "use keep_text (--keep-text) to be able to give every text back" if taken[0] == "text" else "rename it in the input"
        raise InputError(f"column {taken[0]!r} cannot be kept, as numtok writes one of that name itself; {hint}")


def _first_null(batch: TextBatch) -> str:
    """Where the first document without a text is."""
    return f"{batch.source.name}, row {batch.first_row + pc.index(batch.texts.is_null(), True).as_py() + 1}"


def _with_kept(encoded: pa.RecordBatch, batch: TextBatch, described: pa.Schema) -> pa.RecordBatch:
    """The encoded rows with the kept columns behind them."""
    own = len(encoded.schema)
    if not encoded.schema.field("input_ids").type.equals(described.field("input_ids").type):
        raise InputError("the document has more than 2**31 tokens, which a row cannot hold; cut it into several")
    kept = [batch.kept[field.name] for field in list(described)[own:]]
    cast = [column.cast(field.type) for column, field in zip(kept, list(described)[own:], strict=True)]
    return pa.RecordBatch.from_arrays([*encoded.columns, *cast], schema=described)


@contextmanager
def _located(batch: TextBatch) -> Iterator[None]:
    """Errors about a document of a batch name its file and row instead."""
    try:
        yield
    except NumtokError as error:
        row = batch.first_row + (error.document or 0) + 1
        error.move_to_file(batch.source.name, row, near=error.document is None or batch.skipped > 0)
        raise
    except Exception as error:
        error.add_note(f"while encoding rows {batch.first_row + 1} to {batch.first_row + len(batch.texts)} of {batch.source.name}")
        raise
