"""From what a call asks for to a plan: the one in the folder, if it is the same job, or a new one.

In: a :class:`numtok.corpus.jobs.request.Request`. Out: a ``Plan`` on the disk, with the tokenizer
    beside it, and that tokenizer. All that depends on the whole
corpus is settled here: where it is cut, the types of the kept columns (those of the first batch),
    xVal's scale (by a sample from all over the inputs).
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from numtok import locations
from numtok.corpus.fit import Fit, sample_files
from numtok.corpus.job_folder import DATA, MANIFEST, OWN, PLAN, TOKENIZER
from numtok.corpus.jobs.cut import cut
from numtok.corpus.jobs.plan import Plan, differences, identities, kept_to_text, versions
from numtok.corpus.jobs.request import Request
from numtok.corpus.jobs.shards import read_plan, saved_tokenizer
from numtok.corpus.jobs.store import Folder
from numtok.corpus.pieces import Reader
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.parts import group_sizes
from numtok.corpus.read.sources import Source
from numtok.corpus.summary import SAMPLE_BYTES, Summary
from numtok.errors import InputError, JobError, OutputError, RepresentationError
from numtok.tokenizer.tokenizer import Tokenizer

Item = TypeVar("Item")

_SHARD = re.compile(r"\d{5,}-of-\d{5,}\.(parquet|arrow)")
_RECEIPT = re.compile(r"\d{5,}\.json")


def planned(folder: Folder, request: Request, overwrite: bool) -> tuple[Plan, Tokenizer]:
    """The plan of the job, and its tokenizer.

    Raises:
        JobError: if the folder holds another job, naming what differs.
        InputError: if an input changed.
    """
    if overwrite:
        clear(folder)
    plan = read_plan(folder)
    if plan is None:
        return _new(folder, request)
    different = list(
        differences(plan, request.options, request.encoder.tokenizer.fingerprint, request.sources)
    )
    if different:
        raise JobError(
            f"holds another job: {'; '.join(different)}. Choose another folder, or begin this one"
            " anew with --overwrite",
            str(folder),
        )
    plan.check_inputs()
    return plan, saved_tokenizer(folder, plan)


def clear(folder: Folder) -> None:
    """Remove what a job left; the plan last, so that it can be resumed up to there."""
    own = folder.names(OWN)
    folder.remove(MANIFEST)
    for name in own:
        if _RECEIPT.fullmatch(name):
            folder.remove(f"{OWN}/{name}")
    for name in folder.names():
        if _SHARD.fullmatch(name):
            folder.remove(name)
    folder.remove(PLAN)
    folder.remove(TOKENIZER)


def _new(folder: Folder, request: Request) -> tuple[Plan, Tokenizer]:
    if strangers := [name for name in folder.names() if name.endswith(DATA)]:
        raise OutputError(
            f"{folder} holds {strangers[0]}, which would be read as a part of the corpus, but there"
            " is no plan of a job; choose another folder, move the file away, or remove shards of"
            " an earlier job with --overwrite"
        )
    plan, tokenizer = make_plan(request)
    tokenizer.save_pretrained(folder.file(TOKENIZER))
    folder.write_json(PLAN, plan.to_dict())
    return plan, tokenizer


def make_plan(request: Request) -> tuple[Plan, Tokenizer]:
    """The plan, and the tokenizer with its scale."""
    sources, settings, tokenizer = request.sources, request.settings, request.encoder.tokenizer
    options = request.options
    count = options["shards"] or max(
        1, -(-sum(source.size or 0 for source in sources) // options["shard_size"])
    )
    shards = cut(sources, count, settings.text_unit)
    inputs = _described(sources)
    for number in {part.input for parts in shards for part in parts if part.stop is not None}:
        if FORMATS[sources[number].format].cut == "row groups":
            inputs[number]["row_groups"] = len(group_sizes(sources[number]))
    reader = Reader(sources, dataclasses.replace(settings, on_error="skip"))
    pieces, kept = reader.with_kept_columns(settings.keep_columns)
    first = list(
        itertools.islice(pieces, 1)
    )  # columns that are not there are an error now, not one in every shard
    found: Fit | None = None
    if request.encoder.fit is not None:
        scaled, found = request.encoder.fit(
            tokenizer.representations,
            tokenizer.grammar,
            _readable(sample_files(sources, **reader.how)),
        )
        tokenizer = tokenizer.with_options(scaled)
    for _ in _readable(itertools.chain(first, pieces)):
        if sum(texts.nbytes for texts in reader.sampled) >= SAMPLE_BYTES:
            break
    summary = Summary()
    with contextlib.suppress(
        RepresentationError
    ):  # of a number that must be held; the shard that has it says which
        summary.costs(reader.sampled, tokenizer)
    plan = Plan(
        inputs=inputs,
        shards=[[list(part) for part in parts] for parts in shards],
        options=options,
        tokenizer={
            "source": request.encoder.source,
            "given": request.encoder.given,
            "fingerprint": tokenizer.fingerprint,
            "before_fit": request.encoder.tokenizer.fingerprint,
        },
        versions=versions(),
        kept=kept_to_text(kept),
        fit=None if found is None else vars(found) | {"xval": found.xval.to_dict()},
        costs=(
            None
            if summary.tokens_before is None or summary.tokens_after is None
            else [summary.tokens_before, summary.tokens_after]
        ),
    )
    return plan, tokenizer


def _readable(items: Iterable[Item]) -> Iterator[Item]:
    """The items up to one that cannot be read; the shard that has it says why."""
    with contextlib.suppress(InputError):
        yield from items


def _described(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """The inputs as the plan has them."""
    found = identities([source.path for source in sources])
    return [
        {
            "path": source.path,
            "format": source.format,
            "compression": source.compression,
            "size": size,
            "tag": tag,
        }
        for source, (size, tag) in zip(sources, found, strict=True)
    ]


def refuse_inputs_within(sources: Sequence[Source], folder: Folder) -> None:
    """``OutputError`` if an input lies in the folder that is written."""
    for source in sources:
        if locations.within(source.path, folder.path):
            raise OutputError(
                f"{source.path} is an input, but lies in the output folder {folder}; choose another"
                " folder"
            )
