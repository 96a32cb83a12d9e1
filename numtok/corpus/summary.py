"""Reports of the pipelines: ``Progress`` while they run, ``Summary`` at the end."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from numtok import storage
from numtok.corpus.fit import Fit
from numtok.corpus.read.batches import SKIP_HINT
from numtok.corpus.read.sources import Source
from numtok.errors import OutputError
from numtok.representations import Representation
from numtok.tokenizer.number_selection import EncodeReport

# Smaller ones cost more calls from Python for each byte; larger ones are no faster, and cost memory
# in every stage.
BATCH_BYTES = 4 << 20
# Of jobs: a few percent more work, but each of their processes has 100 MiB less on its way.
SHARD_BATCH_BYTES = 2 << 20


class Progress(NamedTuple):
    """Progress of a pipeline, as a callback gets it.

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
class Summary(EncodeReport):
    """Result of :func:`numtok.encode_files` and similar functions: the counts of
    :class:`numtok.EncodeReport`, and more.

    Attributes:
        skipped: rows that could not be read, and files from some place on.
        quarantine: the file that lists these: JSON lines with ``file``, ``line`` and ``error``.
        without_text: documents whose text is null or missing: null rows, in ``documents`` too.
        first_without_text: the file and the row of the first of them, or nothing.
        representations: those of the numbers, with the scale that was fitted.
        fit: what xVal's scale was found on; None if none was fitted.
        text_column: of the inputs; empty if they have none, or a template tells the text.
        number_columns: those that hold numbers, if the texts hold none.
        rows: of the file; as many as documents, unless they are packed.
        cut_numbers: numbers longer than a packed row, which lie in several.
        output: the path of the file.
        output_bytes: its size.
        seconds: from the first read to the complete file; of a job, those of this run.
        shards, shards_done: of a job: all that it has, and those that are done; 0 without shards.
        resumed: of ``shards_done``, those that an earlier run had done.
        share: whether this is what became of a share of the shards; the counts are of that share.
        splits: documents of each split, if there are any.

    Example:
        >>> import numtok
        >>> summary = numtok.encode_files("sample.jsonl", "encoded.parquet")
        >>> summary.documents, summary.rows, summary.output
        (31, 31, 'encoded.parquet')
    """

    skipped: int = 0
    quarantine: str = ""
    without_text: int = 0
    first_without_text: str = ""
    representations: tuple[Representation, ...] = ()
    fit: Fit | None = None
    text_column: str = ""
    number_columns: tuple[str, ...] = ()
    rows: int = 0
    cut_numbers: int = 0
    output: str = ""
    output_bytes: int = 0
    seconds: float = 0.0
    shards: int = 0
    shards_done: int = 0
    resumed: int = 0
    share: bool = False
    splits: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of_splits(cls, summaries: dict[str, Summary], output: str) -> Summary:
        """Return the counts of all added up; what there is one of is that of the first, as are the
        skipped rows, which every split reads and skips.
        """
        first, *_ = every = list(summaries.values())
        added = [name for name, one in vars(first).items() if isinstance(one, int | float | dict)]
        totals = summed([{name: vars(one)[name] for name in added} for one in every])
        totals |= {
            "skipped": first.skipped,
            "share": any(one.share for one in every),
            "first_without_text": next(filter(None, (one.first_without_text for one in every)), ""),
            "output": output,
            "splits": {name: one.documents for name, one in summaries.items()},
        }
        return dataclasses.replace(first, **totals)


@dataclass
class Run:
    """State and clock of a run, updated by the writer's thread."""

    sources: Sequence[Source]
    output: str | Path
    progress: Callable[[Progress], None] | None
    report: EncodeReport = field(default_factory=EncodeReport)
    read: int = 0
    written: int = 0  # bytes of the output; all of it at the end
    sha256: str = ""  # of the file, at the end

    def __post_init__(self) -> None:
        self.output = storage.normalized(self.output)
        sizes = [source.size for source in self.sources]
        self.total = None if None in sizes else sum(size or 0 for size in sizes)
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._started

    def tick(self) -> None:
        """Tell how far it is."""
        if self.progress:
            done = (self.report.documents, self.report.tokens, self.written)
            self.progress(Progress(self.read, self.total, *done, self.seconds))

    def complete(self, summary: Summary) -> Summary:
        """Tell that the run is complete, and return ``summary`` with what it counted."""
        self.tick()
        vars(summary).update(vars(self.report))
        summary.output, summary.output_bytes = str(self.output), self.written
        summary.seconds = self.seconds
        return summary


class Quarantined(NamedTuple):
    """A row that could not be read: its file, its line if that is known, and why."""

    file: str
    line: int | None
    error: str


def quarantine(skipped: Iterable[Quarantined]) -> str:
    """Return skipped rows as JSON lines."""
    rows = [row._replace(error=row.error.removesuffix(f", {SKIP_HINT}")) for row in skipped]
    lines = "".join(json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows)
    # names that are no Unicode are escaped
    return lines.encode("utf-8", "backslashreplace").decode()


def summed(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Add the counts up, those by representation for each."""
    totals: dict[str, Any] = {}
    for name in reports[0] if reports else ():
        counts = [report[name] for report in reports]
        by_name = isinstance(counts[0], dict)
        totals[name] = dict(sum(map(Counter, counts), Counter[str]())) if by_name else sum(counts)
    return totals


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def refuse_input_as_output(sources: Sequence[Source], output: str | Path) -> None:
    """Raise OutputError if the output is one of the inputs, which it would replace."""
    if str(output) != "-" and any(
        source.path != "-" and storage.same_file(source.path, output) for source in sources
    ):
        raise OutputError(f"{output} is also an input; choose another name")
