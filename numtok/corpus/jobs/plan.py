"""The plan of a job, and the receipts, by which a shard is done: who has the plan and the inputs
writes the same bytes, on any machine, in any order. A shard has all that is to be known of its own
inputs, so that a plan can be amended: the receipts of shards that nothing concerns stay.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.ipc

from numtok.corpus.fit import Fit
from numtok.corpus.jobs.folder import OWN, PLAN, Folder, digest
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.sources import COMPRESSIONS, Source, identify
from numtok.corpus.settings import EncodeSettings
from numtok.errors import JobError, MissingInputError, NumtokError
from numtok.numbers.grammar import Grammar
from numtok.representations import Representation, from_dict

FORMAT = 2
METADATA_KEY = b"numtok_job"
FILE_SUFFIXES = {"parquet": ".parquet", "arrow": ".arrow"}
# options that do not change a byte of a shard that is done
FREE = ("on_error", "card", "shards", "shard_size", "engine", "fit", "fit_quantile", "clip")
_LARGEST = 1 << 62


class Part(NamedTuple):
    """A stretch of one input, or all of it."""

    path: str
    format: str
    compression: str | None
    size: int  # of all of the input, when it was planned
    tag: str  # of the same; it changes with the content
    start: int  # byte of a file of lines, row group of a Parquet file
    stop: int | None  # None for a file that is not cut
    length: int  # in bytes, as stored
    mark: int = 0  # of the bytes from ``start`` on, by which the place is found again
    column: str | None = None  # of JSON lines that are cut: the text column, by the file's head

    @property
    def source(self) -> Source:
        """To be read."""
        return Source(self.path, self.format, self.compression, self.length, self.start, self.stop)

    def check(self) -> None:
        """Raise ValueError for what no plan of ours holds."""
        known = self.format in FORMATS and self.compression in (None, *COMPRESSIONS.values())
        stop = self.start + 1 if self.stop is None else self.stop
        numbers = (self.size, self.start, stop, self.length)
        if not known or not all(0 <= number < _LARGEST for number in numbers) or self.start > stop:
            raise ValueError(f"{self.path!r} cannot be read like that")


class Shard(NamedTuple):
    """What one file of the output is made of."""

    number: int
    parts: list[Part]

    @property
    def name(self) -> str:
        """Of its receipt and its claim."""
        return f"{self.number:06}"

    @property
    def receipt(self) -> str:
        """Where its receipt is."""
        return f"{OWN}/{self.name}.json"

    @property
    def size(self) -> int:
        """Bytes of input."""
        return sum(part.length for part in self.parts)

    def check_inputs(self) -> None:
        """``MissingInputError`` for the first that is not what it was when it was planned."""
        for part in self.parts:
            size, tag = identify(part.path)
            if (size, tag) != (part.size, part.tag):
                raise MissingInputError(
                    "changed since the job was planned; run the same command again, which encodes"
                    " anew what has changed",
                    part.path,
                )


@dataclass(frozen=True)
class Plan:
    """See the module."""

    shards: list[Shard]  # in the order of the rows; numbers rise, with gaps for dropped inputs
    shard_bytes: int  # about how much input a shard has
    options: dict[str, Any]  # all that the call was given, defaults filled in, JSON-ready
    tokenizer: TokenizerName
    versions: dict[str, str]  # of the packages that the bytes depend on
    kept: str  # Arrow schema of the kept columns, as an IPC message in base64
    fit: dict[str, Any] | None  # :class:`numtok.corpus.fit.Fit` as JSON
    format: Literal[2] = 2

    def __post_init__(self) -> None:
        """ValueError for what no plan of ours holds."""
        numbers_of(self.options)
        try:
            self.settings()
            base64.b64decode(self.kept, validate=True)
            FILE_SUFFIXES[self.options["output_format"]]
            if missing := {"engine", "on_error"} - {*self.options}:
                raise LookupError(f"without {sorted(missing)[0]}")
            if self.fit is not None:
                Fit.from_json(self.fit)
        except (NumtokError, TypeError, LookupError, AttributeError, ValueError) as error:
            raise ValueError(f"holds options that make no sense ({error})") from None
        if [shard.number for shard in self.shards] != sorted({one.number for one in self.shards}):
            raise ValueError("shards: their numbers do not rise")
        for shard in self.shards:
            if not shard.parts or not 0 <= shard.number < _LARGEST:
                raise ValueError(f"shards: number {shard.number} is empty, or no number")
            for part in shard.parts:
                part.check()

    def settings(self, **others: Any) -> EncodeSettings:
        """The options that :class:`EncodeSettings` has."""
        own = {field.name for field in dataclasses.fields(EncodeSettings)}
        return EncodeSettings(
            **{name: value for name, value in self.options.items() if name in own} | others
        )

    @property
    def kept_fields(self) -> list[pa.Field]:
        return list(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.kept))))

    @property
    def paths(self) -> list[str]:
        """Of the inputs, sorted."""
        return sorted({part.path for shard in self.shards for part in shard.parts})

    def share(self, share: tuple[int, int]) -> list[Shard]:
        """(i, n): every n-th shard from the i-th on, counted from 1."""
        return self.shards[share[0] - 1 :: share[1]]

    def file(self, shard: Shard) -> str:
        """The name of the shard's file."""
        return shard.name + FILE_SUFFIXES[self.options["output_format"]]

    @functools.cached_property
    def bound(self) -> dict[str, Any]:
        """What every byte of a shard depends on besides its inputs; no name of a folder is in it."""
        return {
            "format": FORMAT,
            "tokenizer": self.tokenizer.fingerprint,
            "versions": self.versions,
            "options": {name: one for name, one in self.options.items() if name not in FREE},
        }

    @functools.cached_property
    def recipe(self) -> str:
        """The digest of that, and of the kept columns."""
        return digest([self.bound, self.kept])

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """What a shard's file says about how it was made."""
        return {METADATA_KEY: json.dumps(self.bound, sort_keys=True).encode()}


