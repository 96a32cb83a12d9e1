"""The plan of a job, and the receipts, by which a shard is done: who has the plan and the inputs
writes the same bytes, on any machine, in any order. A shard has all that is to be known of its own
inputs, so that a plan can be amended: the receipts of shards that nothing concerns stay.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.ipc

from numtok import locations
from numtok.corpus.fit import Fit
from numtok.corpus.jobs.folder import FORMAT, OWN, TOKENIZER, TOKENIZER_FILES, Folder, digest
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.sources import COMPRESSIONS, Source, identify, named_errors
from numtok.corpus.settings import ShardSettings
from numtok.errors import JobError, MissingInputError, NumtokError
from numtok.numbers.grammar import Grammar
from numtok.representations import Representation, from_dict
from numtok.tokenizer.tokenizer import Tokenizer

METADATA_KEY = b"numtok_job"
FILE_SUFFIXES = {"parquet": ".parquet", "arrow": ".arrow"}
# options that do not change a byte of a shard that is done
FREE = ("on_error", "card", "shards", "shard_size", "engine", "fit", "fit_quantile", "clip")
_LARGEST = 1 << 62
_CHUNK = 1 << 20


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
            if identify(part.path) != (part.size, part.tag):
                raise MissingInputError(
                    "changed since the job was planned; run the same command again, which encodes"
                    " anew what has changed",
                    part.path,
                )


@dataclass(frozen=True)
class TokenizerName:
    """What the tokenizer was made of."""

    source: str | None  # its name, None for the default one
    given: bool  # whether it was an object instead
    fingerprint: str
    before_fit: str  # the fingerprint


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

    def settings(self, **others: Any) -> ShardSettings:
        """The options that :class:`ShardSettings` has."""
        own = {field.name for field in dataclasses.fields(ShardSettings)}
        return ShardSettings(
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

    def differences(self, options: Mapping[str, Any], before_fit: str) -> Iterator[str]:
        """What a call asks for that would make other bytes of every shard, for people."""
        asked = json.loads(json.dumps(dict(options)))
        for name in sorted({*self.options, *asked} - {"on_error", "card", "engine"}):
            old, new = (json.dumps(one.get(name), sort_keys=True) for one in (self.options, asked))
            if old != new:
                yield f"{name} was {old:.80}, now it is {new:.80}"
        if before_fit != self.tokenizer.before_fit:
            yield "the tokenizer gives other ids"
        for package, found in versions().items():
            if found != self.versions.get(package):
                yield f"{package} was version {self.versions.get(package)}, now it is {found}"


def as_json(content: Any) -> dict[str, Any]:
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


def versions() -> dict[str, str]:
    """Of the packages that ids and files depend on."""
    found = {}
    for package in ("numtok", "pyarrow", "tokenizers", "gigatoken"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def saved_tokenizer(folder: Folder, plan: Plan) -> Tokenizer:
    """The tokenizer of a job, with its scale; JobError if it is not the one that was planned with."""
    path = folder.file(TOKENIZER)
    folder.refuse_links(*TOKENIZER_FILES)
    tokenizer = Tokenizer.from_pretrained(path, engine=plan.options["engine"])
    if tokenizer.fingerprint != plan.tokenizer.fingerprint:
        raise JobError(
            "is not the tokenizer that the job was planned with; put it back, or begin the job anew"
            " with overwrite=True",
            path,
        )
    return tokenizer


# Receipts
# -------------------------------------------------------------------------------------------------


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
    numbers_by_column: dict[str, int] = field(default_factory=dict)  # of a template
    left_by_column: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Receipt:
    """That a shard is done: what it read, and the file that came of it; no time and no name of a
    machine, so that it is the same whoever wrote it.
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
    format: Literal[2] = 2

    def __post_init__(self) -> None:
        """ValueError for what does not fit together."""
        parts = {one.part for one in self.left_out}
        if self.report.first_without_text is not None:
            parts.add(self.report.first_without_text[0])
        if len(self.read) != len(self.parts) or not parts <= set(range(len(self.parts))):
            raise ValueError("read: not one for each part")


