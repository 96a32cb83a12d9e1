"""The plan of a job: its inputs cut into shards, and everything that changes a byte of the output.
Who has the plan and the inputs writes the same bytes, on any machine, in any order.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.ipc

from numtok import storage
from numtok.arrays.cached import cached_property
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.fit import FIT_FILES, Fit, sample_files
from numtok.corpus.jobs.folder import (
    DATA,
    FORMAT,
    MANIFEST,
    OWN,
    PLAN,
    QUARANTINE,
    SHARD,
    TOKENIZER,
    TOKENIZER_FILES,
    Folder,
    digest,
)
from numtok.corpus.jobs.request import FILE_SUFFIXES, Part, Request, cut, cut_again
from numtok.corpus.pipeline import Reader
from numtok.corpus.read.sources import Source, identify
from numtok.corpus.split import HashRange
from numtok.errors import JobError, MissingInputError, NumtokError, OutputError, TokenizerError
from numtok.numbers.grammar import Grammar
from numtok.representations import Representation, from_dict
from numtok.tokenizer.tokenizer import Tokenizer

METADATA_KEY = b"numtok_job"
# options that do not change a byte of a shard
FREE = ("card", "shards", "shard_size", "engine", "fit", "fit_quantile", "clip")
OF_TOKENIZER = ("numbers", "grammar", "leading_space")  # what also changes its fingerprint


class Shard(NamedTuple):
    """The inputs of one file of the output."""

    number: int
    parts: list[Part]

    @property
    def name(self) -> str:
        """The name of the receipt, without a suffix."""
        return f"{self.number:05}"

    @property
    def receipt(self) -> str:
        """The path of the receipt in the folder."""
        return f"{OWN}/{self.name}.json"

    @property
    def size(self) -> int:
        """Bytes of input."""
        return sum(part.length for part in self.parts)

    def check_inputs(self) -> None:
        """Raise ``MissingInputError`` for the first that is not what it was when it was planned."""
        for part in self.parts:
            if identify(part.path) != (part.size, part.tag):
                raise MissingInputError(
                    "changed since the job was planned; run the same command again, which encodes"
                    " the file anew",
                    part.path,
                )


@dataclass(frozen=True)
class TokenizerName:
    """The tokenizer, by what it was made of."""

    source: str | None  # its name, None for the default one
    given: bool  # whether it was an object instead
    fingerprint: str
    before_fit: str  # the fingerprint


@dataclass(frozen=True)
class Plan:
    """Plan of a job: its shards, and all that their bytes depend on."""

    shards: list[Shard]  # in the order of the rows
    options: dict[str, Any]  # all that the call was given, defaults filled in, JSON-ready
    tokenizer: TokenizerName
    versions: dict[str, str]  # of the packages that the bytes depend on
    kept: str  # Arrow schema of the kept columns, as an IPC message in base64
    fit: dict[str, Any] | None  # :class:`numtok.corpus.fit.Fit` as JSON
    format: Literal[3] = 3

    def __post_init__(self) -> None:
        """Raise ValueError for options that no call of numtok has."""
        try:
            self.encode_options()
            self.documents()
            self.numbers()
            Grammar.from_dict(self.options["grammar"])
            base64.b64decode(self.kept, validate=True)
            FILE_SUFFIXES[self.options["output_format"]]
            self.options["engine"]
            if self.fit is not None:
                Fit.from_json(self.fit)
        except (NumtokError, TypeError, LookupError, AttributeError, ValueError) as error:
            raise ValueError(f"holds options that make no sense ({error})") from None

    def encode_options(self, **others: Any) -> EncodeOptions:
        """Return the options of the shards. The tokenizer, which is saved, has those of numbers."""
        names = {one.name for one in dataclasses.fields(EncodeOptions)}
        names -= {"numbers", "grammar", "split_seed"}
        planned = {name: value for name, value in self.options.items() if name in names}
        return EncodeOptions(**planned | others)

    def documents(self) -> HashRange | None:
        """Return which documents are encoded; None for all."""
        return HashRange.parse(self.options["hash_range"], self.options["split_seed"])

    def numbers(self) -> list[Representation]:
        """Return the representations, before they were fitted."""
        return [from_dict(one) for one in self.options["numbers"]]

    @property
    def kept_fields(self) -> list[pa.Field]:
        """The columns that are kept."""
        return list(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.kept))))

    @property
    def paths(self) -> list[str]:
        """The paths of the inputs, sorted."""
        return sorted({part.path for shard in self.shards for part in shard.parts})

    def share(self, share: tuple[int, int] | None) -> list[Shard]:
        """Return every n-th shard from the i-th on, counted from 1, of a share (i, n); or all."""
        i, n = share or (1, 1)
        return self.shards[i - 1 :: n]

    def file(self, shard: Shard) -> str:
        """Return the name of the shard's file, as in ``00003-of-00128.parquet``."""
        width = max(5, len(str(len(self.shards))))
        name = f"{shard.number:0{width}}-of-{len(self.shards):0{width}}"
        return name + FILE_SUFFIXES[self.options["output_format"]]

    @cached_property
    def bound(self) -> dict[str, Any]:
        """Return all that the bytes of a shard depend on besides its inputs; it names no folder."""
        return {
            "format": FORMAT,
            "tokenizer": self.tokenizer.fingerprint,
            "versions": self.versions,
            "options": {name: one for name, one in self.options.items() if name not in FREE},
        }

    def key(self, shard: Shard) -> str:
        """Return the digest of all that a shard is made of: the options, and of each input the path,
        the size, the time of its change, and the part that is read.
        """
        return digest([digest([self.bound, self.kept]), as_json(shard.parts)])

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """Return what a shard's file says about how it was made."""
        return {METADATA_KEY: json.dumps(self.bound, sort_keys=True).encode()}

    def differences(self, request: Request) -> Iterator[str]:
        """Yield what a call asks for that this plan does not make, for people."""
        requested = json.loads(json.dumps(request.planned))
        for name in sorted({*self.options, *requested} - {"card", "engine"}):
            yield from _changes(name, self.options.get(name), requested.get(name))
        same = all(self.options[name] == requested[name] for name in OF_TOKENIZER)
        if same and request.tokenizer.fingerprint != self.tokenizer.before_fit:
            yield "the tokenizer gives other ids"
        for package, installed in versions().items():
            if installed != self.versions.get(package):
                yield f"{package} was version {self.versions.get(package)}, now it is {installed}"
        now, before = {source.path for source in request.sources}, {*self.paths}
        for paths, what in ((now - before, "is new"), (before - now, "is no input any more")):
            if paths:
                more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
                yield f"{min(paths)}{more} {what}"