@dataclass(frozen=True)
class TokenizerName:
    """What the tokenizer was made of."""

    source: str | None  # its name, None for the default one
    given: bool  # whether it was an object instead
    fingerprint: str
    before_fit: str  # the fingerprint


class Read(NamedTuple):
    """What a shard has read of one of its parts: the SHA-256 of its bytes (of an object in a store
    its tag), lines, and rows, those that were left out too.
    """

    sha256: str
    lines: int
    rows: int


class LeftOut(NamedTuple):
    """A row that was left out: of which part, on which of its lines, and why."""

    part: int
    line: int | None
    error: str


@dataclass(frozen=True)
class Counts:
    """What is added up over shards; and [part, row] of the first document without a text."""

    documents: int
    bytes: int
    tokens: int
    numbers: int
    left_as_text: dict[str, int]
    clipped: dict[str, int]
    vanishing: dict[str, int]
    in_added_tokens: int
    without_text: int
    cut_numbers: int
    first_without_text: tuple[int, int] | None


@dataclass(frozen=True)
class Receipt:
    """That a shard is done: what it read, and the file that came of it. It holds no time and no
    name of a machine, so that it is the same whoever wrote it.
    """

    shard: int
    parts: list[Part]
    read: list[Read]
    recipe: str
    file: str
    bytes: int
    sha256: str
    rows: int
    report: Counts
    left_out: list[LeftOut]
    statistics: dict[str, Any] | None = None
    format: Literal[2] = 2

    def __post_init__(self) -> None:
        """ValueError for what does not fit together."""
        parts = {one.part for one in self.left_out}
        if self.report.first_without_text is not None:
            parts.add(self.report.first_without_text[0])
        if len(self.read) != len(self.parts) or not parts <= set(range(len(self.parts))):
            raise ValueError("read: not one for each part")


def read_plan(folder: Folder) -> Plan | None:
    """The plan of the job in a folder; None if there is none, JobError if it is damaged."""
    found = folder.read_json(PLAN, dict)
    if found is not None and found["format"] != FORMAT:
        raise JobError(
            "was begun by an earlier version of numtok; go on with that version, or begin anew"
            " with overwrite=True",
            str(folder),
        )
    return None if found is None else folder.read_json(PLAN, Plan)


def as_json(content: Plan | Receipt) -> dict[str, Any]:
    """JSON-ready."""
    import msgspec  # takes longer to load than most starts may

    return msgspec.to_builtins(content)  # type: ignore[no-any-return,unused-ignore]


def numbers_of(options: Mapping[str, Any]) -> tuple[list[Representation], Grammar]:
    """The representations and the grammar of a job; ValueError if they make no sense."""
    try:
        numbers = [from_dict(one) for one in options["numbers"]]
        return numbers, Grammar.from_dict(options["grammar"])
    except (NumtokError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"holds options that make no sense ({error})") from None


def summed(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The counts added up, those by representation for each."""
    totals: dict[str, Any] = {}
    for name in reports[0] if reports else ():
        counts = [report[name] for report in reports]
        by_name = isinstance(counts[0], dict)
        totals[name] = dict(sum(map(Counter, counts), Counter[str]())) if by_name else sum(counts)
    return totals


def versions() -> dict[str, str]:
    """Of the packages that ids and files depend on."""
    found = {}
    for package in ("numtok", "pyarrow", "tokenizers", "gigatoken"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def differences(plan: Plan, options: Mapping[str, Any], before_fit: str) -> Iterator[str]:
    """What a call asks for that would make other bytes of every shard, for people."""
    asked = json.loads(json.dumps(dict(options)))
    defaults = vars(EncodeSettings.of_shards())
    later = {name for name, value in asked.items() if value == defaults.get(name)} - {*plan.options}
    for name in sorted({*plan.options, *asked} - {"on_error", "card", "engine"} - later):
        old, new = (json.dumps(given.get(name), sort_keys=True) for given in (plan.options, asked))
        if old != new:
            yield f"{name} was {_short(old)}, now it is {_short(new)}"
    if before_fit != plan.tokenizer.before_fit:
        yield "the tokenizer gives other ids"
    for package, found in versions().items():
        if found != plan.versions.get(package):
            yield f"{package} was version {plan.versions.get(package)}, now it is {found}"


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
