"""What the pipelines tell: ``Progress`` while they run, ``Summary`` at the end."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from numtok import locations
from numtok.arrays.text_rows import TextRows
from numtok.corpus.fit import Fit
from numtok.corpus.read.batches import SkippedRow
from numtok.corpus.read.sources import Source
from numtok.errors import OutputError
from numtok.representations import Representation
from numtok.tokenizer.find import EncodeReport

# Smaller ones cost more calls from Python for each byte; larger ones are no faster, and cost memory
# in every stage.
BATCH_BYTES = 4 << 20
# Of jobs: a few percent more work, but each of their processes has 100 MiB less on its way.
SHARD_BATCH_BYTES = 2 << 20


class Progress(NamedTuple):
    """How far a pipeline is.

    Attributes:
        read: bytes of the input files, as stored, whose rows are written.
        total: bytes of all input files; None if one of them is a pipe.
        documents, tokens: written so far.
        written: bytes of the output file so far.
        seconds: since the start.
        shards: (done, all) of a job; None if there are no shards.
        resumed: bytes of ``read`` that an earlier run had done.
    """

    read: int
    total: int | None
    documents: int
    tokens: int
    written: int
    seconds: float
    shards: tuple[int, int] | None = None
    resumed: int = 0


@dataclass
class Summary:
    """What became of a corpus.

    Attributes:
        documents, bytes, numbers, tokens: rows, bytes of text, numbers found, tokens.
        skipped: rows that could not be read and were left out, and files from some place on.
        quarantine: the file that lists these: JSON lines with ``file``, ``line`` and ``error``.
        without_text: documents whose text is null or missing: null rows, in ``documents`` too.
        left_as_text, clipped, vanishing: numbers by the representation that could not hold them;
            see :class:`EncodeReport`.
        representations: that the numbers have, with the scale that was found.
        fit: what xVal's scale was found on; None if none was fitted.
        in_added_tokens: digits within the tokenizer's own tokens, which are not numbers.
        text_column: of the inputs; empty if they have none, or a template tells the text.
        rows: of the file; as many as documents, unless they are packed.
        cut_numbers: numbers longer than a packed row, which lie in several.
        output, output_bytes: the file.
        seconds: from the first read to the complete file; of a job, those of this run.
        shards, shards_done: of a job: all that it has, and those that are done; 0 without shards.
        resumed: of ``shards_done``, those that an earlier run had done.
    """

    documents: int = 0
    bytes: int = 0
    numbers: int = 0
    tokens: int = 0
    skipped: int = 0
    without_text: int = 0
    left_as_text: dict[str, int] = field(default_factory=dict)
    clipped: dict[str, int] = field(default_factory=dict)
    vanishing: dict[str, int] = field(default_factory=dict)
    representations: tuple[Representation, ...] = ()
    fit: Fit | None = None
    in_added_tokens: int = 0
    text_column: str = ""
    rows: int = 0
    cut_numbers: int = 0
    output: str = ""
    output_bytes: int = 0
    seconds: float = 0.0
    shards: int = 0
    shards_done: int = 0
    resumed: int = 0
    quarantine: str = ""


@dataclass
class Run:
    """How far one run is, and its clock; the writer's thread fills it in.

    Attributes:
        lines: of each source that is a file of lines.
        bad: rows that were skipped.
        written: bytes of the output; all of it at the end.
        sha256: of the file, where a receipt is to vouch for it.
        stored_rows: of the output. cut_numbers: see :class:`Summary`.
    """

    sources: Sequence[Source]
    output: str
    total: int | None
    progress: Callable[[Progress], None] | None
    report: EncodeReport = field(default_factory=EncodeReport)
    read: int = 0
    bad: list[tuple[Source, SkippedRow]] = field(default_factory=list)
    without_text: int = 0
    lines: dict[Source, int] = field(default_factory=dict)
    written: int = 0
    sha256: str = ""
    stored_rows: int = 0
    cut_numbers: int = 0
    started: float = field(default_factory=time.perf_counter)

    @property
    def to_stdout(self) -> bool:
        return self.output == "-"

    @classmethod
    def start(
        cls,
        sources: Sequence[Source],
        output: str | Path,
        progress: Callable[[Progress], None] | None,
    ) -> Run:
        sizes = [source.size for source in sources]
        return cls(
            sources,
            str(locations.place(output)),
            None if None in sizes else sum(size or 0 for size in sizes),
            progress,
        )

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.started

    def tick(self) -> None:
        if self.progress:
            seconds = self.seconds
            self.progress(
                Progress(
                    self.read,
                    self.total,
                    self.report.documents,
                    self.report.tokens,
                    self.written,
                    seconds,
                )
            )

    def complete(self, summary: Summary) -> Summary:
        """``summary`` with what this run counted."""
        for counted in dataclasses.fields(self.report):
            setattr(summary, counted.name, getattr(self.report, counted.name))
        summary.skipped, summary.output = len(self.bad), self.output
        summary.output_bytes = self.written
        summary.rows, summary.cut_numbers = self.stored_rows, self.cut_numbers
        summary.without_text = self.without_text
        summary.seconds = self.seconds
        return summary


def quarantine(left_out: Iterable[tuple[str, int | None, str]]) -> str:
    """(file, line, error) of each row that was left out, as JSON lines."""
    names = ("file", "line", "error")
    return "".join(
        json.dumps(dict(zip(names, one, strict=True)), ensure_ascii=False) + "\n"
        for one in left_out
    )


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refuse_input_as_output(sources: Sequence[Source], output: str | Path) -> None:
    """Raise OutputError if the output is one of the inputs, which it would replace."""
    if str(output) != "-" and any(
        source.path != "-" and locations.same_file(source.path, output) for source in sources
    ):
        raise OutputError(f"{output} is also an input; choose another name")


def front(texts: pa.Array, limit: int) -> pa.Array:
    """The first rows of up to ``limit`` bytes; if the first is longer, its front, up to a space if
    there is one.
    """
    rows = TextRows.of(texts)
    count = int(np.searchsorted(rows.offsets, rows.offsets[0] + limit, side="right")) - 1
    if count > 0 or not len(rows):
        return rows.array.slice(0, count)
    first = rows.text[rows.offsets[0] : rows.offsets[0] + limit].tobytes()
    text = first.decode("utf-8", "ignore")
    return TextRows.of([text[: text.rfind(" ") + 1] or text]).array
