"""Encoded files back to text: what ``numtok decode`` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from numtok.corpus.encode_options import check_whole
from numtok.corpus.jobs.folder import saved_beside
from numtok.corpus.pipeline import run_ordered
from numtok.corpus.read.documents import find_inputs
from numtok.corpus.read.encoded import schema_of
from numtok.corpus.summary import BATCH_BYTES, Progress, Run, Summary, refuse_input_as_output
from numtok.corpus.unpack import EncodedChunk, encoded_chunks
from numtok.corpus.write import open_writer
from numtok.errors import NumtokError, SchemaError
from numtok.numbers.grammar import Grammar
from numtok.representations import from_dict
from numtok.tokenizer import schema
from numtok.tokenizer.metadata import describe_tokenizer
from numtok.tokenizer.number_selection import EncodeReport
from numtok.tokenizer.schema import declared_columns
from numtok.tokenizer.tokenizer import Tokenizer


class _Decoded(NamedTuple):
    """The texts of a chunk, what is counted of them, and how far its file is read."""

    texts: pa.RecordBatch
    report: EncodeReport
    read: int


def decode_files(
    inputs: str | Path | Sequence[str | Path],
    output: str | Path,
    tokenizer: Any = None,
    *,
    workers: int | None = None,
    batch_bytes: int = BATCH_BYTES,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Write the texts of encoded files, and the columns that were kept, to a file, as
    ``numtok decode`` does.

    Args:
        inputs: a file or folder that :func:`numtok.encode_files` wrote, or a list of them.
        output: a .jsonl, .txt, .parquet or .arrow file, or ``-`` for JSON lines on standard output.
            A .txt has one text per line and nothing else.
        tokenizer: the source tokenizer or the ``Tokenizer`` that they were encoded with; see
            :func:`tokenizer_of` for the default.
        workers: threads that decode; by default one per processor.
        batch_bytes: about how much encoded data is decoded at once.
        overwrite: replace an output that is there already, once the new one is complete.
        progress: called from the calling thread, several times a second.

    Raises:
        NumtokError: if the files do not belong to the tokenizer, or cannot be read or written; no
            output is left then.

    Example:
        >>> import numtok
        >>> _ = numtok.encode_files("sample.jsonl", "encoded.parquet", keep_text=True)
        >>> numtok.decode_files("encoded.parquet", "decoded.jsonl").documents
        31
    """
    check_whole("workers", workers)
    check_whole("batch_bytes", batch_bytes)
    sources = find_inputs(inputs)
    refuse_input_as_output(sources, output)
    run = Run(sources, output, progress)
    decoder = _Decoder(sources[0].path, tokenizer)

    with open_writer(run.output, decoder.schema, overwrite=overwrite, texts=True) as writer:

        def write(decoded: _Decoded) -> None:
            writer.write(decoded.texts)
            run.report += decoded.report
            run.read, run.written = decoded.read, writer.bytes_written

        chunks = encoded_chunks(sources, batch_bytes)
        run_ordered(
            chunks, decoder, write, lambda chunk: chunk.batch.nbytes, workers, batch_bytes, run.tick
        )
    run.written = writer.bytes_written
    return run.complete(Summary())


class _Decoder:
    """Decodes one chunk, with the columns that the first file has kept; from several threads."""

    def __init__(self, path: str, tokenizer: Any) -> None:
        self._path = path
        is_tokenizer = isinstance(tokenizer, Tokenizer)
        self._tokenizer = tokenizer if is_tokenizer else tokenizer_of(path, tokenizer)
        encoded_schema = schema_of(path)
        # a kept column may be called as it likes
        numtok_columns = declared_columns(encoded_schema, path)
        self._kept = [field for field in encoded_schema if field.name not in numtok_columns]
        self.schema = pa.schema([pa.field("text", pa.large_string()), *self._kept])

    def __call__(self, chunk: EncodedChunk) -> _Decoded:
        for field in self._kept:
            if field.name not in chunk.batch.schema.names:
                raise SchemaError(
                    f"{chunk.path}: has no column {field.name!r}, but {self._path} has; decode the"
                    " two apart"
                )
        columns = [chunk.batch.column(field.name).cast(field.type) for field in self._kept]
        try:
            texts = self._tokenizer.decode_batch(chunk.batch).cast(pa.large_string())
        except NumtokError as error:
            error.move_to_file(chunk.path)
            raise
        decoded = pa.RecordBatch.from_arrays([texts, *columns], schema=self.schema)
        return _Decoded(decoded, _report(chunk.batch, texts), chunk.read)


def tokenizer_of(path: str | Path, source: Any = None) -> Tokenizer:
    """Return the tokenizer of an encoded file: the source tokenizer with the representations and
    the grammar that stand in the file's metadata.

    Args:
        path: of the file, or of a folder of shards.
        source: the source tokenizer; by default the one that a job left beside its shards, or else
            the one inside the package.

    Raises:
        SchemaError: if the file was encoded with another source tokenizer.

    Example:
        >>> import numtok
        >>> _ = numtok.encode_files("sample.jsonl", "folder/", numbers="xval", scale=0.5, shards=1)
        >>> tokenizer_of("folder/").representations[0].scale
        0.5
    """
    source = saved_beside(path) if source is None else source
    path = find_inputs(path)[0].path
    metadata = schema.read_metadata(schema_of(path), str(path))
    tokenizer = Tokenizer.from_pretrained(
        source,
        [from_dict(options) for options in metadata["numbers"]],
        Grammar.from_dict(metadata["grammar"]),
        leading_space=metadata["leading_space"],
    )
    if tokenizer.encoded(metadata):
        return tokenizer
    raise SchemaError(
        f"{path}: was encoded with another tokenizer than {source or 'the default one'}"
        f" ({describe_tokenizer(metadata)}); name the right one with tokenizer=... (--tokenizer)"
    )


def _report(batch: pa.RecordBatch, texts: pa.Array) -> EncodeReport:
    length = int(pc.sum(pc.binary_length(texts)).as_py() or 0)
    if "number_index" in batch.schema.names:
        numbers = len(batch.column("number_index").flatten())
    else:
        numbers = int(pc.sum(batch.column("number_mask").flatten()).as_py() or 0)
    return EncodeReport(batch.num_rows, length, len(batch.column("input_ids").flatten()), numbers)
