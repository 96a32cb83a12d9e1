"""Whole corpora: files of text to one file of encoded rows, and back.

In: files, folders, globs or standard input. Out: one Parquet or Arrow file that appears when it is complete, and a ``Summary``.
Memory is bounded whatever the size of the input: a few batches are on their way at once. ``decode_corpus`` is the inverse.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from numtok.corpus.decode import decode_corpus, tokenizer_of
from numtok.corpus.fit import Fit, ScaleFit, sample_files, sample_stream
from numtok.corpus.flow import Sink, run_ordered
from numtok.corpus.read.batches import TextBatch
from numtok.corpus.read.documents import Source, find_inputs, read_batches
from numtok.corpus.summary import (
    BATCH_BYTES,
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
    text_column: str | None = None,
    keep_columns: Sequence[str] = (),
    keep_text: bool = False,
    add_special_tokens: bool = False,
    parse_special: bool = False,
    input_format: str | None = None,
    output_format: str | None = None,
    compression: str | None = "zstd",
    text_unit: Literal["line", "file"] = "line",
    workers: int | None = None,
    batch_bytes: int = BATCH_BYTES,
    overwrite: bool = False,
    tensors: Literal["lists", "extension"] = "lists",
    on_error: Literal["raise", "skip"] = "raise",
    fit: ScaleFit | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Encode files into one Parquet or Arrow file, a row per document, in the order of the inputs.

    Args:
        inputs: files, folders, globs, or ``-`` for standard input; see :func:`numtok.corpus.read.documents.find_inputs`.
        output: ends in .parquet, .arrow, .feather or .ipc, unless ``output_format`` tells.
        tokenizer: what encodes; its ``encode_with_report`` is called from several threads.
        text_column: where the text is; see :func:`numtok.corpus.read.documents.read_batches`.
        keep_columns: other columns of the input, stored after numtok's own.
        keep_text: also store what it takes to give back every byte.
        add_special_tokens: put the source tokenizer's special tokens around each text.
        parse_special: read special tokens that are written in the text as such.
        input_format: of the inputs, whatever their suffix.
        output_format: parquet or arrow, whatever the suffix.
        compression: of the output; see :func:`numtok.corpus.write.encoded.open_writer`.
        text_unit: in ``.txt``, whether a line or the whole file is a document.
        workers: threads that encode; by default one per processor.
        batch_bytes: about how much text is encoded at once.
        overwrite: replace an output that is there already, once the new one is complete.
        tensors: how Parquet stores them; see :func:`numtok.corpus.write.encoded.open_writer`.
        on_error: ``"skip"`` leaves out bad rows of JSON lines and text files, and counts them.
        fit: find the scale and the clip of the tokenizer's xVal first, on a sample of the texts: from all over the files, or, where one of the
            inputs is a pipe, on the first 32 MB, which are kept in memory meanwhile. ``Summary.fit`` says what was found.
        progress: called from the calling thread, several times a second.

    Raises:
        NumtokError: naming the file and row; nothing is left under the output's name then, nor after an interrupt.
    """
    sources = find_inputs(inputs, input_format)
    refuse_input_as_output(sources, output)
    _refuse_own_names(keep_columns, tokenizer)
    run = Run.start(sources, output, progress)
    reading = {"text_column": text_column, "batch_bytes": batch_bytes, "text_unit": text_unit, "on_error": on_error}
    reader = _Reader(sources, reading)
    pieces, kept = reader.with_kept_columns(keep_columns)
    summary = Summary()
    if fit is not None:
        tokenizer, pieces, summary.fit = _fitted(fit, tokenizer, sources, pieces, reading)
    base = tokenizer.batch_schema(keep_text, add_special_tokens)
    described = pa.schema([*base, *kept], base.metadata)

    def work(piece: _Piece) -> Encoded:
        with _located(piece.batch):
            encoded, report = tokenizer.encode_with_report(piece.batch.texts, keep_text, add_special_tokens, parse_special)
            return _with_kept(encoded, piece.batch, described), report

    @contextmanager
    def sink() -> Iterator[Sink[_Piece, Encoded]]:
        with open_writer(output, described, output_format, compression, overwrite, tensors=tensors) as writer:

            def write(piece: _Piece, result: Encoded) -> None:
                writer.write(result[0])
                run.report += result[1]
                if nulls := piece.batch.texts.null_count:
                    run.without_text += nulls
                    run.first_without_text = run.first_without_text or _first_null(piece.batch)
                run.read, run.skipped, run.written = piece.read, run.skipped + piece.batch.skipped, writer.bytes_written

            yield write
            summary.costs(reader.sampled, tokenizer)  # before the output gets its name: an interrupt then leaves nothing

    workers = workers or processors()
    run_ordered(pieces, work, sink, _size, workers, (workers + ON_THE_WAY) * batch_bytes, run.tick)
    return run.complete(summary)


class _Reader:
    """All batches of all sources, with the first megabyte of text put aside."""

    def __init__(self, sources: Sequence[Source], options: dict[str, Any]) -> None:
        self.sampled: list[pa.Array] = []
        self._sources, self._options, self._sampled_bytes = sources, options, 0

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
        for source in self._sources:
            for batch in read_batches(source, keep_columns=names, kept_types=kinds, **self._options):
                self._put_aside(batch.texts)
                yield _Piece(batch, done + batch.position)
            done += source.size or 0

    def _put_aside(self, texts: pa.Array) -> None:
        if self._sampled_bytes < SAMPLE_BYTES and len(texts):
            some = sample(texts, SAMPLE_BYTES - self._sampled_bytes)
            copied = pa.array(some.to_pylist(), pa.large_string())  # a slice would keep the whole batch in memory
            self.sampled.append(copied)
            self._sampled_bytes += copied.nbytes


def _fitted(
    fit: ScaleFit, tokenizer: Tokenizer, sources: Sequence[Source], pieces: Iterable[_Piece], reading: dict[str, Any]
) -> tuple[Tokenizer, Iterable[_Piece], Fit]:
    """The tokenizer with the scale that was found; and all pieces, of which a pipe gives the first only once."""
    if any(source.size is None for source in sources):
        texts, pieces = sample_stream(pieces, lambda piece: piece.batch.texts)
        numbers, found = fit(tokenizer.representations, tokenizer.grammar, texts)
    else:
        numbers, found = fit(tokenizer.representations, tokenizer.grammar, sample_files(sources, **reading))
    return tokenizer.with_options(numbers), pieces, found


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