def _changes(name: str, old: Any, new: Any) -> Iterator[str]:
    """Yield how an option differs, such as ``keep_text was true, now it is false``."""
    if name == "numbers":
        before, now = (",".join(from_dict(one).spec() for one in numbers) for numbers in (old, new))
        if before != now:
            yield f"numbers was {before}, now it is {now}"
        else:
            for one, other in zip(old, new, strict=True):
                yield from _changes(one["name"], one, other)
    elif isinstance(old, dict) and isinstance(new, dict):
        for field in sorted({*old, *new}):
            yield from _changes(f"{field} of {name}", old.get(field), new.get(field))
    elif old != new:
        yield f"{name} was {json.dumps(old):.80}, now it is {json.dumps(new):.80}"


def as_json(content: Any) -> Any:
    """Return a plan, a receipt or a part of one as JSON-ready values."""
    import msgspec  # takes longer to load than most starts may

    return msgspec.to_builtins(content)


def versions() -> dict[str, str]:
    """Return the versions of the packages that ids and files depend on."""
    installed = {}
    for package in ("numtok", "pyarrow", "tokenizers", "gigatoken"):
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            installed[package] = "unknown"
    return installed


def saved_tokenizer(folder: Folder, plan: Plan) -> Tokenizer:
    """Return the tokenizer of a job, with its scale; JobError if it is damaged, or not the one that
    was planned with.
    """
    path = folder.file(TOKENIZER)
    folder.refuse_links(*TOKENIZER_FILES)
    problem = ""
    try:
        tokenizer = Tokenizer.from_pretrained(path, engine=plan.options["engine"])
        if tokenizer.fingerprint == plan.tokenizer.fingerprint:
            return tokenizer
    except TokenizerError as error:
        problem = f" ({error})"
    raise JobError(
        f"is damaged, or not the tokenizer that the job was planned with{problem}; run the same job"
        " again, which writes it anew",
        path,
    )


# Made once, and loaded by every other call
# -------------------------------------------------------------------------------------------------


def load_or_make(folder: Folder, request: Request, overwrite: bool) -> tuple[Plan, Tokenizer]:
    """Return the plan of the job and its tokenizer. JobError if the folder holds another job."""
    if overwrite:
        _clear(folder)
    plan = folder.read_json(PLAN, Plan)
    if plan is None:
        return _make(folder, request)
    if different := list(plan.differences(request)):
        raise JobError(
            f"holds another job: {'; '.join(different)}. Choose another folder, or begin this one"
            " anew with overwrite=True (--overwrite)",
            str(folder),
        )
    current = _with_current_inputs(plan, request)
    if current != plan:
        folder.remove(MANIFEST)
        folder.write_json(PLAN, as_json(current))
    tokenizer = request.tokenizer
    if plan.fit is not None:
        scaled = Fit.from_json(plan.fit).put_into(tokenizer.representations)
        tokenizer = tokenizer.with_options(scaled)
    _save(tokenizer, folder)
    return current, tokenizer


