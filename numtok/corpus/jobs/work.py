"""What does shards, wherever it runs: it claims the next one that has no receipt, encodes it to a
temporary name, has it forced to the disk, renames it and writes the receipt; and goes on until there
is none that nobody works on.
"""

from __future__ import annotations

import importlib
import logging
import os
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from numtok.corpus.encode import Settled, encode_sources
from numtok.corpus.jobs.claims import SUFFIX, Claims
from numtok.corpus.jobs.folder import OWN, PLAN, Folder
from numtok.corpus.jobs.plan import (
    Counts,
    LeftOut,
    Plan,
    Read,
    Receipt,
    Shard,
    as_json,
    content_of,
    saved_tokenizer,
)
from numtok.corpus.summary import Progress, Run
from numtok.errors import JobError, NumtokError
from numtok.tokenizer.tokenizer import Tokenizer

Watch = Callable[[bool], None]  # is told now and then, and by True that a shard has ended


class Task(NamedTuple):
    """A job: its folder, its plan, and its tokenizer."""

    folder: Folder
    plan: Plan
    tokenizer: Tokenizer


def encode_shard(
    task: Task, shard: Shard, threads: int, progress: Callable[[Progress], None]
) -> None:
    """Write a shard and its receipt. NumtokError for inputs that cannot be read or that changed, or
    a disk that takes no more; there is no receipt then.
    """
    folder, plan = task.folder, task.plan
    shard.check_inputs()
    name, sources = plan.file(shard), [part.source for part in shard.parts]
    place = {source: number for number, source in enumerate(sources)}
    folder.make_way(name)
    run = Run(sources, folder.file(name), progress)
    settings = plan.settings(workers=threads, overwrite=True)
    settled = Settled(plan.kept_fields, plan.metadata)
    made, reader = encode_sources(run, task.tokenizer, settings, settled=settled)
    contents = [content_of(part) for part in shard.parts]
    shard.check_inputs()  # what was read is what was planned
    null = reader.first_null
    receipt = Receipt(
        shard=shard.number,
        parts=shard.parts,
        read=[
            Read(*content, reader.rows.get(source, 0))
            for content, source in zip(contents, sources, strict=True)
        ],
        recipe=plan.recipe,
        file=name,
        bytes=run.written,
        sha256=run.sha256,
        rows=made.rows,
        report=Counts(
            **vars(run.report),
            without_text=made.without_text,
            cut_numbers=made.cut_numbers,
            first_without_text=null and (place[null[0]], null[1]),
        ),
        left_out=[LeftOut(place[source], *row) for source, row in reader.bad],
    )
    folder.write_json(shard.receipt, as_json(receipt))


def work(task: Task, shards: Sequence[Shard], claims: Claims, threads: int, watch: Watch) -> None:
    """Do what nobody does of these shards; ``watch`` may raise, which stops the work."""
    folder, left, stop = task.folder, list(shards), False
    while not stop:
        names = set(folder.names(OWN))
        left = [one for one in left if not names & {f"{one.name}.json", one.name + SUFFIX}]
        shard = next((shard for shard in left if claims.take(shard.name)), None)
        if shard is None:
            return
        error = None
        try:
            if folder.size(shard.receipt) is None:  # nobody was quicker
                error, stop = _attempt(task, shard, claims, threads, watch)
                if error is not None and folder.size(shard.receipt) is not None:
                    error = None  # somebody else has done it meanwhile
        except BaseException:
            claims.release(shard.name)
            raise
        claims.release(shard.name, error, stop)
        watch(True)


def _attempt(
    task: Task, shard: Shard, claims: Claims, threads: int, watch: Watch
) -> tuple[str | None, bool]:
    """(what went wrong, whether all others would fail alike, as on a full disk)."""

    def note(progress: Progress) -> None:
        claims.note(shard.name, progress)
        watch(False)

    try:
        encode_shard(task, shard, threads, note)
    except NumtokError as error:
        return str(error), isinstance(error, OSError)
    except MemoryError:
        return "out of memory; take fewer workers", False
    except Exception as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        return f"this is a bug in numtok: {type(error).__name__}: {error}{notes}", False
    return None, False


def do_share(
    folder: str, here: str, modules: Sequence[str], run: str, share: tuple[int, int], threads: int
) -> None:
    """The work of a process that knows nothing of the job yet: what ``JobRun.given`` says."""
    os.chdir(here)
    logging.getLogger("numtok").setLevel(logging.ERROR)  # who began it has said it
    warnings.simplefilter("ignore")
    for module in modules:
        importlib.import_module(module)
    there = Folder(folder)
    plan = there.read_json(PLAN, Plan)
    if plan is None:
        raise JobError(f"there is no plan in {folder} as this machine sees it")
    task, claims = Task(there, plan, saved_tokenizer(there, plan)), Claims(there, run)
    work(task, plan.share(share), claims, threads, lambda ended: None)
