"""The end of a job, once every shard is done: the manifest and what goes with it, such as the card,
a README.md whose head the Hugging Face hub and ``datasets`` read. They say nothing of who wrote
them, or when, and so have the same bytes.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from numtok import storage
from numtok.corpus.fit import Fit
from numtok.corpus.jobs.encode_shard import Receipt, is_damaged, read_receipts
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
from numtok.corpus.jobs.plan import Plan, as_json, saved_tokenizer
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


CARD = "README.md"
OURS = "<!-- numtok writes this file anew. Take this line out to keep what you change. -->"
_LONGEST_CARD = 1 << 20  # bytes of a card of ours
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_SHORT_FLOAT = re.compile(r"( -?\d)e(?=[+-]\d+,?$)", re.M)
_BODY = f"""
# Text and its numbers, encoded with numtok

{OURS}

A row is a document, or a row of the length that was asked for if they are packed: token ids, and
columns with its numbers. The head of this file says by which tokenizer and options.

```python
from datasets import load_dataset

rows = load_dataset("this folder, or the name of its repository")
```

| column | type |
|---|---|
"""


def write_card(folder: Folder, manifests: Mapping[str, dict[str, Any]]) -> None:
    """Write the card of finished jobs, unless somebody has written another; ``manifests`` are by the
    folder within, which is the name of the split, and empty for the folder itself.
    """
    from numtok.corpus.read.encoded import schema_of  # which reads all that a folder may hold

    if not _is_free(folder):
        return
    shards = (
        f"{split}/{shard['file']}".lstrip("/")
        for split, manifest in manifests.items()
        for shard in manifest["shards"]
    )
    first = next(shards, None)
    schema = () if first is None else schema_of(folder.file(first))
    columns = {field.name: str(field.type) for field in schema}
    shown = {re.sub(r"[\s|`]+", " ", name): kind for name, kind in columns.items()}
    rows = "".join(f"| `{name}` | {kind} |\n" for name, kind in shown.items())
    head = "".join(_yaml(name, value) for name, value in _head_of_card(manifests, columns).items())
    folder.replace(CARD, f"---\n{head}---\n{_BODY}{rows}")


def remove_card(folder: Folder) -> None:
    """Remove it, unless it is somebody else's."""
    if folder.size(CARD) is not None and _is_free(folder):
        folder.remove(CARD)


def _is_free(folder: Folder) -> bool:
    """Whether there is no such file, or one of ours; JobError for a link or a pipe."""
    if (folder.size(CARD) or 0) > _LONGEST_CARD:
        return False
    return OURS.encode() in (folder.read(CARD) or OURS.encode())


def _head_of_card(
    manifests: Mapping[str, dict[str, Any]], columns: dict[str, str]
) -> dict[str, Any]:
    """Return the metadata of the card, from the manifest of each split and the columns' types."""
    first = next(iter(manifests.values()))
    options = first["options"]
    files = [
        {"split": split or "train", "path": f"{split}/*.{options['output_format']}".lstrip("/")}
        for split in manifests
    ]
    given_options = {n: one for n, one in options.items() if one is not None and n != "hash_range"}
    return {
        "tags": ["numtok"],
        "size_categories": [_size_category(sum(one["rows"] for one in manifests.values()))],
        "configs": [{"config_name": "default", "data_files": files}],
        "numtok": {
            **{name: first[name] for name in ("versions", "tokenizer", "fit")},
            "options": given_options,
            "rows": {split or "train": manifest["rows"] for split, manifest in manifests.items()},
            "report": summed([manifest["report"] for manifest in manifests.values()]),
            "columns": [{"name": name, "type": kind} for name, kind in columns.items()],
        },
    }


def _size_category(rows: int) -> str:
    """Return the size class of the hub: ``n<1K``, ``1K<n<10K`` and so on."""
    if rows < 1000:
        return "n<1K"
    names = [f"{digits}{unit}" for unit in "KMBT" for digits in (1, 10, 100)][:10]
    place = len(str(rows)) - 4
    return f"{names[place]}<n<{names[place + 1]}" if place < len(names) - 1 else "n>1T"


def _yaml(name: str, value: Any) -> str:
    """Return a key and its value as JSON, which is YAML but for some characters, and floats as
    1e-05.
    """
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True).replace("\n", "\n ")
    text = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    text = _SHORT_FLOAT.sub(r"\1.0e", text)
    return f"{name}: {text}\n"
