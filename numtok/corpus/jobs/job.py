"""A corpus into a folder of shards: planned once, resumed by the same call, finished when every
shard is done.

In: what is asked for, and a folder. Out: the folder, as ``FORMAT.md`` describes it. This module
    puts the others together: ``planning`` says what is to be done, ``shards`` does one, ``run``
    says who does them, ``finish`` adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from numtok.corpus.jobs.attempt import Task
from numtok.corpus.jobs.finish import complete, listed, summarize
from numtok.corpus.jobs.gauge import Gauge
from numtok.corpus.jobs.planning import planned, refuse_inputs_within
from numtok.corpus.jobs.request import Request, make_request
from numtok.corpus.jobs.run import run
from numtok.corpus.jobs.sharding import Encoder, Sharding
from numtok.corpus.jobs.shards import read_receipt
from numtok.corpus.jobs.store import Folder
from numtok.corpus.settings import EncodeSettings
from numtok.corpus.summary import Progress, Summary
from numtok.errors import JobError


def encode_folder(
    inputs: Sequence[str | Path],
    output: str | Path,
    encoder: Encoder,
    settings: EncodeSettings,
    sharding: Sharding,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """:func:`encode_job` for what is yet to be found and checked."""
    return encode_job(make_request(inputs, encoder, settings, sharding), output, progress)


def encode_job(
    request: Request, output: str | Path, progress: Callable[[Progress], None] | None = None
) -> Summary:
    """Do what is left of a job.

    Args:
        request: what is to be encoded, and how. Its settings say how many ``workers`` there are:
            processes, and threads in these where there are more of them than shards; by default one
            per processor. ``overwrite`` begins anew. With a share of the shards, others may do
            theirs meanwhile, and :func:`numtok.corpus.jobs.finish.finish_folder` follows when all
            are done.
        output: the folder.
        progress: called from the calling thread, several times a second.

    Raises:
        JobError: for the folder of another job, or one that somebody works in; or, when all others
            are done, for shards that failed.
        NumtokError: for inputs that cannot be planned, or that changed.
    """
    share, settings = request.sharding.share, request.settings
    if share is not None and settings.overwrite:
        raise JobError(
            "to begin anew would remove what the others have written; remove the folder first, or"
            " begin without a share of the shards"
        )
    folder = Folder(output)
    refuse_inputs_within(request.sources, folder)
    folder.make()
    with folder.lock("lock", shared=share is not None):
        with folder.lock("plan.lock", wait=True):
            plan, tokenizer = planned(folder, request, settings.overwrite)
        if share is None:
            folder.remove_leftovers()
        mine = (
            range(len(plan.shards))
            if share is None
            else range(share[0] - 1, len(plan.shards), share[1])
        )
        known = dict(
            zip(
                mine,
                folder.each(lambda number: read_receipt(folder, plan, number), mine),
                strict=True,
            )
        )
        done = [number for number in mine if known[number] is not None]
        left = sorted(set(mine) - set(done))
        gauge = Gauge(plan, mine, done, progress)
        _run_all(Task(folder, plan, tokenizer), left, request, gauge)
        if share is None:
            summary = complete(folder, plan)
        else:
            receipts = folder.each(
                lambda number: read_receipt(folder, plan, number), range(len(plan.shards))
            )
            summary = summarize(folder, plan, [receipts[number] or {} for number in mine])
            summary.share = True
            summary.shards_done = sum(receipt is not None for receipt in receipts)
    summary.resumed, summary.seconds = len(done), gauge.seconds
    return summary


def _run_all(task: Task, shards: Sequence[int], request: Request, gauge: Gauge) -> None:
    """Run the shards; ``JobError`` at the end if some failed."""
    failures: dict[int, str] = {}
    tried = 0
    for outcome in run(task, shards, request.settings.workers, gauge.watch, request.sharding.ray):
        gauge.end(outcome.shard, outcome.error is not None)
        tried += 1
        if outcome.error is not None:
            failures[outcome.shard] = outcome.error
    if failures:
        raise _failed(task, failures, len(shards) - tried)


def _failed(task: Task, failures: dict[int, str], untried: int) -> JobError:
    """The error that tells which shards failed, why, and what to do."""
    first = min(failures)
    others = (
        f"{untried} were not tried, as they would fail alike" if untried else "the others are done"
    )
    return JobError(
        f"{len(failures)} of {len(task.plan.shards)} shards failed ({listed(sorted(failures))}),"
        f" the first with: {failures[first]}. As to the rest, {others}. Mend the cause, and run the"
        " same command again: it does what is not done",
        str(task.folder),
        failures,
    )
