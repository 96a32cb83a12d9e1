"""The statistics of whole corpora: files of text, or encoded ones, to one
:class:`~numtok.statistics.Statistics`.

In: what ``numtok encode`` takes, and the files that it wrote. Out: the statistics. Memory is
    bounded whatever the size of the input, and the result does not depend on the number of threads.
    Tokens are counted on a part of every batch, as that takes longer than all the rest.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from numtok import locations
from numtok.corpus.encoded_stats import is_encoded, statistics_of_encoded
from numtok.corpus.flow import Sink, run_ordered
from numtok.corpus.jobs.folder import read_manifest
from numtok.corpus.read.batches import TextBatch
from numtok.corpus.read.documents import Source, check_text_unit, find_inputs, read_batches
from numtok.corpus.read.encoded import open_encoded
from numtok.corpus.summary import BATCH_BYTES, Progress, front, processors
from numtok.corpus.unpack import documents_of
from numtok.errors import InputError, NumtokError
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.representations import Subword
from numtok.statistics import Statistics
from numtok.statistics.tokens import TokenCosts
from numtok.tokenizer.tokenizer import Tokenizer

TOKEN_SHARE, TOKEN_BYTES = (
    16,
    1 << 16,
)  # of each batch's text one part in so many is also tokenized, and of a small one so much
ON_THE_WAY = 2  # batches between reader and the end, besides one for each worker


class _Piece(NamedTuple):
    """A batch, of texts or encoded, where it comes from, and the stored bytes of all inputs up to
    its end.
    """

    batch: TextBatch | pa.RecordBatch
    path: str
    read: int


def corpus_stats(
    inputs: str | Path | Sequence[str | Path],
    *,
    tokenizer: Any = None,
    grammar: Grammar | str | None = None,
    text_column: str | None = None,
    template: str | None = None,
    input_format: str | None = None,
    text_unit: Literal["line", "file"] = "line",
    on_error: Literal["raise", "skip"] = "raise",
    workers: int | None = None,
    batch_bytes: int = BATCH_BYTES,
    progress: Callable[[Progress], None] | None = None,
) -> Statistics:
    """What numbers files hold: what ``numtok stats`` shows.

    Args:
        inputs: files, folders, globs, or ``-`` for standard input: one, or a list of them. Of what
            ``numtok encode`` wrote, what it stored is counted, unless ``text_column`` is given; of
            a folder that it wrote with ``--stats``, what was counted then.
        tokenizer: a source tokenizer, as :meth:`numtok.Tokenizer.from_pretrained` takes it, whose
            tokens per number are counted.
        grammar: what counts as a number in texts, or its name; prose if not given. Encoded files
            have their own.
        text_column: where the text is; by default ``text``, ``content``, ``document``, ``body``, or
            the only column of strings.
        template: in place of ``text_column``, columns joined to a text: see
            :func:`numtok.encode_files`.
        input_format: of the inputs, whatever their suffix.
        text_unit: in ``.txt``, whether a line or the whole file is a document.
        on_error: ``"skip"`` leaves out bad rows of JSON lines and text files.
        workers: threads that count; by default one per processor.
        batch_bytes: about how much text is counted at once.
        progress: called from the calling thread, several times a second.

    Raises:
        NumtokError: naming the file and row.
    """
    given = (
        [os.fspath(inputs)]
        if isinstance(inputs, str | os.PathLike)
        else [os.fspath(one) for one in inputs]
    )
    kept, given = ([], given) if text_column or template or input_format else _kept(given)
    sources = find_inputs(given, input_format) if given or not kept else []
    check_text_unit(sources, text_unit)
    for name, value in (("grammar", grammar), ("tokenizer", tokenizer)):
        if value is not None and text_column is template is None and all(map(is_encoded, sources)):
            raise InputError(
                f"{name}=... is for texts, and these files hold numbers that were found already;"
                " leave it out, or name a column of texts by text_column=NAME"
            )
    if not sources:
        return Statistics.merge(kept)
    rules = check_grammar(grammar)
    reading = {
        "text_column": text_column,
        "template": template,
        "batch_bytes": batch_bytes,
        "text_unit": text_unit,
        "on_error": on_error,
    }
    run = _Run([source.size for source in sources], progress)
    counting = _Counting(Tokenizer.from_pretrained(tokenizer, Subword(), rules))
    workers = workers or processors()
    run_ordered(
        _pieces(sources, reading),
        counting,
        run.sink,
        _size,
        workers,
        (workers + ON_THE_WAY) * batch_bytes,
        run.tick,
    )
    return Statistics.merge([*kept, run.statistics])


def _kept(inputs: Sequence[str]) -> tuple[list[Statistics], list[str]]:
    """(what the manifests of folders have kept, the other inputs)."""
    kept, others = [], []
    for given in inputs:
        manifest = read_manifest(given) if given != "-" and locations.is_folder(given) else None
        if manifest is not None and "statistics" in manifest:
            kept.append(Statistics.from_json(manifest["statistics"]))
        else:
            others.append(given)
    return kept, others


class _Counting:
    """Counts one piece; from several threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, piece: _Piece) -> tuple[Statistics, int]:
        return self._counted(piece), piece.read

    def _counted(self, piece: _Piece) -> Statistics:
        if not isinstance(piece.batch, TextBatch):
            return statistics_of_encoded(piece.batch, piece.path)
        batch = piece.batch
        try:
            return counted(batch.texts, self._tokenizer)
        except NumtokError as error:
            row = batch.first_row + (error.document or 0) + 1
            error.move_to_file(
                batch.source.name, row, near=error.document is None or batch.skipped > 0
            )
            raise


