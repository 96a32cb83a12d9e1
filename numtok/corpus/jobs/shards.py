"""One shard: encoded to a temporary name, forced to the disk, renamed, and then vouched for by a
receipt.

In: a plan, the number of a shard, a tokenizer. Out: its file, and its receipt, by whose presence
    alone the shard is done. A receipt holds no time and no name of a machine, so that it is the
    same whoever wrote it. Its ``report`` is for whatever is counted: reports of shards are added up
    (``total``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from numtok import locations
from numtok.corpus.encode import Settled, encode_sources
from numtok.corpus.job_folder import PLAN, TOKENIZER
from numtok.corpus.jobs.plan import FORMAT, Plan
from numtok.corpus.jobs.store import Folder
from numtok.corpus.settings import EncodeSettings
from numtok.corpus.summary import Progress, Run
from numtok.errors import JobError
from numtok.tokenizer.results import EncodeReport
from numtok.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numtok.statistics import Statistics

Receipt = dict[str, Any]


def read_plan(folder: Folder) -> Plan | None:
    """The plan of the job in a folder; None if there is none.

    Raises:
        JobError: if it is damaged, or of another version.
    """
    content = folder.read_json(PLAN)
    return None if content is None else Plan.from_dict(content, folder.file(PLAN))


def saved_tokenizer(folder: Folder, plan: Plan) -> Tokenizer:
    """The tokenizer of a job, with its scale.

    Raises:
        JobError: if it is not the one that the job was planned with.
    """
    path = folder.file(TOKENIZER)
    tokenizer = Tokenizer.from_pretrained(path, engine=plan.options["engine"])
    if tokenizer.fingerprint != plan.tokenizer["fingerprint"]:
        raise JobError(
            "is not the tokenizer that the job was planned with; put it back, or begin the job anew"
            " with --overwrite",
            path,
        )
    return tokenizer


def encode_shard(
    folder: Folder,
    plan: Plan,
    shard: int,
    tokenizer: Tokenizer,
    threads: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> Receipt:
    """Write a shard and its receipt.

    Raises:
        NumtokError: for inputs that cannot be read or that changed, or a disk that takes no more;
            there is no receipt then.
    """
    plan.check_inputs(shard)
    name, sources = plan.name(shard), plan.sources(shard)
    settings = EncodeSettings(**plan.settings, workers=threads, overwrite=True)
    run = Run.start(sources, folder.file(name), progress)
    summary = encode_sources(
        run, tokenizer, settings, settled=Settled(plan.kept_fields, plan.metadata(shard))
    )
    plan.check_inputs(shard)  # what was read is what was planned
    null = None if run.first_null is None else [sources.index(run.first_null[0]), run.first_null[1]]
    report = dataclasses.asdict(run.report) | {
        "skipped": len(run.bad),
        "without_text": run.without_text,
        "first_without_text": null,
        "cut_numbers": summary.cut_numbers,
    }
    receipt = {
        "format": FORMAT,
        "plan": plan.digest,
        "shard": shard,
        "file": name,
        "bytes": run.written,
        "sha256": run.sha256,
        "rows": summary.rows,
        "rows_read": [run.rows.get(source, 0) for source in sources],
        "report": report,
    }
    if settings.stats:
        receipt["statistics"] = (run.statistics or no_statistics()).to_json()
    folder.write_json(plan.receipt(shard), receipt)
    return receipt


def read_receipt(folder: Folder, plan: Plan, shard: int) -> Receipt | None:
    """The receipt of a shard; None if it is not done.

    Raises:
        JobError: if the receipt is damaged, or the file is not the one that it vouches for.
    """
    receipt = folder.read_json(plan.receipt(shard))
    if receipt is None:
        return None
    where, name = folder.file(plan.receipt(shard)), plan.name(shard)
    if (
        receipt.get("plan") != plan.digest
        or receipt.get("shard") != shard
        or receipt.get("file") != name
    ):
        raise JobError(
            "is the receipt of another job or shard; remove it, and run the same command again",
            where,
        )
    size = folder.size(name)
    if size != receipt["bytes"]:
        what = (
            "is not there"
            if size is None
            else f"has {size:,} bytes instead of {receipt['bytes']:,}"
        )
        raise JobError(
            f"{what}, as its receipt says it should; remove the receipt ({where}) and run the same"
            " command again",
            folder.file(name),
        )
    return receipt


def check_file(folder: Folder, receipt: Receipt, whole: bool) -> None:
    """Hold the file of a shard to its receipt: how many rows it says it has, and, if asked, all of
    its bytes.

    Raises:
        JobError: naming the file.
    """
    path = folder.file(receipt["file"])
    way_out = "remove its receipt, and run the same command again"
    if whole and folder.sha256(receipt["file"]) != receipt["sha256"]:
        raise JobError(f"is damaged: it does not have the SHA-256 of its receipt; {way_out}", path)
    if path.endswith(".parquet") and (rows := _rows(path)) != receipt["rows"]:
        raise JobError(f"has {rows:,} rows, its receipt says {receipt['rows']:,}; {way_out}", path)


def _rows(path: str) -> int:
    """As the footer has it."""
    return int(pq.read_metadata(locations.for_arrow(path, locations.SMALL_BLOCK)).num_rows)


def no_statistics() -> Statistics:
    """Those of no text."""
    from numtok.statistics import Statistics  # takes longer to load than most starts may

    return Statistics()


def total_statistics(receipts: Iterable[Receipt]) -> Statistics | None:
    """The statistics of all shards added up, in their order; None if they were not counted."""
    parts = [receipt["statistics"] for receipt in receipts if "statistics" in receipt]
    return no_statistics().merge(map(no_statistics().from_json, parts)) if parts else None


def total(receipts: Iterable[Receipt]) -> tuple[EncodeReport, dict[str, int]]:
    """(the reports added up, the other counts in them)."""
    report, others = EncodeReport(), dict.fromkeys(("skipped", "without_text", "cut_numbers"), 0)
    for receipt in receipts:
        given: Mapping[str, Any] = receipt["report"]
        report += EncodeReport(
            **{field.name: given[field.name] for field in dataclasses.fields(EncodeReport)}
        )
        others = {name: count + given[name] for name, count in others.items()}
    return report, others
