"""Files of text to one file of encoded rows, which appears when it is complete. Memory is bounded
whatever the size of the input: a few batches are on their way at once.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from numtok import storage
from numtok.arrays import memory
from numtok.arrays.text_rows import TextRows
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.fit import FIT_BYTES, Fit, ScaleFit, sample_files
from numtok.corpus.pack import FileRows, PackedRows, TokenLayoutRows
from numtok.corpus.pipeline import Reader, TextChunk, join_small, located, run_ordered
from numtok.corpus.read.batches import TextBatch
from numtok.corpus.read.documents import check_formats, find_inputs
from numtok.corpus.read.sources import identify
from numtok.corpus.summary import Run, Summary, quarantine, refuse_input_as_output
from numtok.corpus.write import open_writer
from numtok.errors import InputError
from numtok.files import write_file
from numtok.tokenizer import schema
from numtok.tokenizer.metadata import MOST_TOKENS
from numtok.tokenizer.number_selection import EncodeReport
from numtok.tokenizer.packing import end_token
from numtok.tokenizer.tokenizer import Tokenizer


class EncodedBatch(NamedTuple):
    """A chunk of text once it is encoded, without its texts."""

    rows: pa.RecordBatch
    report: EncodeReport
    read: int


def encode_corpus(
    inputs: Sequence[str | Path],
    output: str | Path,
    tokenizer: Tokenizer,
    options: EncodeOptions = EncodeOptions(),  # noqa: B008  # it is frozen
    *,
    fit: ScaleFit | None = None,
) -> Summary:
    """Encode files into one Parquet or Arrow file, as :func:`numtok.encode_files` does, by this
    tokenizer. Rows that ``on_error="skip"`` leaves out are listed in ``OUTPUT.quarantine``.

    Args:
        inputs: files, folders, globs or URLs.
        output: a file, or ``-`` for standard output.
        tokenizer: encodes the texts.
        options: see :class:`~numtok.corpus.encode_options.EncodeOptions`.
        fit: first find the scale of the tokenizer's xVal on a sample of the texts: from all over
            the files, or, with a pipe among the inputs, on the first 32 MB.

    Raises:
        NumtokError: also for an input that was cut or replaced while it was read.

    Example:
        >>> import numtok
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="bits")
        >>> encode_corpus(["sample.jsonl"], "encoded.parquet", tokenizer).documents
        31
    """
    sources = find_inputs(inputs, options.input_format)
    check_formats(sources, options.text_unit, options.delimiter)
    refuse_input_as_output(sources, output)
    refuse_own_names(options.keep_columns, tokenizer)
    run = Run(sources, output, options.progress)
    identities = [None if source.size is None else identify(source.path) for source in sources]

    def check_inputs() -> None:
        """Raise InputError for an input that is shorter now, or other, and so was read in part."""
        for source, before in zip(sources, identities, strict=True):
            if before is not None:
                current = identify(source.path)
                if current != before and current[0] <= before[0]:
                    raise storage.changed(source.name)

    reader = Reader(sources, options)
    summary = encode_sources(run, tokenizer, options, reader, fit=fit, check_inputs=check_inputs)
    if output != "-":
        listed = f"{run.output}.quarantine"
        if reader.skipped:
            write_file(listed, quarantine(reader.skipped))
            summary.quarantine = listed
        elif options.overwrite and storage.is_file(listed):
            storage.remove(listed)  # that of the file that was replaced
    return summary


class ShardSchema(NamedTuple):
    """Kept columns and schema metadata that all shards of a job share."""

    kept: Sequence[pa.Field]  # the columns beside the texts
    metadata: Mapping[bytes, bytes]  # what the schema of the output says besides


def encode_sources(
    run: Run,
    tokenizer: Tokenizer,
    options: EncodeOptions,
    reader: Reader,
    *,
    fit: ScaleFit | None = None,
    shard_schema: ShardSchema | None = None,
    check_inputs: Callable[[], None] = lambda: None,
) -> Summary:
    """Encode what ``reader`` reads into the output of ``run``, which appears once ``check_inputs``
    has raised nothing.
    """
    found_on = None
    chunks, kept = reader.with_kept_columns(
        options.keep_columns, shard_schema and shard_schema.kept
    )
    if fit is not None:
        tokenizer, chunks, found_on = _fitted(fit, tokenizer, reader, chunks)
    encoder = _Encoder(tokenizer, options, kept, shard_schema.metadata if shard_schema else {})
    rows, output = encoder.rows, (options.output_format, options.compression, options.overwrite)
    with open_writer(run.output, rows.schema, *output, tensors=options.tensors) as writer:

        def write(encoded: EncodedBatch) -> None:
            for batch in rows.arrange(encoded.rows):
                writer.write(batch)
            run.report += encoded.report
            run.read, run.written = encoded.read, writer.bytes_written

        run_ordered(
            join_small(chunks),
            encoder,
            write,
            lambda chunk: chunk.batch.texts.nbytes,
            options.workers,
            reader.options.batch_bytes,
            run.tick,
        )
        for batch in rows.rest():
            writer.write(batch)
        check_inputs()  # before the output gets its name: an error then leaves nothing
    run.written, run.sha256 = writer.bytes_written, writer.sha256
    summary = Summary(
        skipped=len(reader.skipped),
        without_text=reader.without_text,
        first_without_text=reader.first_without_text,
        representations=tuple(tokenizer.representations),
        fit=found_on,
        text_column=reader.text_column,
        rows=writer.rows,
        cut_numbers=rows.cut_numbers,
    )
    return run.complete(summary)


def rows_for(options: EncodeOptions, encoded: pa.Schema, tokenizer: Tokenizer) -> FileRows:
    """Return how the batches of a schema become the rows of a file; TokenizerError if they are to
    be packed and the tokenizer has no such end token.
    """
    if options.pack is not None:
        end = end_token(tokenizer, options.end_token)
        return PackedRows(encoded, options.pack, options.pack_mode, end)
    return TokenLayoutRows(encoded) if options.layout == "token" else FileRows(encoded)


class _Encoder:
    """Encodes chunks of text, from several threads; ``rows`` makes of them the rows of the file."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        options: EncodeOptions,
        kept: Sequence[pa.Field],
        metadata: Mapping[bytes, bytes],
    ) -> None:
        schema_of_batches = tokenizer.batch_schema(options.keep_text, options.add_special_tokens)
        self.options, self._tokenizer, self._kept = options, tokenizer, kept
        self._encoded = pa.schema(
            [*schema_of_batches, *kept], {**schema_of_batches.metadata, **metadata}
        )
        self.rows = rows_for(options, self._encoded, tokenizer)

    def __call__(self, chunk: TextChunk) -> EncodedBatch:
        options, batch = self.options, chunk.batch
        with located(batch):
            encoded, report = self._tokenizer.encode_with_report(
                batch.texts,
                keep_text=options.keep_text,
                add_special_tokens=options.add_special_tokens,
                parse_special=options.parse_special,
            )
            if batch.cells is not None:
                self._count_by_column(batch, report)
            rows = self.rows.convert(self._with_kept(encoded, batch))
        memory.trim_memory(batch.texts.nbytes)
        return EncodedBatch(rows, report, chunk.read)

    def _count_by_column(self, batch: TextBatch, report: EncodeReport) -> None:
        """Add to the report what the columns of the template hold."""
        cells: Any = batch.cells
        rows = TextRows.of(batch.texts)
        numbers, held = self._tokenizer.selector.scan(rows, self.options.parse_special)
        columns = cells.column_of(numbers.document, numbers.stop)
        report.numbers_by_column = cells.counted(columns)
        report.left_by_column = cells.counted(columns[~held])

    def _with_kept(self, encoded: pa.RecordBatch, batch: TextBatch) -> pa.RecordBatch:
        ids = encoded.column("input_ids")
        if len(ids.values) > MOST_TOKENS and np.diff(ids.offsets).max() > MOST_TOKENS:
            raise InputError(
                f"the document has more than {MOST_TOKENS:,} tokens, the most of a row; cut it into"
                " several"
            )
        kept = [batch.kept[field.name].cast(field.type) for field in self._kept]
        return pa.RecordBatch.from_arrays([*encoded.columns, *kept], schema=self._encoded)


