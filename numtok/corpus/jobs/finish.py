"""The end of a job: every shard is there, together they hold each input exactly once, and the
manifest says what it all comes to.

In: a folder whose shards are done, by whatever machines. Out: ``__numtok/manifest.json``, the same
    bytes whoever writes it, and a ``Summary``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from numtok.corpus.fit import Fit
from numtok.corpus.job_folder import DATA, MANIFEST, PLAN
from numtok.corpus.jobs.plan import FORMAT, Plan
from numtok.corpus.jobs.shards import (
    Receipt,
    check_file,
    read_plan,
    read_receipt,
    total,
    total_statistics,
)
from numtok.corpus.jobs.store import Folder
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.summary import Summary
from numtok.errors import JobError
from numtok.representations import from_dict

_TOLD = 10  # numbers of shards that an error lists


def finish_folder(output: str | Path, check: bool = False) -> Summary:
    """Check that a job is complete, and write its manifest.

    Args:
        output: the folder.
        check: also read every shard, and hold it to the SHA-256 of its receipt.

    Raises:
        JobError: if shards are missing or damaged, or somebody works in the folder.
    """
    folder = Folder(output)
    if not folder.exists():
        raise JobError(
            "is not the folder of a job; give the one that `numtok encode` wrote to", str(output)
        )
    with folder.lock("lock"):
        plan = read_plan(folder)
        if plan is None:
            raise JobError(
                f"has no plan ({PLAN}); give the folder that `numtok encode` wrote to", str(output)
            )
        return complete(folder, plan, check)


def complete(folder: Folder, plan: Plan, check: bool = False) -> Summary:
    """The same for who holds the lock."""
    receipts = folder.each(lambda shard: read_receipt(folder, plan, shard), range(len(plan.shards)))
    if missing := [shard for shard, receipt in enumerate(receipts) if receipt is None]:
        raise JobError(
            f"{len(missing)} of {len(plan.shards)} shards are not done: {listed(missing)}; run the"
            " same `numtok encode` again, which does them",
            str(folder),
        )
    done = [receipt for receipt in receipts if receipt is not None]
    check_tiles(plan)
    folder.each(lambda receipt: check_file(folder, receipt, check), done)
    folder.remove_leftovers()
    refuse_strangers(folder, plan)
    folder.write_json(MANIFEST, manifest(plan, done))
    return summarize(folder, plan, done)


def listed(shards: Sequence[int]) -> str:
    """``3, 7, 12``, or the first of many."""
    rest = len(shards) - _TOLD
    return ", ".join(map(str, shards[:_TOLD])) + (f" and {rest} more" if rest > 0 else "")


def check_tiles(plan: Plan) -> None:
    """Hold the shards to what a plan must be: each input is in them once, in order and without a
    gap.

    Raises:
        JobError: naming the input.
    """
    reached: dict[int, int | None] = {}
    order = [part for shard in range(len(plan.shards)) for part in plan.parts(shard)]
    for part in order:
        if part.start != reached.get(part.input, 0):
            raise JobError(
                f"the shards do not hold all of it, or some of it twice, near {part.start:,}",
                plan.inputs[part.input]["path"],
            )
        reached[part.input] = part.stop
    for number, given in enumerate(plan.inputs):
        ends = (
            None,
            given["size"] if FORMATS[given["format"]].cut == "lines" else given.get("row_groups"),
        )
        if number not in reached or reached[number] not in ends:
            raise JobError("the shards do not hold all of it", given["path"])


def refuse_strangers(folder: Folder, plan: Plan) -> None:
    """``JobError`` if the folder holds files that readers would take for shards."""
    own = {plan.name(shard) for shard in range(len(plan.shards))}
    strangers = [name for name in folder.names() if name not in own and name.endswith(DATA)]
    if strangers:
        raise JobError(
            "is no shard of this job, but would be read as one; move it away",
            folder.file(strangers[0]),
        )


def manifest(plan: Plan, receipts: Iterable[Receipt]) -> dict[str, Any]:
    """What a job has made, of what, and how."""
    ordered = list(receipts)
    report, others = total(ordered)
    statistics = total_statistics(ordered)
    return {
        "format": FORMAT,
        "plan": plan.digest,
        "tokenizer": plan.tokenizer,
        "versions": plan.versions,
        "options": plan.options,
        "fit": plan.fit,
        "inputs": plan.inputs,
        "rows": sum(receipt["rows"] for receipt in ordered),
        "report": vars(report) | others,
        **({} if statistics is None else {"statistics": statistics.to_json()}),
        "shards": [
            {name: receipt[name] for name in ("file", "bytes", "sha256", "rows")}
            for receipt in ordered
        ],
    }


def summarize(folder: Folder, plan: Plan, receipts: Iterable[Receipt]) -> Summary:
    """What became of the shards that these receipts are of."""
    ordered = list(receipts)
    report, others = total(ordered)
    summary = Summary(**vars(report), first_without_text=_first_without_text(plan, ordered))
    for name, count in others.items():
        setattr(summary, name, count)
    summary.rows = sum(receipt["rows"] for receipt in ordered)
    summary.output, summary.output_bytes = str(folder), sum(receipt["bytes"] for receipt in ordered)
    summary.shards, summary.shards_done = len(plan.shards), len(ordered)
    summary.statistics = total_statistics(ordered)
    representations = tuple(map(from_dict, plan.options["numbers"]))
    if plan.fit is not None:
        xval: Any = from_dict(plan.fit["xval"])
        representations = tuple(xval if one.has_scale else one for one in representations)
        summary.fit = Fit(**plan.fit | {"xval": xval})
    summary.representations = representations
    if plan.costs is not None:
        summary.tokens_before, summary.tokens_after = plan.costs
    return summary


def _first_without_text(plan: Plan, receipts: Sequence[Receipt]) -> str:
    """The file and the row, as far as the receipts reach; nothing if every document has a text."""
    reached: dict[
        int, tuple[int | None, int]
    ] = {}  # of each input: the end of the last part, and the rows up to there
    for receipt in receipts:
        parts = plan.parts(receipt["shard"])
        number, row = receipt["report"]["first_without_text"] or (None, 0)
        for place, (part, read) in enumerate(zip(parts, receipt["rows_read"], strict=True)):
            end, before = reached.get(part.input, (0, 0))
            if place == number:
                where = (
                    f"row {before + row}"
                    if end == part.start
                    else f"row {row} of shard {receipt['shard']}"
                )
                return f"{plan.inputs[part.input]['path']}, {where}"
            reached[part.input] = part.stop, before + read
    return ""
