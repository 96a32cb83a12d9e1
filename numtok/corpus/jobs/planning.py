"""What a call on a folder asks for, checked before anything is written; and the plan on the disk that
comes of it: a new one, or the one in the folder, amended where inputs were added, dropped or mended.
All that depends on the whole corpus is settled here, once: where it is cut, the types of the kept
columns, xVal's scale.
"""

from __future__ import annotations

import base64
import dataclasses
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from numtok import locations
from numtok.corpus.encode import refuse_own_names, rows_for
from numtok.corpus.fit import FIT_FILES, Fit, ScaleFit, sample_files
from numtok.corpus.jobs.card import remove_card
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
    TOKENIZER_FILES,
    Folder,
)
from numtok.corpus.jobs.plan import (
    FILE_SUFFIXES,
    Part,
    Plan,
    Shard,
    TokenizerName,
    as_json,
    saved_tokenizer,
    versions,
)
from numtok.corpus.pieces import Reader
from numtok.corpus.read.documents import check_formats
from numtok.corpus.read.find import find_inputs
from numtok.corpus.read.sources import Source, identify
from numtok.corpus.settings import EncodeSettings, ShardSettings
from numtok.corpus.split import HashRange
from numtok.corpus.write.encoded import check_options
from numtok.corpus.write.sinks import FORMATS
from numtok.errors import InputError, JobError, OutputError
from numtok.tokenizer.tokenizer import Tokenizer

SHARD_SIZE = 256 << 20
_NOT_SETTLED = ("workers", "overwrite")  # how it is done, not what


class Sharding(NamedTuple):
    """How a corpus is cut, and whose share this is."""

    shards: int | None = None  # how many there should be
    shard_size: int | None = None  # or how many bytes of input in each
    share: tuple[int, int] | None = None  # (i, n): every n-th from the i-th on, counted from 1
    ray: str | None = None  # the address of the Ray cluster that does them
    card: bool = False  # whether the folder gets a README.md

    def check(self) -> None:
        """Raise InputError if it makes no sense."""
        for name in ("shards", "shard_size"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or not 0 < value < 1 << 62):
                raise InputError(f"{name}={value!r} must be a whole number from 1 on")
        if self.shards is not None and self.shard_size is not None:
            raise InputError(
                "shards and shard_size both say how large a shard is; leave out one of them"
            )
        if self.share is not None and not 1 <= self.share[0] <= self.share[1]:
            i, n = self.share
            raise InputError(f"shard={i}/{n} must be one of 1/{n} to {n}/{n}")

    def for_split(self, documents: HashRange) -> Sharding:
        """Return the sharding of one split: no card, and files of about the same size."""
        share = float(documents.high - documents.low)
        if self.shards is not None:
            return self._replace(card=False, shards=max(1, round(self.shards * share)))
        size = min(int((self.shard_size or SHARD_SIZE) / share), (1 << 62) - 1)
        return self._replace(card=False, shard_size=size)


class Encoder(NamedTuple):
    """What encodes."""

    tokenizer: Tokenizer  # with the representations that were asked for
    source: Any = None  # that it was made of: a name, an object, or None for the default one
    engine: str = "auto"
    fit: ScaleFit | None = None  # how to find its scale, if it has none


ENDS = tuple(suffix for one in FORMATS.values() for suffix in one.suffixes)  # of files


def is_folder(output: str | Path, sharding: Sharding, settings: EncodeSettings) -> bool:
    """Whether the output is a folder of shards: its name ends in a slash, it is there, or the
    options say so; OutputError if they do, but it is named like a file. Workers say so of a name
    without a suffix.
    """
    name, asked = os.fspath(output), sharding != Sharding()
    named_like_one = name.lower().endswith(ENDS)
    if name.endswith(("/", os.sep)):
        return True
    if not (locations.is_url(name) and named_like_one) and locations.is_folder(name):
        return True
    like_a_file = name == "-" or named_like_one or locations.is_file(name)
    if asked and like_a_file:
        raise OutputError(
            f"{name} is a file, or named like one, but the options for shards are for a"
            " folder; name one, as in out/"
        )
    by_workers = settings.workers is not None and settings.output_format is None
    return asked or (by_workers and not like_a_file and not os.path.splitext(name)[1])