def _fitted(
    fit: ScaleFit, tokenizer: Tokenizer, reader: Reader, chunks: Iterable[TextChunk]
) -> tuple[Tokenizer, Iterable[TextChunk], Fit]:
    """Return the tokenizer with its scale, all chunks of text, and what the scale was found on."""
    batches: Iterable[TextBatch]
    if any(source.size is None for source in reader.sources):
        batches, chunks = _first_chunks(chunks)
    else:
        batches = sample_files(reader.sources, reader.options)
    representations, found_on = fit(tokenizer.representations, tokenizer.grammar, batches)
    # what a long document among the sample took is more than it costs to begin anew
    memory.release()
    return tokenizer.with_options(representations), chunks, found_on


def _first_chunks(chunks: Iterable[TextChunk]) -> tuple[list[TextBatch], Iterable[TextChunk]]:
    """Return (the batches of the first chunks, about ``FIT_BYTES`` of text; all chunks), so that a
    stream is read once. A chunk that is given again is kept no longer.
    """
    source, first, size = iter(chunks), deque[TextChunk](), 0
    while size < FIT_BYTES and (chunk := next(source, None)):
        first.append(chunk)
        size += chunk.batch.texts.nbytes
    again = (first.popleft() for _ in range(len(first)))
    return [chunk.batch for chunk in first], itertools.chain(again, source)


def refuse_own_names(keep_columns: Sequence[str], tokenizer: Tokenizer) -> None:
    """Raise InputError for a kept column that looks like one of numtok's, be it written this time
    or not.
    """
    numtok_names = {
        *schema.columns_of(tokenizer.representations, True, "number", False),
        *schema.columns_of(tokenizer.representations, True, "token", True),
    }
    reserved = [name for name in keep_columns if name in numtok_names]
    if reserved:
        hint = (
            "use keep_text=True (--keep-text) to be able to give every text back"
            if reserved[0] == "text"
            else "rename it in the input"
        )
        raise InputError(
            f"column {reserved[0]!r} cannot be kept, as numtok writes one of that name itself; {hint}"
        )
