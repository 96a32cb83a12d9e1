"""A corpus into a folder of shards: planned once, amended and resumed by the same call, finished
when every shard is done. ``planning`` says what is to be done, ``run`` has it done; this puts them
together, and adds up.
"""

from __future__ import annotations

import functools
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numtok import locations
from numtok.corpus.fit import Fit
from numtok.corpus.jobs.card import remove_card, write_card
from numtok.corpus.jobs.claims import Claim, Claims
from numtok.corpus.jobs.folder import (
    DATA,
    FORMAT,
    MANIFEST,
    OWN,
    PLAN,
    QUARANTINE,
    Folder,
    read_manifest,
)
from numtok.corpus.jobs.plan import (
    Part,
    Plan,
    Read,
    Receipt,
    as_json,
    check_shard,
    numbers_of,
    read_receipt,
    saved_tokenizer,
    summed,
)
from numtok.corpus.jobs.planning import (
    Encoder,
    Sharding,
    make_request,
    planned,
    refuse_inputs_within,
)
from numtok.corpus.jobs.run import JobRun
from numtok.corpus.jobs.work import Task
from numtok.corpus.settings import ShardSettings
from numtok.corpus.summary import Progress, Summary, quarantine
from numtok.errors import JobError

_TOLD = 10  # numbers of shards that an error lists


