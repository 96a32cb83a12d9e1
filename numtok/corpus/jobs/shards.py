"""One shard: encoded to a temporary name, forced to the disk, renamed, and then vouched for by a
receipt, by whose presence alone it is done.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from numtok import locations
from numtok.corpus.encode import Settled, encode_sources
from numtok.corpus.jobs.folder import TOKENIZER, Folder
from numtok.corpus.jobs.plan import Counts, LeftOut, Part, Plan, Read, Receipt, Shard, as_json
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.sources import named_errors
from numtok.corpus.summary import Progress, Run
from numtok.errors import JobError
from numtok.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numtok.statistics import Statistics

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Task:
    """A job: its folder, its plan, and its tokenizer."""

    folder: Folder
    plan: Plan
    tokenizer: Tokenizer


def saved_tokenizer(folder: Folder, plan: Plan) -> Tokenizer:
    """The tokenizer of a job, with its scale; JobError if it is not the one that was planned with."""
    path = folder.file(TOKENIZER)
    tokenizer = Tokenizer.from_pretrained(path, engine=plan.options["engine"])
    if tokenizer.fingerprint != plan.tokenizer.fingerprint:
        raise JobError(
            "is not the tokenizer that the job was planned with; put it back, or begin the job anew"
            " with overwrite=True",
            path,
        )
    return tokenizer


def content_of(part: Part) -> tuple[str, int]:
    """(SHA-256, line breaks) of the bytes of a part; of an object in a store, of its tag."""
    if locations.is_url(part.path):
        told = f"{part.size} {part.tag} {part.start} {part.stop}"
        return hashlib.sha256(told.encode()).hexdigest(), 0
    made, lines = hashlib.sha256(), 0
    with named_errors(part.source):
        for chunk in _bytes_of(part):
            made.update(chunk)
            lines += chunk.count(b"\n") if FORMATS[part.format].cut == "lines" else 0
    return made.hexdigest(), lines


def _bytes_of(part: Part) -> Iterator[bytes]:
    stretches = [(part.start, None if part.stop is None else part.stop - part.start)]
    if part.stop is not None and FORMATS[part.format].cut == "row groups":
        metadata = pq.read_metadata(part.path)
        yield metadata.schema.to_arrow_schema().serialize().to_pybytes()
        stretches = [
            _stretch(metadata.row_group(group).column(column))
            for group in range(part.start, min(part.stop, metadata.num_row_groups))
            for column in range(metadata.num_columns)
        ]
    with open(part.path, "rb") as file:
        for start, length in stretches:
            file.seek(start)
            left = length
            while chunk := file.read(_CHUNK if left is None else min(_CHUNK, left)):
                left = None if left is None else left - len(chunk)
                yield chunk


def _stretch(chunk: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Where a column of a row group lies in its file."""
    pages = [chunk.data_page_offset, chunk.dictionary_page_offset]
    return min(page for page in pages if page), chunk.total_compressed_size


def encode_shard(
    task: Task, shard: Shard, threads: int = 1, progress: Callable[[Progress], None] | None = None
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
    null = reader.first_null and (place[reader.first_null[0]], reader.first_null[1])
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
            first_without_text=null,
        ),
        left_out=[LeftOut(place[source], *row) for source, row in reader.bad],
        statistics=_counted(made.statistics) if settings.stats else None,
    )
    folder.write_json(shard.receipt, as_json(receipt))


def _counted(statistics: Statistics | None) -> dict[str, Any]:
    """As JSON; there are none of no text."""
    from numtok.statistics import Statistics  # takes longer to load than most starts may

    return (statistics or Statistics()).to_json()


def read_receipt(folder: Folder, plan: Plan, shard: Shard) -> Receipt | None:
    """The receipt of a shard; None if it is not done, or what there is belongs to other inputs,
    other options, or another file than the one that lies there.
    """
    try:
        receipt = folder.read_json(shard.receipt, Receipt)
    except JobError:
        return None
    expected = (plan.recipe, shard.number, plan.file(shard))
    if receipt is None or (receipt.recipe, receipt.shard, receipt.file) != expected:
        return None
    skipped = bool(receipt.left_out) and plan.options["on_error"] != "skip"
    if skipped or folder.size(plan.file(shard)) != receipt.bytes:
        return None
    if receipt.parts == shard.parts:
        return receipt
    alike = len(receipt.parts) == len(shard.parts) and all(
        _same_content(old, read, new)
        for old, read, new in zip(receipt.parts, receipt.read, shard.parts, strict=True)
    )
    return dataclasses.replace(receipt, parts=shard.parts) if alike else None


def _same_content(old: Part, read: Read, new: Part) -> bool:
    """Whether a part holds what was read, be it at another place of its file, or touched."""
    fixed = ("path", "format", "compression", "length", "column")
    return all(getattr(old, name) == getattr(new, name) for name in fixed) and (
        old == new or content_of(new)[0] == read.sha256
    )


def check_shard(folder: Folder, plan: Plan, shard: Shard, receipt: Receipt) -> str | None:
    """What is wrong with a shard that is done, or with its inputs; None if nothing is."""
    path = folder.file(receipt.file)
    if folder.sha256(receipt.file) != receipt.sha256:
        return f"{path}: is damaged: it does not have the SHA-256 of its receipt"
    if path.endswith(".parquet") and (rows := _rows(path)) != receipt.rows:
        return f"{path}: has {rows:,} rows, its receipt says {receipt.rows:,}"
    for part, read in zip(shard.parts, receipt.read, strict=True):
        if locations.exists(part.path) and content_of(part)[0] != read.sha256:
            return f"{part.path}: is not what was encoded: its content has another SHA-256"
    return None


def _rows(path: str) -> int:
    """As the footer has it."""
    return int(pq.read_metadata(locations.for_arrow(path, locations.SMALL_BLOCK)).num_rows)
