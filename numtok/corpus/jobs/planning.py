"""From a request to the plan on the disk: a new one, or the one in the folder, amended where inputs
were added, dropped or mended. All that depends on the whole corpus is settled here, once: where it
is cut, the types of the kept columns, xVal's scale.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from numtok import locations
from numtok.corpus.fit import FIT_FILES, Fit, sample_files
from numtok.corpus.jobs import folder as names
from numtok.corpus.jobs.card import remove_card
from numtok.corpus.jobs.claims import Claims
from numtok.corpus.jobs.cut import cut, cut_again
from numtok.corpus.jobs.folder import MANIFEST, OWN, PLAN, TOKENIZER, Folder
from numtok.corpus.jobs.plan import (
    Part,
    Plan,
    Shard,
    TokenizerName,
    as_json,
    differences,
    read_plan,
    versions,
)
from numtok.corpus.jobs.request import Request
from numtok.corpus.jobs.shards import saved_tokenizer
from numtok.corpus.pieces import Reader
from numtok.corpus.read.batches import ReadOptions
from numtok.corpus.read.jsonl import columns_of_head
from numtok.corpus.read.sources import Source, identify
from numtok.corpus.shuffle import in_random_order
from numtok.errors import InputError, JobError, OutputError
from numtok.tokenizer.tokenizer import Tokenizer

Item = TypeVar("Item")
STRETCHES = 16  # of the inputs in each shard, from random places, where documents are shuffled


def planned(
    folder: Folder, request: Request, claims: Claims, overwrite: bool
) -> tuple[Plan, Tokenizer]:
    """The plan of the job, and its tokenizer; for who holds the claim on the plan. JobError if the
    folder holds another job, or if others work by a plan that would have to change.
    """
    if overwrite:
        _refuse_beside_others(folder, claims)
        _clear(folder)
    plan = read_plan(folder)
    if plan is None:
        return _new(folder, request)
    if different := list(differences(plan, request.options, request.encoder.tokenizer.fingerprint)):
        raise JobError(
            f"holds another job: {'; '.join(different)}. Choose another folder, or begin this one"
            " anew with overwrite=True",
            str(folder),
        )
    amended = _amended(plan, request)
    if amended != plan:
        _refuse_beside_others(folder, claims)
        folder.remove(MANIFEST)
        left = {shard.number for shard in amended.shards}
        for shard in plan.shards:
            if shard.number not in left:
                folder.remove(shard.receipt)
                folder.remove(plan.file(shard))
        folder.write_json(PLAN, as_json(amended))
    return amended, saved_tokenizer(folder, amended)


def _refuse_beside_others(folder: Folder, claims: Claims) -> None:
    """``JobError`` if somebody works in the folder."""
    for name, claim in claims.sweep(folder.names(OWN))[0].items():
        if claim.error is None and name != "plan":
            raise JobError(
                f"another run is working on this folder ({claim}), and by other inputs or options;"
                " wait until it ends, or stop it: what it has finished stays",
                str(folder),
            )


def _clear(folder: Folder) -> None:
    """Remove what a job left; the plan last, so that it can be resumed up to there."""
    receipts = [f"{OWN}/{name}" for name in folder.names(OWN) if re.fullmatch(r"\d+\.json", name)]
    shards = [name for name in folder.names() if names.SHARD.fullmatch(name)]
    remove_card(folder)
    for name in (MANIFEST, names.QUARANTINE, *receipts, *shards, PLAN, TOKENIZER):
        folder.remove(name)


def _new(folder: Folder, request: Request) -> tuple[Plan, Tokenizer]:
    if strangers := [name for name in folder.names() if name.endswith(names.DATA)]:
        raise OutputError(
            f"{folder} holds {strangers[0]}, which would be read as a part of the corpus, but there"
            " is no plan of a job; choose another folder, move the file away, or remove shards of"
            " an earlier job with overwrite=True"
        )
    sources, options, encoder = request.sources, request.options, request.encoder
    total = sum(source.size or 0 for source in sources)
    count = options["shards"] or max(1, -(-total // options["shard_size"]))
    kept = base64.b64encode(pa.schema(_kept_fields(request)).serialize().to_pybytes()).decode()
    tokenizer, fit = _fitted(request)
    named = isinstance(encoder.source, str | Path)
    plan = Plan(
        shards=_shards(0, request, sources, _tags(sources), count),
        shard_bytes=max(1, -(-total // count)),
        options=options,
        tokenizer=TokenizerName(
            source=str(encoder.source) if named else None,
            given=not named and encoder.source is not None,
            fingerprint=tokenizer.fingerprint,
            before_fit=encoder.tokenizer.fingerprint,
        ),
        versions=versions(),
        kept=kept,
        fit=None if fit is None else fit.to_json(),
    )
    tokenizer.save_pretrained(folder.file(TOKENIZER))
    folder.write_json(PLAN, as_json(plan))
    return plan, tokenizer


def _amended(plan: Plan, request: Request) -> Plan:
    """The plan for the inputs as they are now: mended ones are cut again where they were cut
    before, dropped ones leave their shards, new ones get shards after all others.
    """
    before: dict[str, list[Part]] = defaultdict(list)
    for shard in plan.shards:
        for part in shard.parts:
            before[part.path].append(part)
    for parts in before.values():
        parts.sort(key=lambda part: part.start)
    added, tags = [], []
    now: dict[Part, Part] = {}
    for source, tag in zip(request.sources, _tags(request.sources), strict=True):
        parts = before.get(source.path, [])
        if not parts:
            added.append(source)
            tags.append(tag)
        elif _as_planned(parts[0], source, tag):
            now.update(zip(parts, parts, strict=True))
        else:
            again = zip(parts, cut_again(parts, source, tag), strict=True)
            now.update({old: _with_column(new, request) for old, new in again if new is not None})
    shards = []
    for shard in plan.shards:
        if kept := [now[part] for part in shard.parts if part in now]:
            shards.append(Shard(shard.number, kept))
    if added:
        count = max(1, -(-sum(source.size or 0 for source in added) // plan.shard_bytes))
        first = 1 + max((shard.number for shard in plan.shards), default=-1)
        shards += _shards(first, request, added, tags, count)
    options = plan.options | {name: request.options[name] for name in ("on_error", "card")}
    return dataclasses.replace(plan, shards=shards, options=options)


def _as_planned(part: Part, source: Source, tag: str) -> bool:
    now = (source.format, source.compression, source.size, tag)
    return (part.format, part.compression, part.size, part.tag) == now


def _shards(
    first: int, request: Request, sources: Sequence[Source], tags: Sequence[str], count: int
) -> list[Shard]:
    seed = request.settings.shuffle
    stretches = 1 if seed is None else STRETCHES
    made = cut(sources, tags, count * stretches, request.settings.text_unit)
    if seed is not None:
        order = in_random_order(made, seed)
        dealt = (order[place::count] for place in range(min(count, len(order))))
        made = [list(itertools.chain.from_iterable(some)) for some in dealt]
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


# What is settled on a sample; the shard that has a row that cannot be read says why
# -------------------------------------------------------------------------------------------------


def _reader(request: Request, sources: Sequence[Source]) -> Reader:
    return Reader(sources, dataclasses.replace(request.settings, on_error="skip"))


def _readable(items: Iterable[Item]) -> Iterator[Item]:
    """The items up to one that cannot be read."""
    with contextlib.suppress(InputError):
        yield from items


def _fitted(request: Request) -> tuple[Tokenizer, Fit | None]:
    """The tokenizer with its scale, and what that was found on."""
    tokenizer, fit = request.encoder.tokenizer, request.encoder.fit
    if fit is None:
        return tokenizer, None
    how = _reader(request, request.sources).how
    texts = _readable(sample_files(request.sources, how))
    scaled, found = fit(tokenizer.representations, tokenizer.grammar, texts)
    return tokenizer.with_options(scaled), found


def _kept_fields(request: Request) -> list[pa.Field]:
    """The types of the kept columns, by the first input that can be read; a column that is not
    there is an error now, not one in every shard.
    """
    first: InputError | None = None
    for source in request.sources[:FIT_FILES]:
        try:
            pieces, kept = _reader(request, [source]).with_kept_columns(
                request.settings.keep_columns
            )
            if any(len(piece.batch.texts) for piece in pieces):
                return kept
        except InputError as error:
            first = first or error
    if first is not None:
        raise first
    return [pa.field(name, pa.string()) for name in request.settings.keep_columns]
