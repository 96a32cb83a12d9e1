"""One shard: encoded to a temporary name, forced to the disk, renamed, and then vouched for by a
receipt, by whose presence alone it is done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from numtok.corpus.encode import Settled, encode_sources
from numtok.corpus.jobs.folder import TOKENIZER, Folder
from numtok.corpus.jobs.plan import LeftOut, Plan, Receipt, Report, Shard, as_json
from numtok.corpus.summary import Progress, Run
from numtok.errors import JobError
from numtok.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Task:
    """A job: its folder, its plan, and its tokenizer."""

    folder: Folder
    plan: Plan
    tokenizer: Tokenizer


def saved_tokenizer(folder: Folder, plan: Plan) -> Tokenizer:
    """The tokenizer of a job, with its scale.

    Raises:
        JobError: if it is not the one that the job was planned with.
    """
    path = folder.file(TOKENIZER)
    tokenizer = Tokenizer.from_pretrained(path, engine=plan.options["engine"])
    if tokenizer.fingerprint != plan.tokenizer.fingerprint:
        raise JobError(
            "is not the tokenizer that the job was planned with; put it back, or begin the job anew"
            " with overwrite=True",
            path,
        )
    return tokenizer


def encode_shard(
    task: Task,
    shard: Shard,
    threads: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> None:
    """Write a shard and its receipt.

    Raises:
        NumtokError: for inputs that cannot be read or that changed, or a disk that takes no more;
            there is no receipt then.
    """
    folder, plan = task.folder, task.plan
    shard.check_inputs()
    name, sources = plan.file(shard), [part.source for part in shard.parts]
    place = {source: number for number, source in enumerate(sources)}
    run = Run.start(sources, folder.file(name), progress)
    settings = plan.settings(workers=threads, overwrite=True)
    encode_sources(run, task.tokenizer, settings, settled=Settled(plan.kept_fields, plan.metadata))
    shard.check_inputs()  # what was read is what was planned
    receipt = Receipt(
        shard=shard.number,
        parts=shard.parts,
        lines=[run.lines.get(source, 0) for source in sources],
        recipe=plan.recipe,
        file=name,
        bytes=run.written,
        sha256=run.sha256,
        rows=run.stored_rows,
        report=Report(
            **dataclasses.asdict(run.report),
            without_text=run.without_text,
            cut_numbers=run.cut_numbers,
        ),
        left_out=[LeftOut(place[source], *row) for source, row in run.bad],
    )
    folder.write_json(shard.receipt, as_json(receipt))


def read_receipt(folder: Folder, plan: Plan, shard: Shard) -> Receipt | None:
    """The receipt of a shard; None if it is not done, or what there is belongs to other inputs,
    other options, or another file than the one that lies there.
    """
    try:
        receipt = folder.read_json(shard.receipt, Receipt)
    except JobError:
        return None
    made_of = (plan.recipe, shard.number, shard.parts)
    if receipt is None or (receipt.recipe, receipt.shard, receipt.parts) != made_of:
        return None
    skipped = bool(receipt.left_out) and plan.options["on_error"] != "skip"
    return None if skipped or folder.size(plan.file(shard)) != receipt.bytes else receipt


def check_shard(folder: Folder, receipt: Receipt) -> str | None:
    """What is wrong with the file of a shard that is done; None if nothing is."""
    if folder.sha256(receipt.file) == receipt.sha256:
        return None
    path = folder.file(receipt.file)
    return f"{path}: is damaged: it does not have the SHA-256 of its receipt"