@dataclass(frozen=True)
class Request:
    """What encodes which inputs, in the order of their paths, into which shards."""

    sources: Sequence[Source]
    encoder: Encoder
    settings: ShardSettings
    sharding: Sharding

    @property
    def options(self) -> dict[str, Any]:
        """All that changes the output, JSON-ready, by the names of encode_files."""
        given = dataclasses.asdict(self.settings)
        tokenizer, fit = self.encoder.tokenizer, self.encoder.fit
        if self.settings.delimiter is None:  # as in the plans of versions without that option
            del given["delimiter"]
        return {name: value for name, value in given.items() if name not in _NOT_SETTLED} | {
            "keep_columns": list(self.settings.keep_columns),
            "output_format": self.settings.output_format or "parquet",
            "numbers": [representation.to_dict() for representation in tokenizer.representations],
            "grammar": tokenizer.grammar.to_dict(),
            "leading_space": tokenizer.leading_space,
            "engine": self.encoder.engine,
            "fit": fit is not None,
            "fit_quantile": fit and fit.quantile,
            "clip": fit and fit.clip,
            "card": self.sharding.card,
            "shards": self.sharding.shards,
            "shard_size": None if self.sharding.shards else self.sharding.shard_size or SHARD_SIZE,
        }


def make_request(
    inputs: Sequence[str | Path], encoder: Encoder, settings: ShardSettings, sharding: Sharding
) -> Request:
    """The request, checked as far as that goes without reading the inputs."""
    sharding.check()
    kind = settings.output_format or "parquet"
    if kind not in FILE_SUFFIXES:
        raise OutputError(f"unknown output format {kind!r}; choose {' or '.join(FILE_SUFFIXES)}")
    check_options(f"shard{FILE_SUFFIXES[kind]}", kind, settings.compression)
    refuse_own_names(settings.keep_columns, encoder.tokenizer)
    schema = encoder.tokenizer.batch_schema(settings.keep_text, settings.add_special_tokens)
    rows_for(settings, schema, encoder.tokenizer)
    sources = sorted(find_inputs(inputs, settings.input_format), key=lambda source: source.path)
    check_formats(sources, settings.text_unit, settings.delimiter)
    for source in sources:
        if source.path == "-" or source.size is None:
            message = (
                "cannot be cut into shards, nor read again after a kill; save it to a file first,"
                " or write one file instead of a folder"
            )
            raise InputError(message, source.name)
    return Request(sources, encoder, settings, sharding)


def refuse_inputs_within(sources: Sequence[Source], folder: str) -> None:
    """``OutputError`` if an input lies in the folder that is written."""

    def resolved(path: str) -> str:
        return path if locations.is_url(path) else os.path.realpath(path)

    for source in sources:
        if resolved(source.path).startswith(resolved(folder).rstrip("/") + "/"):
            raise OutputError(
                f"{source.path} is an input, but lies in the output folder {folder}; choose another"
                " folder"
            )


# The plan
# -------------------------------------------------------------------------------------------------


def planned(
    folder: Folder, request: Request, claims: Claims, overwrite: bool
) -> tuple[Plan, Tokenizer]:
    """The plan of the job, and its tokenizer; for who holds the claim on the plan. JobError if the
    folder holds another job, or if others work by a plan that would have to change.
    """
    if overwrite:
        _refuse_beside_others(folder, claims)
        _clear(folder)
    plan = folder.read_json(PLAN, Plan)
    if plan is None:
        return _new(folder, request)
    before_fit = request.encoder.tokenizer.fingerprint
    if different := list(plan.differences(request.options, before_fit)):
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
    for name, claim in claims.sweep(folder.names(OWN))[0].items():
        if claim.error is None and name != "plan":
            raise JobError(
                f"another run is working on this folder ({claim}), and by other inputs or options;"
                " wait until it ends, or stop it: what it has finished stays",
                str(folder),
            )


