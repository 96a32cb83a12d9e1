"""Receipts: a shard is done if its receipt is there with the key that the plan gives it, and its file
with the size in the receipt. A receipt holds no time and no name of a machine: it is the same
whoever wrote it.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from typing import Literal

from numtok import storage
from numtok.corpus.jobs.folder import OWN, Folder
from numtok.corpus.jobs.plan import Plan, Shard
from numtok.corpus.summary import Quarantined
from numtok.errors import JobError
from numtok.tokenizer.number_selection import EncodeReport


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
        digest = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]  # it can be read into
    return digest.hexdigest() != receipt.sha256