def counted(texts: pa.Array, tokenizer: Tokenizer) -> Statistics:
    """Of one batch of a corpus, by the tokenizer's grammar; tokens are those that its source gives
    to a part of the batch.
    """
    made = Statistics.of_batch(texts, tokenizer.grammar)
    tokens = TokenCosts.of(front(texts, max(TOKEN_BYTES, texts.nbytes // TOKEN_SHARE)), tokenizer)
    return dataclasses.replace(made, tokens=tokens)


class _Run:
    """What was counted so far, and how far that is."""

    def __init__(
        self, sizes: Sequence[int | None], progress: Callable[[Progress], None] | None
    ) -> None:
        self.statistics = Statistics()
        self._total = None if None in sizes else sum(size or 0 for size in sizes)
        self._progress, self._read, self._started = progress, 0, time.perf_counter()

    @contextmanager
    def sink(self) -> Iterator[Sink[tuple[Statistics, int]]]:
        """Adds up, in order."""

        def add(result: tuple[Statistics, int]) -> None:
            counted, self._read = result
            self.statistics = self.statistics + counted

        yield add

    def tick(self) -> None:
        if self._progress:
            seconds = time.perf_counter() - self._started
            self._progress(
                Progress(
                    self._read,
                    self._total,
                    self.statistics.documents,
                    self.statistics.tokens.tokens,
                    0,
                    seconds,
                )
            )


def _pieces(sources: Sequence[Source], reading: dict[str, Any]) -> Iterator[_Piece]:
    done = 0
    for source in sources:
        if reading["text_column"] is reading["template"] is None and is_encoded(source):
            with closing(open_encoded(source.path)) as file:
                for batch, rows in documents_of(file, reading["batch_bytes"]):
                    yield _Piece(
                        batch,
                        source.name,
                        done + (source.size or 0) * rows // max(file.rows or rows, 1),
                    )
        else:
            for texts in read_batches(source, **reading):
                yield _Piece(texts, source.name, done + texts.position)
        done += source.size or 0


def _size(piece: _Piece) -> int:
    return int(
        piece.batch.texts.nbytes if isinstance(piece.batch, TextBatch) else piece.batch.nbytes
    )