def _clear(folder: Folder) -> None:
    """Remove what a job left; the plan late, so that it can be resumed up to there."""
    receipts = [f"{OWN}/{name}" for name in folder.names(OWN) if re.fullmatch(r"\d+\.json", name)]
    shards = [name for name in folder.names() if SHARD.fullmatch(name)]
    remove_card(folder)
    for name in (MANIFEST, QUARANTINE, *receipts, *shards, PLAN, TOKENIZER):
        folder.remove(name)


def _new(folder: Folder, request: Request) -> tuple[Plan, Tokenizer]:
    if strangers := [name for name in folder.names() if name.endswith(DATA)]:
        raise OutputError(
            f"{folder} holds {strangers[0]}, which would be read as a part of the corpus, but there"
            " is no plan of a job; choose another folder, move the file away, or remove shards of"
            " an earlier job with overwrite=True"
        )
    sources, options, encoder = request.sources, request.options, request.encoder
    total = sum(source.size or 0 for source in sources)
    count = options["shards"] or max(1, -(-total // options["shard_size"]))
    kept = pa.schema(_kept_fields(request)).serialize().to_pybytes()
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
        kept=base64.b64encode(kept).decode(),
        fit=None if fit is None else fit.to_json(),
    )
    folder.refuse_links(*TOKENIZER_FILES)
    tokenizer.save_pretrained(folder.file(TOKENIZER))
    folder.write_json(PLAN, as_json(plan))
    return plan, tokenizer


def _amended(plan: Plan, request: Request) -> Plan:
    """The plan for the inputs as they are now: new ones in shards of their own behind the others."""
    before = defaultdict(list)
    for shard in plan.shards:
        for part in shard.parts:
            before[part.path].append(part)
    now: dict[Part, Part | None] = {}
    added: dict[Source, str] = {}
    for source, tag in zip(request.sources, _tags(request.sources), strict=True):
        if parts := sorted(before[source.path], key=lambda part: part.start):
            again = cut_again(parts, source, tag, request.settings.text_column)
            now.update(zip(parts, again, strict=True))
        else:
            added[source] = tag
    shards = []
    for shard in plan.shards:
        if there := [new for old in shard.parts if (new := now.get(old)) is not None]:
            shards.append(Shard(shard.number, there))
    if added:
        count = max(1, -(-sum(source.size or 0 for source in added) // plan.shard_bytes))
        first = 1 + max((shard.number for shard in plan.shards), default=-1)
        shards += _shards(first, request, list(added), list(added.values()), count)
    options = plan.options | {name: request.options[name] for name in ("on_error", "card")}
    return dataclasses.replace(plan, shards=shards, options=options)


def _shards(
    first: int, request: Request, sources: Sequence[Source], tags: Sequence[str], count: int
) -> list[Shard]:
    how = request.settings
    made = cut(sources, tags, count, how.text_unit, how.text_column)
    return [Shard(first + place, parts) for place, parts in enumerate(made)]


def _tags(sources: Sequence[Source]) -> list[str]:
    remote = any(locations.is_url(source.path) for source in sources)
    return locations.each(lambda source: identify(source.path)[1], sources, remote)


def _fitted(request: Request) -> tuple[Tokenizer, Fit | None]:
    """The tokenizer with its scale, and what that was found on."""
    tokenizer, fit = request.encoder.tokenizer, request.encoder.fit
    if fit is None:
        return tokenizer, None
    batches = sample_files(request.sources, _reader(request).how)
    scaled, found = fit(tokenizer.representations, tokenizer.grammar, batches)
    return tokenizer.with_options(scaled), found


def _kept_fields(request: Request) -> list[pa.Field]:
    """The types of the kept columns, by the first input that can be read; a column that is not
    there is an error now, not one in every shard.
    """
    pieces, kept = _reader(request).with_kept_columns(request.settings.keep_columns)
    next((piece for piece in pieces if len(piece.batch.texts)), None)
    return kept


def _reader(request: Request) -> Reader:
    """Of what is settled on a sample; the shard that has a row that cannot be read says why."""
    how = dataclasses.replace(request.settings, on_error="skip")
    return Reader(request.sources[:FIT_FILES], how)
