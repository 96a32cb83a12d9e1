"""Encode one shard to a temporary name, force it to the disk, rename it, and write its receipt.

A shard is done if its receipt is there with the key that the plan gives it, and its file with the
size in the receipt. A receipt holds no time and no name of a machine: it is the same whoever wrote
it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import logging
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from numtok import storage
from numtok.corpus.encode import ShardSchema, encode_sources
from numtok.corpus.jobs.folder import OWN, PLAN, Folder, digest
from numtok.corpus.jobs.plan import Plan, Shard, as_json, saved_tokenizer
from numtok.corpus.pipeline import Reader
from numtok.corpus.summary import Progress, Quarantined, Run
from numtok.errors import JobError, NumtokError
from numtok.tokenizer.number_selection import EncodeReport
from numtok.tokenizer.tokenizer import Tokenizer


@dataclass
class Counts(EncodeReport):
    """Counts of a shard, which are added up over all shards."""

    without_text: int = 0  # documents
    cut_numbers: int = 0


@dataclass(frozen=True)
class Receipt:
    """The proof that a shard is done: what it was made of, by its key, and the file."""

    shard: int
    key: str
    file: str
    bytes: int
    sha256: str
    rows: int
    report: Counts
    first_without_text: str  # the file and the row; empty if every document has a text
    skipped: list[Quarantined]
    format: Literal[3] = 3


def read_receipt(folder: Folder, plan: Plan, shard: Shard) -> Receipt | None:
    """Return the receipt of a shard; None if the shard is to be encoded: there is no receipt, it has
    another key, or the file another size.
    """
    try:
        receipt = folder.read_json(shard.receipt, Receipt)
    except JobError:
        return None
    expected = (plan.key(shard), shard.number, plan.file(shard))
    if receipt is None or (receipt.key, receipt.shard, receipt.file) != expected:
        return None
    return receipt if folder.size(receipt.file) == receipt.bytes else None


def read_receipts(folder: Folder, plan: Plan) -> list[Receipt]:
    """Return the receipts of the shards that are done, in their order."""
    names = set(folder.names(OWN))
    candidates = [shard for shard in plan.shards if f"{shard.name}.json" in names]
    receipts = storage.each(
        functools.partial(read_receipt, folder, plan), candidates, folder.remote
    )
    return [receipt for receipt in receipts if receipt is not None]


def is_damaged(folder: Folder, receipt: Receipt) -> bool:
    """Whether the file of a shard has another SHA-256 than its receipt."""
    with storage.open_file(folder.file(receipt.file)) as file:
        found = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]  # it can be read into
    return found.hexdigest() != receipt.sha256


class Task(NamedTuple):
    """A job to work on."""

    folder: Folder
    plan: Plan
    tokenizer: Tokenizer
    on_error: str  # "raise" or "skip"


class Outcome(NamedTuple):
    """Outcome of a shard: done, or why not."""

    shard: int
    error: str | None = None
    stop: bool = False  # whether all other shards would fail alike, as on a full disk


def encode_shard(
    task: Task, shard: Shard, threads: int, progress: Callable[[Progress], None]
) -> None:
    """Write a shard and its receipt. NumtokError for inputs that cannot be read or that changed, or
    a disk that takes no more; there is no receipt then.
    """
    folder, plan = task.folder, task.plan
    shard.check_inputs()
    name, sources = plan.file(shard), [part.source for part in shard.parts]
    folder.make_way(name)
    run = Run(sources, folder.file(name), progress)
    options = plan.encode_options(workers=threads, overwrite=True, on_error=task.on_error)
    reader = Reader(sources, options, plan.documents())
    schema = ShardSchema(plan.kept_fields, plan.metadata)
    summary = encode_sources(
        run,
        task.tokenizer,
        options,
        reader,
        shard_schema=schema,
        check_inputs=shard.check_inputs,  # what was read is what was planned
    )
    receipt = Receipt(
        shard=shard.number,
        key=plan.key(shard),
        file=name,
        bytes=run.written,
        sha256=run.sha256,
        rows=summary.rows,
        report=Counts(
            **vars(run.report),
            without_text=summary.without_text,
            cut_numbers=summary.cut_numbers,
        ),
        first_without_text=summary.first_without_text,
        skipped=reader.skipped,
    )
    folder.write_json(shard.receipt, as_json(receipt))


def try_shard(
    task: Task, shard: Shard, threads: int, progress: Callable[[Progress], None]
) -> Outcome:
    """Encode a shard, and say what came of it."""
    try:
        encode_shard(task, shard, threads, progress)
    except NumtokError as error:
        return Outcome(shard.number, str(error), isinstance(error, OSError))
    except MemoryError:
        return Outcome(shard.number, "out of memory; take fewer workers")
    except Exception as error:
        notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
        return Outcome(
            shard.number, f"this is a bug in numtok: {type(error).__name__}: {error}{notes}"
        )
    return Outcome(shard.number)


# In other processes
# -------------------------------------------------------------------------------------------------


class Address(NamedTuple):
    """Address of a job, by which another process can work on it."""

    folder: str
    here: str  # the working directory, by which inputs were named
    modules: Sequence[str]  # in which representations are defined
    on_error: str
    plan: str  # its digest, as a process of Ray may outlive a job

    @classmethod
    def of(cls, task: Task, here: str) -> Address:
        """Return the address of a job."""
        folder = task.folder
        return cls(
            folder.path if folder.remote else os.path.abspath(folder.path),
            here,
            tuple(modules_of(task)),
            task.on_error,
            digest(as_json(task.plan)),
        )

    def open(self) -> Task:
        """Set this process up as the one that began the job (working directory, modules, no
        warnings), and return the job. JobError if its folder has no plan.
        """
        os.chdir(self.here)
        logging.getLogger("numtok").setLevel(logging.ERROR)  # who began it has said it
        warnings.simplefilter("ignore")
        for module in self.modules:
            importlib.import_module(module)
        folder = Folder(self.folder)
        plan = folder.read_json(PLAN, Plan)
        if plan is None:
            raise JobError(f"there is no plan in {self.folder} as this machine sees it")
        return Task(folder, plan, saved_tokenizer(folder, plan), self.on_error)


def modules_of(task: Task) -> list[str]:
    """Return the modules in which the representations are defined."""
    return sorted({type(one).__module__ for one in task.tokenizer.representations})


@functools.lru_cache(1)
def _opened(address: Address) -> Task:
    return address.open()


def try_shard_at(address: Address, number: int) -> Outcome:
    """Encode a shard in a process of Ray, which may do several of a job."""
    task = _opened(address)
    return try_shard(task, task.plan.shards[number], 1, lambda _: None)
