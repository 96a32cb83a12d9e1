"""Encoded files back to text.

In: Parquet or Arrow files that ``encode_corpus`` wrote. Out: their texts as .jsonl, .txt, .parquet
    or .arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from numtok.corpus.flow import Sink, run_ordered
from numtok.corpus.jobs.folder import saved_beside
from numtok.corpus.read.documents import Source, find_inputs
from numtok.corpus.read.encoded import open_encoded
from numtok.corpus.summary import (
    BATCH_BYTES,
    Progress,
    Run,
    Summary,
    processors,
    refuse_input_as_output,
)
from numtok.corpus.unpack import documents_of
from numtok.corpus.write.encoded import open_writer
from numtok.errors import NumtokError, SchemaError
from numtok.numbers.grammar import Grammar
from numtok.representations import from_dict
from numtok.tokenizer import schema
from numtok.tokenizer.results import EncodeReport
from numtok.tokenizer.stored import declared_columns
from numtok.tokenizer.tokenizer import Tokenizer


class _Piece(NamedTuple):
    """An encoded batch, its file, and the stored bytes of all inputs up to its end."""

    batch: pa.RecordBatch
    path: str
    read: int


class _Decoded(NamedTuple):
    """The texts of a piece, what is counted of them, and how far its file is read."""

    texts: pa.RecordBatch
    report: EncodeReport
    read: int


def decode_corpus(
    inputs: Sequence[str | Path],
    output: str | Path,
    tokenizer: Tokenizer | None = None,
    *,
    source: Any = None,
    workers: int | None = None,
    batch_bytes: int = BATCH_BYTES,
    overwrite: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """The texts of encoded files, as .jsonl, .txt, .parquet or .arrow, together with the columns
    that were kept.

    Args:
        inputs: files that :func:`encode_corpus` wrote, or folders of them.
        output: its suffix decides. ``.txt`` has one text per line and nothing else.
        tokenizer: the one they were encoded with; without it, one made by :func:`tokenizer_of` from
            the first file and ``source``.
        source: the source tokenizer, where ``tokenizer`` is not given; see :func:`tokenizer_of` for
            the default.
        workers: threads that decode; by default one per processor.
        batch_bytes: about how much encoded data is decoded at once.
        overwrite: replace an output that is there already, once the new one is complete.
        progress: called from the calling thread, several times a second.

    Raises:
        NumtokError: if the files do not belong to the tokenizer, or cannot be read or written; no
            output is left then.
    """
    sources = find_inputs(inputs)
    refuse_input_as_output(sources, output)
    run, workers = Run.start(sources, output, progress), workers or processors()
    tokenizer = tokenizer or tokenizer_of(sources[0].path, source)
    described = _decoded_schema(sources[0])

    def work(piece: _Piece) -> _Decoded:
        missing = [
            field.name
            for field in list(described)[1:]
            if field.name not in piece.batch.schema.names
        ]
        if missing:
            raise SchemaError(
                f"{piece.path}: has no column {missing[0]!r}, but {sources[0].name} has; decode the"
                " two apart"
            )
        kept = [piece.batch.column(field.name).cast(field.type) for field in list(described)[1:]]
        try:
            texts = pa.RecordBatch.from_arrays(
                [tokenizer.decode_batch(piece.batch).cast(pa.large_string()), *kept],
                schema=described,
            )
        except NumtokError as error:
            error.move_to_file(piece.path)
            raise
        return _Decoded(texts, _report(piece.batch, texts), piece.read)

    @contextmanager
    def sink() -> Iterator[Sink[_Decoded]]:
        with open_writer(run.output, described, overwrite=overwrite, texts=True) as writer:

            def write(decoded: _Decoded) -> None:
                writer.write(decoded.texts)
                run.report += decoded.report
                run.read, run.written = decoded.read, writer.bytes_written

            yield write
            writer.finish()
            run.written = writer.bytes_written

    run_ordered(
        _pieces(sources, batch_bytes),
        work,
        sink,
        _size,
        workers,
        (workers + 2) * batch_bytes,
        run.tick,
    )
    return run.complete(Summary())


def tokenizer_of(path: str | Path, source: Any = None) -> Tokenizer:
    """The tokenizer of an encoded file: ``source`` with the representations and the grammar that
    the file's metadata tell.

    Args:
        path: of the file, or of a folder of shards.
        source: the source tokenizer; by default the one that a job left beside its shards, or else
            the one inside the package.

    Raises:
        SchemaError: if the file was encoded with another source tokenizer.
    """
    source = saved_beside(path) if source is None else source
    path = find_inputs([path])[0].path
    metadata = schema.read_metadata(_described(path), str(path))
    numbers, grammar = (
        [from_dict(options) for options in metadata["numbers"]],
        Grammar.from_dict(metadata["grammar"]),
    )
    tokenizer = Tokenizer.from_pretrained(
        source, numbers, grammar, leading_space=metadata["leading_space"]
    )
    if tokenizer.encoded(metadata):
        return tokenizer
    raise SchemaError(
        f"{path}: was encoded with another tokenizer than {source or 'the default one'}; name the"
        " right one with tokenizer=..."
    )


def _described(path: str | Path) -> pa.Schema:
    """The schema of the file."""
    with closing(open_encoded(path)) as file:
        return file.schema


def _decoded_schema(source: Source) -> pa.Schema:
    """The text, then the columns that are not numtok's, whatever they are called."""
    described = _described(source.path)
    own = declared_columns(described, source.path)
    return pa.schema(
        [
            pa.field("text", pa.large_string()),
            *(field for field in described if field.name not in own),
        ]
    )


def _pieces(sources: Sequence[Source], batch_bytes: int) -> Iterator[_Piece]:
    done = 0
    for source in sources:
        with closing(open_encoded(source.path)) as file:
            for batch, rows in documents_of(file, batch_bytes):
                yield _Piece(
                    batch,
                    source.name,
                    done + (source.size or 0) * rows // max(file.rows or rows, 1),
                )
        done += source.size or 0


def _size(piece: _Piece) -> int:
    return int(piece.batch.nbytes)


def _report(batch: pa.RecordBatch, texts: pa.RecordBatch) -> EncodeReport:
    length = int(pc.sum(pc.binary_length(texts.column(0))).as_py() or 0)
    return EncodeReport(
        batch.num_rows, length, len(batch.column("input_ids").flatten()), _numbers(batch)
    )


def _numbers(batch: pa.RecordBatch) -> int:
    if "number_index" in batch.schema.names:
        return len(batch.column("number_index").flatten())
    return int(pc.sum(batch.column("number_mask").flatten()).as_py() or 0)