def _save(tokenizer: Tokenizer, folder: Folder) -> None:
    folder.refuse_links(*TOKENIZER_FILES)
    tokenizer.save_pretrained(folder.file(TOKENIZER))


def _clear(folder: Folder) -> None:
    """Remove what a job left; the plan late, so that it can be resumed up to there."""
    receipts = [f"{OWN}/{name}" for name in folder.names(OWN) if re.fullmatch(r"\d+\.json", name)]
    shards = [name for name in folder.names() if SHARD.fullmatch(name)]
    for name in (MANIFEST, QUARANTINE, *receipts, *shards, PLAN, TOKENIZER):
        folder.remove(name)


def _make(folder: Folder, request: Request) -> tuple[Plan, Tokenizer]:
    if foreign := [name for name in folder.names() if name.endswith(DATA)]:
        raise OutputError(
            f"{folder} holds {foreign[0]}, which would be read as a part of the corpus, but there"
            " is no plan of a job; choose another folder, move the file away, or remove shards of"
            " an earlier job with overwrite=True (--overwrite)"
        )
    sources, planned, source = request.sources, request.planned, request.options.tokenizer
    total = sum(source.size or 0 for source in sources)
    count = planned["shards"] or max(1, -(-total // planned["shard_size"]))
    kept = pa.schema(_kept_fields(request)).serialize().to_pybytes()
    tokenizer, fit = _fitted(request)
    named = isinstance(source, str | Path)
    parts = cut(sources, _tags(sources), count, request.options.text_unit)
    plan = Plan(
        shards=[Shard(number, some) for number, some in enumerate(parts)],
        options=planned,
        tokenizer=TokenizerName(
            source=str(source) if named else None,
            given=not named and source is not None,
            fingerprint=tokenizer.fingerprint,
            before_fit=request.tokenizer.fingerprint,
        ),
        versions=versions(),
        kept=base64.b64encode(kept).decode(),
        fit=None if fit is None else fit.to_json(),
    )
    _save(tokenizer, folder)
    folder.write_json(PLAN, as_json(plan))
    return plan, tokenizer


def _with_current_inputs(plan: Plan, request: Request) -> Plan:
    """Return the plan with the inputs as they are now: one that has changed is cut again into as many
    parts, which lie in the same shards.
    """
    before: dict[str, list[Part]] = defaultdict(list)
    for shard in plan.shards:
        for part in shard.parts:
            before[part.path].append(part)
    now = {}
    for source, tag in zip(request.sources, _tags(request.sources), strict=True):
        parts = before[source.path]
        changed = (parts[0].size, parts[0].tag) != (source.size, tag)
        unit = request.options.text_unit
        now[source.path] = iter(cut_again(source, tag, len(parts), unit) if changed else parts)
    shards = [
        Shard(shard.number, [next(now[part.path]) for part in shard.parts]) for shard in plan.shards
    ]
    options = plan.options | {"card": request.options.card}
    return dataclasses.replace(plan, shards=shards, options=options)


def _tags(sources: Sequence[Source]) -> list[str]:
    remote = any(storage.is_url(source.path) for source in sources)
    return storage.each(lambda source: identify(source.path)[1], sources, remote)


def _fitted(request: Request) -> tuple[Tokenizer, Fit | None]:
    """Return the tokenizer with its scale, and what that was found on."""
    tokenizer, fit = request.tokenizer, request.fit
    if fit is None:
        return tokenizer, None
    batches = sample_files(request.sources, _reader(request).options)
    scaled, found_on = fit(tokenizer.representations, tokenizer.grammar, batches)
    return tokenizer.with_options(scaled), found_on


def _kept_fields(request: Request) -> list[pa.Field]:
    """Return the types of the kept columns, by the first input that can be read; a column that is not
    there is an error now, not one in every shard.
    """
    chunks, kept = _reader(request).with_kept_columns(request.options.keep_columns)
    next((chunk for chunk in chunks if len(chunk.batch.texts)), None)
    return kept


def _reader(request: Request) -> Reader:
    """Return what reads a sample; the shard that has a row that cannot be read says why."""
    options = dataclasses.replace(request.options, on_error="skip")
    documents = HashRange.parse(request.hash_range, options.split_seed)
    return Reader(request.sources[:FIT_FILES], options, documents)