def summed(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The counts added up, those by representation for each."""
    totals: dict[str, Any] = {}
    for name in reports[0] if reports else ():
        counts = [report[name] for report in reports]
        by_name = isinstance(counts[0], dict)
        totals[name] = dict(sum(map(Counter, counts), Counter[str]())) if by_name else sum(counts)
    return totals


def content_of(part: Part) -> tuple[str, int]:
    """(SHA-256, line breaks) of the bytes of a part; of an object in a store, of its tag."""
    if locations.is_url(part.path):
        told = f"{part.size} {part.tag} {part.start} {part.stop}"
        return hashlib.sha256(told.encode()).hexdigest(), 0
    made, lines, cut = hashlib.sha256(), 0, FORMATS[part.format].cut
    stretches = [(part.start, _LARGEST if part.stop is None else part.stop - part.start)]
    with named_errors(part.source), open(part.path, "rb") as file:
        if part.stop is not None and cut == "row groups":
            import pyarrow.parquet as pq  # which other files do not need

            metadata = pq.read_metadata(part.path)
            made.update(metadata.schema.to_arrow_schema().serialize())
            stretches = [
                _stretch(metadata.row_group(group).column(column))
                for group in range(part.start, min(part.stop, metadata.num_row_groups))
                for column in range(metadata.num_columns)
            ]
        for start, left in stretches:
            file.seek(start)
            while chunk := file.read(min(_CHUNK, left)):
                made.update(chunk)
                lines += chunk.count(b"\n") if cut == "lines" else 0
                left -= len(chunk)
    return made.hexdigest(), lines


def _stretch(chunk: Any) -> tuple[int, int]:
    """Where a column of a row group lies in its file, and its bytes."""
    pages = [chunk.data_page_offset, chunk.dictionary_page_offset]
    return min(page for page in pages if page), chunk.total_compressed_size


def read_receipt(folder: Folder, plan: Plan, shard: Shard) -> Receipt | None:
    """The receipt of a shard; None if it is not done, or what there is belongs to other inputs,
    other options, or another file than the one that lies there. If the same content lies at other
    places now, the receipt is written anew.
    """
    try:
        receipt = folder.read_json(shard.receipt, Receipt)
    except JobError:
        return None
    expected = (plan.recipe, shard.number, plan.file(shard))
    if receipt is None or (receipt.recipe, receipt.shard, receipt.file) != expected:
        return None
    skipped = bool(receipt.left_out) and plan.options["on_error"] != "skip"
    if skipped or folder.size(receipt.file) != receipt.bytes:
        return None
    if receipt.parts != shard.parts:
        if len(receipt.parts) != len(shard.parts) or not all(
            map(_same_content, receipt.parts, receipt.read, shard.parts)
        ):
            return None
        receipt = dataclasses.replace(receipt, parts=shard.parts)
        folder.write_json(shard.receipt, as_json(receipt))
    return receipt


def _same_content(old: Part, read: Read, new: Part) -> bool:
    """Whether a part holds what was read, be it at another place of its file, or touched."""
    fixed = ("path", "format", "compression", "length", "column")
    return all(getattr(old, name) == getattr(new, name) for name in fixed) and (
        old == new or content_of(new)[0] == read.sha256
    )


def check_shard(folder: Folder, receipt: Receipt) -> str | None:
    """What is wrong with a shard that is done, or with its inputs; None if nothing is."""
    path = folder.file(receipt.file)
    with locations.open_file(path) as file:
        found = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]  # it can be read into
    if found.hexdigest() != receipt.sha256:
        return f"{path}: is damaged: it does not have the SHA-256 of its receipt"
    for part, read in zip(receipt.parts, receipt.read, strict=True):
        if locations.exists(part.path) and content_of(part)[0] != read.sha256:
            return f"{part.path}: is not what was encoded: its content has another SHA-256"
    return None