def encode_folder(
    inputs: Sequence[str | Path],
    output: str | Path,
    encoder: Encoder,
    settings: ShardSettings,
    sharding: Sharding,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Do what is left of a job, together with whoever else does. ``workers`` are processes, and
    threads in these where there are more of them than shards; ``overwrite`` begins anew. JobError
    for the folder of another job; or, when all others are done, for shards that failed.
    """
    request = make_request(inputs, encoder, settings, sharding)
    if sharding.share is not None and settings.overwrite:
        raise JobError(
            "to begin anew would remove what the others have written; remove the folder first, or"
            " begin without a share of the shards"
        )
    folder = Folder(output)
    refuse_inputs_within(request.sources, folder.path)
    folder.make()
    claims = Claims(folder, secrets.token_hex(8))
    with claims.hold("plan"):
        plan, tokenizer = planned(folder, request, claims, settings.overwrite)
        before = _receipts(folder, plan)
        if len(before) < len(plan.shards):
            folder.remove(MANIFEST)
    run = JobRun(Task(folder, plan, tokenizer), request, claims, before, progress)
    run()
    own = {shard.number for shard in run.shards}
    found = _receipts(folder, plan) if run.resumed < len(own) else before
    lost = sorted(own - {receipt.shard for receipt in found})
    if run.failures:
        raise _failed(folder, plan, run.failures, len(lost))
    if lost:
        raise JobError(
            f"shards {_listed(lost)} were made, but are not what their receipts say; run the same"
            " command again",
            str(folder),
        )
    if len(found) == len(plan.shards):
        summary = _complete(folder, plan, found)
    else:
        summary = _summarize(folder, plan, [one for one in found if one.shard in own])
        summary.share, summary.shards_done = True, len(found)
    summary.resumed, summary.seconds = run.resumed, run.seconds
    return summary


def _receipts(folder: Folder, plan: Plan) -> list[Receipt]:
    """Of the shards that are done, in their order; what vouches for something else is removed."""
    names = set(folder.names(OWN))
    there = [shard for shard in plan.shards if f"{shard.name}.json" in names]
    found = locations.each(functools.partial(read_receipt, folder, plan), there, folder.remote)
    for shard, receipt in zip(there, found, strict=True):
        if receipt is None:
            folder.remove(shard.receipt)
    return [receipt for receipt in found if receipt is not None]


def _failed(folder: Folder, plan: Plan, failures: dict[int, str], left: int) -> JobError:
    untried = left - len(failures)
    others = (
        f"{untried} were not tried, as they would fail alike" if untried else "the others are done"
    )
    return JobError(
        f"{len(failures)} of {len(plan.shards)} shards failed ({_listed(sorted(failures))}), the"
        f" first with: {failures[min(failures)]}. As to the rest, {others}. Mend the cause, or leave"
        " out what is bad with on_error='skip', and run the same again: it does what is not"
        " done",
        str(folder),
        failures,
    )


def _listed(shards: Sequence[int]) -> str:
    """``3, 7, 12``, or the first of many."""
    rest = len(shards) - _TOLD
    return ", ".join(map(str, shards[:_TOLD])) + (f" and {rest} more" if rest > 0 else "")


# The end
# -------------------------------------------------------------------------------------------------


def finish_job(output: str | Path, *, check: bool = False) -> Summary:
    """Check that a job is complete, and write its manifest: what ``numtok finish`` does.

    Args:
        output: the folder.
        check: also read every shard, every input that is still there, and the tokenizer, and hold
            them to their receipts. What is damaged loses its receipt, so that the same `numtok
            encode` makes it again.

    Raises:
        JobError: if shards are missing or damaged.
    """
    folder, plan = _job_in(output)
    done = _receipts(folder, plan)
    if missing := {shard.number for shard in plan.shards} - {receipt.shard for receipt in done}:
        raise JobError(
            f"{len(missing)} of {len(plan.shards)} shards are not done: {_listed(sorted(missing))};"
            " run the same job again, which does them",
            str(folder),
        )
    if check:
        saved_tokenizer(folder, plan)
        found = locations.each(functools.partial(check_shard, folder), done, folder.remote)
        if wrong := {one.shard: why for one, why in zip(done, found, strict=True) if why}:
            for shard in plan.shards:
                if shard.number in wrong:
                    folder.remove(shard.receipt)
            folder.remove(MANIFEST)
            raise JobError(
                f"{min(wrong.items())[1]}. {len(wrong)} of {len(done)} shards are to be made again, which"
                " the same job does"
            )
    return _complete(folder, plan, done)


def finish_splits(output: str | Path, names: Sequence[str], card: bool) -> None:
    """The card of a folder with a finished job in each of some folders, or none."""
    folder = Folder(output)
    manifests = {name: read_manifest(folder.file(name)) for name in names}
    finished = {name: one for name, one in manifests.items() if one is not None}
    if card and len(finished) == len(names):
        write_card(folder, finished)
    else:
        remove_card(folder)


def _job_in(output: str | Path) -> tuple[Folder, Plan]:
    folder = Folder(output)
    plan = folder.read_json(PLAN, Plan)
    if plan is None:
        raise JobError(
            f"is not the folder of a job: it has no {PLAN}; give the one that it wrote to",
            str(output),
        )
    return folder, plan


def _complete(folder: Folder, plan: Plan, done: Sequence[Receipt]) -> Summary:
    """The manifest and what goes with it, the same whoever writes them."""
    own = {receipt.file for receipt in done}
    if strangers := [name for name in folder.names() if name.endswith(DATA) and name not in own]:
        raise JobError(
            "is no shard of this job, but would be read as one; move it away",
            folder.file(strangers[0]),
        )
    folder.remove_leftovers()
    if left_out := list(_left_out(done)):
        folder.replace(QUARANTINE, quarantine(left_out))
    else:
        folder.remove(QUARANTINE)
    manifest = _manifest(plan, done)
    if plan.options.get("card"):
        write_card(folder, {"": manifest})
    else:
        remove_card(folder)
    folder.write_json(MANIFEST, manifest)
    return _summarize(folder, plan, done)


def _left_out(done: Sequence[Receipt]) -> Iterator[tuple[str, int | None, str]]:
    """(file, line, error) of each row that was left out."""
    before = _before(done)
    for receipt in done:
        for number, line, error in receipt.left_out:
            part = receipt.parts[number]
            yield part.path, None if line is None else before[part].lines + line, error


def _before(done: Sequence[Receipt]) -> dict[Part, Read]:
    """The lines and the rows of each input that lie before the part."""
    read = {part: one for got in done for part, one in zip(got.parts, got.read, strict=True)}
    before = {}
    lines: Counter[str] = Counter()
    rows: Counter[str] = Counter()
    for part in sorted(read, key=lambda part: (part.path, part.start)):
        before[part] = Read("", lines[part.path], rows[part.path])
        lines[part.path] += read[part].lines
        rows[part.path] += read[part].rows
    return before


def _manifest(plan: Plan, done: Sequence[Receipt]) -> dict[str, Any]:
    inputs: dict[str, dict[str, Any]] = {}
    for receipt in done:
        for part, read in zip(receipt.parts, receipt.read, strict=True):
            described = {"path": part.path, "size": part.size, "tag": part.tag, "parts": []}
            given = inputs.setdefault(part.path, described)
            given["parts"].append([part.start, part.stop, part.length, read.sha256])
    settled = as_json(plan)
    return {
        "format": FORMAT,
        **{name: settled[name] for name in ("tokenizer", "versions", "options", "fit")},
        "inputs": [inputs[path] for path in sorted(inputs)],
        "rows": sum(receipt.rows for receipt in done),
        "report": _total(done),
        "shards": [
            {name: getattr(receipt, name) for name in ("file", "bytes", "sha256", "rows")}
            for receipt in done
        ],
    }


def _total(done: Sequence[Receipt]) -> dict[str, Any]:
    reports = [dict(vars(receipt.report)) for receipt in done]
    for report in reports:
        del report["first_without_text"]
    return {"skipped": sum(len(receipt.left_out) for receipt in done), **summed(reports)}


def _summarize(folder: Folder, plan: Plan, done: Sequence[Receipt]) -> Summary:
    """What became of the shards that these receipts are of."""
    summary = Summary(**_total(done))
    summary.quarantine = folder.file(QUARANTINE) if summary.skipped else ""
    if without := [one for one in done if one.report.first_without_text]:
        place, row = without[0].report.first_without_text or (0, 0)
        part = without[0].parts[place]
        summary.first_without_text = f"{part.path}, row {_before(done)[part].rows + row}"
    summary.rows = sum(receipt.rows for receipt in done)
    summary.output, summary.output_bytes = str(folder), sum(receipt.bytes for receipt in done)
    summary.shards, summary.shards_done = len(plan.shards), len(done)
    summary.representations = tuple(numbers_of(plan.options)[0])
    if plan.fit is not None:
        summary.fit = Fit.from_json(plan.fit)
        summary.representations = tuple(summary.fit.put_into(summary.representations))
    return summary


# How far it is
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JobStatus:
    """How far a job is, shard by shard.

    Attributes:
        shards: how many there are.
        finished: whether the manifest is there.
        done: the numbers of the shards that are done.
        running: the shards that are being written: by whom, on which machine, since when.
        failed: the shards that could not be written: why, with file and line.
    """

    shards: int
    finished: bool
    done: list[int] = field(default_factory=list)
    running: dict[int, Claim] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)


def job_status(output: str | Path) -> JobStatus:
    """Say how far the job in a folder is, as ``numtok status`` does. Nothing is changed.

    Raises:
        JobError: if the folder holds no job.
    """
    folder, plan = _job_in(output)
    names = set(folder.names(OWN))
    claims = Claims(folder, "").among(names)
    status = JobStatus(len(plan.shards), os.path.basename(MANIFEST) in names)
    for shard in plan.shards:
        claim = claims.get(shard.name)
        if f"{shard.name}.json" in names:
            status.done.append(shard.number)
        elif claim is not None and claim.error is not None:
            status.failed[shard.number] = claim.error
        elif claim is not None and not claim.is_dead():
            status.running[shard.number] = claim
    return status
