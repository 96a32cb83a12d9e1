"""From what a call asks for to a plan: a new one, or the one in the folder, amended where inputs
were added, dropped or mended.

In: a :class:`numtok.corpus.jobs.request.Request`. Out: a ``Plan`` on the disk, with the tokenizer
    beside it, and that tokenizer. All that depends on the whole corpus is settled here, once: where
    it is cut, the types of the kept columns, xVal's scale (by a sample from all over the inputs).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from numtok import locations
from numtok.corpus.fit import FIT_FILES, Fit, sample_files
from numtok.corpus.jobs.claims import Claims
from numtok.corpus.jobs.cut import cut, cut_again
from numtok.corpus.jobs.folder import (
    DATA,
    MANIFEST,
    OWN,
    PLAN,
    QUARANTINE,
    SHARD,
    TOKENIZER,
    Folder,
)
from numtok.corpus.jobs.plan import (
    Part,
    Plan,
    Shard,
    TokenizerName,
    as_json,
    differences,
    kept_to_text,
    read_plan,
    versions,
)
from numtok.corpus.jobs.request import Request
from numtok.corpus.jobs.shards import saved_tokenizer
from numtok.corpus.pieces import Reader
from numtok.corpus.read.batches import ReadOptions
from numtok.corpus.read.jsonl import columns_of_head
from numtok.corpus.read.sources import Source, identify
from numtok.corpus.settings import EncodeSettings
from numtok.corpus.summary import SAMPLE_BYTES, Summary
from numtok.errors import InputError, JobError, OutputError, RepresentationError
from numtok.tokenizer.tokenizer import Tokenizer

Item = TypeVar("Item")

_RECEIPT = re.compile(r"\d{5,}\.json")


def planned(
    folder: Folder, request: Request, claims: Claims, overwrite: bool
) -> tuple[Plan, Tokenizer]:
    """The plan of the job, and its tokenizer; for who holds the claim on the plan.

    Raises:
        JobError: if the folder holds another job, naming what differs; or if others work by a plan
            that would have to change.
    """
    if overwrite:
        _refuse_beside_others(folder, claims)
        clear(folder)
    plan = read_plan(folder)
    if plan is None:
        return _new(folder, request)
    if different := list(differences(plan, request.options, request.encoder.tokenizer.fingerprint)):
        raise JobError(
            f"holds another job: {'; '.join(different)}. Choose another folder, or begin this one"
            " anew with overwrite=True",
            str(folder),
        )
    amended = amend(plan, request)
    if amended != plan:
        _refuse_beside_others(folder, claims)
        folder.remove(MANIFEST)
        for shard in {shard.number: shard for shard in plan.shards}.values():
            if shard.number not in {one.number for one in amended.shards}:
                folder.remove(shard.receipt)
                folder.remove(plan.file(shard))
        folder.write_json(PLAN, as_json(amended))
    return amended, saved_tokenizer(folder, amended)


def _refuse_beside_others(folder: Folder, claims: Claims) -> None:
    """``JobError`` if somebody works in the folder."""
    for name, claim in claims.sweep()[0].items():
        if claim.error is None and name != "plan":
            raise JobError(
                f"another run is working on this folder ({claim}), and by other inputs or options;"
                " wait until it ends, or stop it: what it has finished stays",
                str(folder),
            )


def clear(folder: Folder) -> None:
    """Remove what a job left; the plan last, so that it can be resumed up to there."""
    for name in (MANIFEST, QUARANTINE):
        folder.remove(name)
    for name in folder.names(OWN):
        if _RECEIPT.fullmatch(name):
            folder.remove(f"{OWN}/{name}")
    for name in filter(SHARD.fullmatch, folder.names()):
        folder.remove(name)
    folder.remove(PLAN)
    folder.remove(TOKENIZER)


def _new(folder: Folder, request: Request) -> tuple[Plan, Tokenizer]:
    if strangers := [name for name in folder.names() if name.endswith(DATA)]:
        raise OutputError(
            f"{folder} holds {strangers[0]}, which would be read as a part of the corpus, but there"
            " is no plan of a job; choose another folder, move the file away, or remove shards of"
            " an earlier job with overwrite=True"
        )
    plan, tokenizer = make_plan(request)
    tokenizer.save_pretrained(folder.file(TOKENIZER))
    folder.write_json(PLAN, as_json(plan))
    return plan, tokenizer


def make_plan(request: Request) -> tuple[Plan, Tokenizer]:
    """The plan, and the tokenizer with its scale."""
    tokenizer, options = request.encoder.tokenizer, request.options
    total = sum(source.size or 0 for source in request.sources)
    count = options["shards"] or max(1, -(-total // options["shard_size"]))
    kept = _kept_fields(request)
    found: Fit | None = None
    if request.encoder.fit is not None:
        texts = _readable(sample_files(request.sources, **_how(request)))
        scaled, found = request.encoder.fit(tokenizer.representations, tokenizer.grammar, texts)
        tokenizer = tokenizer.with_options(scaled)
    plan = Plan(
        shards=_shards(0, request, request.sources, _tags(request.sources), count),
        shard_bytes=max(1, -(-total // count)),
        options=options,
        tokenizer=TokenizerName(
            request.encoder.source,
            request.encoder.given,
            tokenizer.fingerprint,
            request.encoder.tokenizer.fingerprint,
        ),
        versions=versions(),
        kept=kept_to_text(kept),
        fit=None if found is None else vars(found) | {"xval": found.xval.to_dict()},
        costs=_costs(request, tokenizer),
    )
    return plan, tokenizer


def amend(plan: Plan, request: Request) -> Plan:
    """The plan for the inputs as they are now: mended ones are cut again where they were cut
    before, dropped ones leave their shards, new ones get shards behind all others.
    """
    before: dict[str, list[tuple[int, Part]]] = defaultdict(list)
    for shard in plan.shards:
        for part in shard.parts:
            before[part.path].append((shard.number, part))
    tags = dict(zip(request.sources, _tags(request.sources), strict=True))
    changed: dict[tuple[int, str], Part | None] = {}
    for source, tag in tags.items():
        parts = [part for _, part in before.get(source.path, [])]
        if parts and not _as_planned(parts[0], source, tag):
            again = cut_again(parts, source, tag)
            for (number, _), new in zip(before[source.path], again, strict=True):
                changed[number, source.path] = new and _with_column(new, request)
    there = {source.path for source in request.sources}
    shards = []
    for shard in plan.shards:
        now = [changed.get((shard.number, part.path), part) for part in shard.parts]
        if kept := [part for part in now if part is not None and part.path in there]:
            shards.append(Shard(shard.number, kept))
    added = [source for source in request.sources if source.path not in before]
    if added:
        count = max(1, -(-sum(source.size or 0 for source in added) // plan.shard_bytes))
        first = 1 + max((shard.number for shard in plan.shards), default=-1)
        shards += _shards(first, request, added, [tags[source] for source in added], count)
    options = plan.options | {"on_error": request.options["on_error"]}
    return dataclasses.replace(plan, shards=shards, options=options)


def _as_planned(part: Part, source: Source, tag: str) -> bool:
    now = (source.format, source.compression, source.size, tag)
    return (part.format, part.compression, part.size, part.tag) == now


def _shards(
    first: int, request: Request, sources: Sequence[Source], tags: Sequence[str], count: int
) -> list[Shard]:
    made = cut(sources, tags, count, request.settings.text_unit)
    return [
        Shard(first + place, [_with_column(part, request) for part in parts])
        for place, parts in enumerate(made)
    ]


def _with_column(part: Part, request: Request) -> Part:
    """The same with the text column, where that is settled by what lies before the part."""
    if part.format != "jsonl" or not part.start:
        return part
    with contextlib.suppress(InputError):
        options = ReadOptions(request.settings.text_column, on_error="skip")
        columns = columns_of_head(part.source, options)
        return part._replace(column=columns.text if columns else None)
    return part


def _tags(sources: Sequence[Source]) -> list[str]:
    remote = any(locations.is_url(source.path) for source in sources)
    return locations.each(lambda source: identify(source.path)[1], sources, remote)


def _how(request: Request) -> dict[str, object]:
    return Reader(request.sources, _lenient(request.settings)).how


def _lenient(settings: EncodeSettings) -> EncodeSettings:
    """A row that cannot be read is told by the shard that has it."""
    return dataclasses.replace(settings, on_error="skip")


def _kept_fields(request: Request) -> list[pa.Field]:
    """The types of the kept columns, by the first input that can be read; a column that is not
    there is an error now, not one in every shard.
    """
    first: InputError | None = None
    for source in request.sources[:FIT_FILES]:
        reader = Reader([source], _lenient(request.settings))
        try:
            pieces, kept = reader.with_kept_columns(request.settings.keep_columns)
            if any(len(piece.batch.texts) for piece in pieces):
                return kept
        except InputError as error:
            first = first or error
    if first is not None:
        raise first
    return [pa.field(name, pa.string()) for name in request.settings.keep_columns]


def _costs(request: Request, tokenizer: Tokenizer) -> tuple[float, float] | None:
    """Tokens per number before and after, on the first megabyte."""
    reader, texts = Reader(request.sources[:FIT_FILES], _lenient(request.settings)), 0
    pieces, _ = reader.with_kept_columns(())
    for piece in _readable(pieces):
        texts += piece.batch.texts.nbytes
        if texts >= SAMPLE_BYTES:
            break
    summary = Summary()
    with contextlib.suppress(RepresentationError):  # the shard that has such a number says which
        summary.costs(reader.sampled, tokenizer)
    if summary.tokens_before is None or summary.tokens_after is None:
        return None
    return summary.tokens_before, summary.tokens_after


def _readable(items: Iterable[Item]) -> Iterator[Item]:
    """The items up to one that cannot be read; the shard that has it says why."""
    with contextlib.suppress(InputError):
        yield from items


def refuse_inputs_within(sources: Sequence[Source], folder: Folder) -> None:
    """``OutputError`` if an input lies in the folder that is written."""
    root = folder.path if folder.remote else os.path.realpath(folder.path)
    for source in sources:
        path = source.path if locations.is_url(source.path) else os.path.realpath(source.path)
        if path.startswith(root.rstrip("/") + "/"):
            raise OutputError(
                f"{source.path} is an input, but lies in the output folder {folder}; choose another"
                " folder"
            )
