"""The end of a job, once every shard is done: the manifest and what goes with it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from numtok import storage
from numtok.corpus.fit import Fit
from numtok.corpus.jobs.card import remove_card, write_card
from numtok.corpus.jobs.folder import (
    DATA,
    FORMAT,
    MANIFEST,
    PLAN,
    QUARANTINE,
    Folder,
    read_manifest,
    run_lock,
)
from numtok.corpus.jobs.plan import Plan, as_json, check_tiling, saved_tokenizer
from numtok.corpus.jobs.receipt import Receipt, is_damaged, read_receipts
from numtok.corpus.summary import Summary, quarantine, summed
from numtok.errors import JobError

_LISTED = 10  # numbers of shards that an error lists


def finish_job(output: str | Path, *, check: bool = False) -> Summary:
    """Check that a job is complete, and write its manifest: what ``numtok finish`` does.

    Args:
        output: the folder.
        check: also read every shard and the tokenizer, and compare them with their SHA-256. What is
            damaged loses its receipt, so that the same `numtok encode` makes it again.

    Raises:
        JobError: if shards are missing or damaged, or another run is at work.

    Example:
        >>> import numtok
        >>> _ = numtok.encode_files("sample.jsonl", "folder/", shards=2)
        >>> numtok.finish_job("folder/").shards_done
        2
    """
    folder, plan = _job_in(output)
    with run_lock(folder):
        receipts = read_receipts(folder, plan)
        if missing := {one.number for one in plan.shards} - {one.shard for one in receipts}:
            raise JobError(
                f"{len(missing)} of {len(plan.shards)} shards are not done:"
                f" {listed(sorted(missing))}; run the same job again, which does them",
                str(folder),
            )
        if check:
            _check(folder, plan, receipts)
        return complete(folder, plan, receipts)


def _check(folder: Folder, plan: Plan, receipts: Sequence[Receipt]) -> None:
    saved_tokenizer(folder, plan)
    check = functools.partial(is_damaged, folder)
    damaged = storage.each(check, receipts, folder.remote)
    wrong = [one for one, is_wrong in zip(receipts, damaged, strict=True) if is_wrong]
    if wrong:
        for receipt in wrong:
            folder.remove(plan.shards[receipt.shard].receipt)
        folder.remove(MANIFEST)
        raise JobError(
            f"is damaged: it does not have the SHA-256 of its receipt. {len(wrong)} of"
            f" {len(receipts)} shards are to be made again, which the same job does",
            folder.file(wrong[0].file),
        )


def listed(shards: Sequence[int]) -> str:
    """Return ``3, 7, 12``, or the first of many."""
    rest = len(shards) - _LISTED
    return ", ".join(map(str, shards[:_LISTED])) + (f" and {rest} more" if rest > 0 else "")


def finish_splits(output: str | Path, names: Sequence[str], card: bool) -> None:
    """Write the card of a folder with a finished job in each of some folders, or none."""
    folder = Folder(output)
    manifests = {name: read_manifest(folder.file(name)) for name in names}
    finished = {name: one for name, one in manifests.items() if one is not None}
    if card and len(finished) == len(names):
        write_card(folder, finished)
    else:
        remove_card(folder)


def _job_in(output: str | Path) -> tuple[Folder, Plan]:
    """Return the folder of a job and its plan; JobError if there is none."""
    folder = Folder(output)
    plan = folder.read_json(PLAN, Plan)
    if plan is None:
        names = folder.names() if storage.is_folder(folder.path) else []
        splits = [name for name in names if storage.is_file(folder.file(f"{name}/{PLAN}"))]
        which = (
            f"that of a split, {folder.file(splits[0])}" if splits else "the one that it wrote to"
        )
        raise JobError(f"is not the folder of a job: it has no {PLAN}; give {which}", str(output))
    return folder, plan


def complete(folder: Folder, plan: Plan, receipts: Sequence[Receipt]) -> Summary:
    """Write the manifest and what goes with it, the same whoever writes them."""
    check_tiling(plan)
    shard_files = {receipt.file for receipt in receipts}
    if foreign := [
        name for name in folder.names() if name.endswith(DATA) and name not in shard_files
    ]:
        raise JobError(
            "is no shard of this job, but would be read as one; move it away",
            folder.file(foreign[0]),
        )
    folder.remove_leftovers()
    if skipped := [row for receipt in receipts for row in receipt.skipped]:
        folder.replace(QUARANTINE, quarantine(skipped))
    else:
        folder.remove(QUARANTINE)
    manifest = _manifest(plan, receipts)
    if plan.options.get("card"):
        write_card(folder, {"": manifest})
    else:
        remove_card(folder)
    folder.write_json(MANIFEST, manifest)
    return summarize(folder, plan, receipts)


def _manifest(plan: Plan, receipts: Sequence[Receipt]) -> dict[str, Any]:
    parts = {part.path: part for shard in plan.shards for part in shard.parts}
    planned = as_json(plan)
    return {
        "format": FORMAT,
        **{name: planned[name] for name in ("tokenizer", "versions", "options", "fit")},
        "inputs": [
            {"path": path, "size": part.size, "tag": part.tag}
            for path, part in sorted(parts.items())
        ],
        "rows": sum(receipt.rows for receipt in receipts),
        "report": _total(receipts),
        "shards": [
            {name: getattr(receipt, name) for name in ("file", "bytes", "sha256", "rows")}
            for receipt in receipts
        ],
    }


def _total(receipts: Sequence[Receipt]) -> dict[str, Any]:
    skipped = sum(len(receipt.skipped) for receipt in receipts)
    return {"skipped": skipped, **summed([asdict(receipt.report) for receipt in receipts])}


def summarize(folder: Folder, plan: Plan, receipts: Sequence[Receipt]) -> Summary:
    """Return the summary of the shards that these receipts are of."""
    total, numbers = _total(receipts), plan.numbers()
    fit = None if plan.fit is None else Fit.from_json(plan.fit)
    return Summary(
        **total,
        quarantine=folder.file(QUARANTINE) if total["skipped"] else "",
        first_without_text=next(filter(None, (one.first_without_text for one in receipts)), ""),
        representations=tuple(numbers if fit is None else fit.put_into(numbers)),
        fit=fit,
        rows=sum(receipt.rows for receipt in receipts),
        output=str(folder),
        output_bytes=sum(receipt.bytes for receipt in receipts),
        shards=len(plan.shards),
        shards_done=len(receipts),
    )


@dataclass(frozen=True)
class JobStatus:
    """Progress of a job: its shards, and those that are done.

    Attributes:
        shards: how many there are.
        finished: whether the manifest is there, and every shard done.
        done: the numbers of the shards that are done.

    Example:
        >>> import numtok
        >>> _ = numtok.encode_files("sample.jsonl", "job/", shards=2)
        >>> status = numtok.job_status("job/")
        >>> status.finished, status.shards, status.done
        (True, 2, [0, 1])
    """

    shards: int
    finished: bool
    done: list[int] = field(default_factory=list)


def job_status(output: str | Path) -> JobStatus:
    """Say how far the job in a folder is, as ``numtok status`` does. Nothing is changed.

    Args:
        output: the folder.

    Raises:
        JobError: if the folder holds no job.

    Example:
        >>> import numtok
        >>> _ = numtok.encode_files("sample.jsonl", "shards/", shards=2)
        >>> numtok.job_status("shards/")
        JobStatus(shards=2, finished=True, done=[0, 1])
    """
    folder, plan = _job_in(output)
    done = [receipt.shard for receipt in read_receipts(folder, plan)]
    finished = len(done) == len(plan.shards) and storage.is_file(folder.file(MANIFEST))
    return JobStatus(len(plan.shards), finished, done)
