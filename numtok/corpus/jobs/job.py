"""A corpus into a folder of shards: planned once, each shard encoded, finished when all are done."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.fit import ScaleFit
from numtok.corpus.jobs.encode_shard import Receipt, Task, read_receipt, read_receipts
from numtok.corpus.jobs.executors import run_here, run_ray
from numtok.corpus.jobs.finish import complete, listed, remove_card, summarize
from numtok.corpus.jobs.folder import MANIFEST, Folder, run_lock
from numtok.corpus.jobs.plan import Plan, Shard, load_or_make
from numtok.corpus.jobs.request import Request, make_request, refuse_inputs_within
from numtok.corpus.summary import Progress, Summary
from numtok.errors import JobError
from numtok.tokenizer.tokenizer import Tokenizer

_COUNTED = ("read", "documents", "tokens", "written")  # of a Progress, over all shards


def encode_folder(
    inputs: Sequence[str | Path],
    output: str | Path,
    tokenizer: Tokenizer,
    options: EncodeOptions,
    *,
    fit: ScaleFit | None = None,
    hash_range: str | None = None,
) -> Summary:
    """Encode the shards of a job that are not done. ``workers`` are processes, and threads in these
    where there are more of them than shards; ``overwrite`` begins anew; ``hash_range``: the documents
    of a split. JobError for the folder of
    another job; or, when all others are done, for shards that failed.
    """
    request = make_request(inputs, tokenizer, options, fit, hash_range)
    if options.shard is not None and options.overwrite:
        raise JobError(
            "to begin anew would remove what the others have written; remove the folder first, or"
            " begin without a share of the shards"
        )
    folder = Folder(output)
    refuse_inputs_within(request.sources, folder.path)
    folder.make()
    with run_lock(folder, options.shard):
        if options.overwrite:
            remove_card(folder)
        plan, tokenizer = load_or_make(folder, request, options.overwrite)
        receipts = read_receipts(folder, plan)
        if len(receipts) < len(plan.shards):
            folder.remove(MANIFEST)
        task = Task(folder, plan, tokenizer, options.on_error)
        run = _Run(task, plan.share(options.shard), receipts, options.progress)
        failures = _encode_missing(run, request)
        return _finished(run, failures)


class _Run:
    """The shards of one run: which are done, and how far the others are."""

    def __init__(
        self,
        task: Task,
        shards: Sequence[Shard],
        receipts: Sequence[Receipt],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.task, self.shards, self._progress = task, shards, progress
        self._started = time.perf_counter()
        self._sizes = {shard.number: shard.size for shard in shards}
        self._counts: Counter[str] = Counter()  # of what is done
        self._under_way: dict[int, Progress] = {}
        self.done: set[int] = set()
        for receipt in receipts:
            if receipt.shard in self._sizes:
                self.finish(receipt)
        self.missing = [shard for shard in shards if shard.number not in self.done]
        self.resumed, self._resumed_bytes = len(self.done), self._counts["read"]

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._started

    def finish(self, receipt: Receipt) -> None:
        """Count a shard that is done."""
        self.done.add(receipt.shard)
        self._under_way.pop(receipt.shard, None)
        self._counts.update(
            read=self._sizes[receipt.shard],
            documents=receipt.report.documents,
            tokens=receipt.report.tokens,
            written=receipt.bytes,
        )

    def tick(self, number: int | None = None, progress: Progress | None = None) -> None:
        """Tell how far the run is, after a shard's progress."""
        if number is not None and progress is not None:
            self._under_way[number] = progress
        if self._progress is None:
            return
        counts = self._counts.copy()
        for one in self._under_way.values():
            counts.update({name: getattr(one, name) for name in _COUNTED})
        self._progress(
            Progress(
                **{name: counts[name] for name in _COUNTED},
                total=sum(self._sizes.values()),
                seconds=self.seconds,
                shards=(len(self.done), len(self.shards)),
                resumed=self._resumed_bytes,
            )
        )


def _encode_missing(run: _Run, request: Request) -> dict[int, str]:
    """Encode what is missing; return why shards failed, by their numbers."""
    failures: dict[int, str] = {}
    run.tick()
    folder, plan = run.task.folder, run.task.plan
    if not run.missing:
        return failures
    workers, ray = request.options.workers, request.options.ray
    if ray is not None:
        outcomes = run_ray(run.task, run.missing, ray, workers, run.tick)
    else:
        outcomes = run_here(run.task, run.missing, workers, run.tick)
    with contextlib.closing(outcomes):
        for number, error, stop in outcomes:
            if error is not None:
                failures[number] = error
            elif receipt := read_receipt(folder, plan, plan.shards[number]):
                run.finish(receipt)
            run.tick()
            if stop:
                break
    return failures


def _finished(run: _Run, failures: dict[int, str]) -> Summary:
    """Finish the job if all shards are done, or say what is left."""
    folder, plan = run.task.folder, run.task.plan
    receipts = read_receipts(folder, plan)
    numbers_of_run = {shard.number for shard in run.shards}
    lost = sorted(numbers_of_run - {receipt.shard for receipt in receipts})
    if failures:
        raise _failed(folder, plan, failures, len(lost))
    if lost:
        raise JobError(
            f"shards {listed(lost)} were made, but are not what their receipts say; run the same"
            " command again",
            str(folder),
        )
    if len(receipts) == len(plan.shards):
        summary = complete(folder, plan, receipts)
    else:
        summary = summarize(folder, plan, [one for one in receipts if one.shard in numbers_of_run])
        summary.share, summary.shards_done = True, len(receipts)
    summary.resumed, summary.seconds = run.resumed, run.seconds
    return summary


def _failed(folder: Folder, plan: Plan, failures: dict[int, str], left: int) -> JobError:
    """Return the error of shards that failed, by number, where ``left`` shards are not done."""
    untried = left - len(failures)
    others = (
        f"{untried} were not tried, as they would fail alike" if untried else "the others are done"
    )
    return JobError(
        f"{len(failures)} of {len(plan.shards)} shards failed ({listed(sorted(failures))}), the"
        f" first with: {failures[min(failures)]}. As to the rest, {others}. Mend the cause, or"
        " leave out what is bad with on_error='skip' (--on-error skip), and run the same again: it"
        " does what is not done",
        str(folder),
        failures,
    )
