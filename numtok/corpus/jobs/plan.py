"""The plan of a job: all that its output depends on, settled once, before the first shard.

In: inputs, a tokenizer, options. Out: ``Plan``, which goes to JSON and back: the inputs with size
    and a tag that changes with their content, the shards they are cut into, every option, the
    tokenizer with its scale, the types of the columns that are kept, and the versions of what
    writes. Who has the plan and the inputs writes the same bytes, on any machine, in any order. Its
    digest is in every receipt.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from numtok import locations
from numtok.corpus.job_folder import OWN
from numtok.corpus.jobs.cut import Part
from numtok.corpus.jobs.store import digest
from numtok.corpus.read.sources import Source
from numtok.corpus.settings import EncodeSettings
from numtok.errors import InputError, JobError
from numtok.stores import objects

FORMAT = 1
METADATA_KEY = b"numtok_job"
NOT_SETTLED = ("workers", "overwrite")  # options that do not change a byte
FILE_SUFFIXES = {"parquet": ".parquet", "arrow": ".arrow"}


@dataclass(frozen=True)
class Plan:
    """See the module.

    Attributes:
        inputs: of each: path, format, compression, size, tag.
        shards: of each: its parts, as lists of the fields of :class:`numtok.corpus.jobs.cut.Part`.
        options: all that the call was given, defaults filled in, in the form in which
            :func:`numtok.encode_files` takes them from JSON.
        tokenizer: ``source``, its name, None for the default one; whether it was ``given`` as an
            object instead; ``fingerprint``, and that ``before_fit``.
        versions: of the packages that the bytes depend on.
        kept: Arrow schema of the kept columns, as an IPC message in base64.
        fit: the fields of :class:`numtok.corpus.fit.Fit`; None if no scale was fitted.
        costs: tokens per number before and after, on the first megabyte; None without numbers.
    """

    inputs: list[dict[str, Any]]
    shards: list[list[list[Any]]]
    options: dict[str, Any]
    tokenizer: dict[str, Any]
    versions: dict[str, str]
    kept: str
    fit: dict[str, Any] | None
    costs: list[float] | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "format": FORMAT,
            **{field.name: getattr(self, field.name) for field in dataclasses.fields(self)},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], where: str) -> Plan:
        """The inverse; JobError for the plan of another version of numtok."""
        if content.get("format") != FORMAT:
            raise JobError(
                f"is of another version of numtok (format {content.get('format')}); go on with that"
                " version, or begin anew with --overwrite",
                where,
            )
        return cls(**{name: value for name, value in content.items() if name != "format"})

    @functools.cached_property
    def digest(self) -> str:
        """Of all that is in it."""
        return digest(self.to_dict())

    @property
    def settings(self) -> dict[str, Any]:
        """The options that :class:`EncodeSettings` has."""
        return {
            name: value
            for name, value in self.options.items()
            if name in {field.name for field in dataclasses.fields(EncodeSettings)}
        }

    @property
    def kept_fields(self) -> list[pa.Field]:
        return list(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.kept))))

    def parts(self, shard: int) -> list[Part]:
        return [Part(*part) for part in self.shards[shard]]

    def size(self, shard: int) -> int:
        """Bytes of input."""
        return sum(part.size for part in self.parts(shard))

    def sources(self, shard: int) -> list[Source]:
        """What the shard reads, in order."""
        return [
            Source(
                given["path"],
                given["format"],
                given["compression"],
                part.size,
                part.start,
                part.stop,
            )
            for part in self.parts(shard)
            for given in [self.inputs[part.input]]
        ]

    def name(self, shard: int) -> str:
        """Of the shard's file."""
        digits = max(5, len(str(len(self.shards))))
        return f"{shard:0{digits}}-of-{len(self.shards):0{digits}}{FILE_SUFFIXES[self.options['output_format']]}"

    def receipt(self, shard: int) -> str:
        """The name of its receipt."""
        return f"{OWN}/{shard:0{max(5, len(str(len(self.shards))))}}.json"

    def metadata(self, shard: int) -> dict[bytes, bytes]:
        """What the shard's file says about where it comes from."""
        described = {
            "format": FORMAT,
            "shard": [shard, len(self.shards)],
            "inputs": [
                [self.inputs[part.input]["path"], part.start, part.stop]
                for part in self.parts(shard)
            ],
            "tokenizer": self.tokenizer,
            "versions": self.versions,
            "options": self.options,
        }
        return {METADATA_KEY: json.dumps(described, sort_keys=True, separators=(",", ":")).encode()}

    def check_inputs(self, shard: int | None = None) -> None:
        """Refuse inputs, all or those of one shard, that are not what they were.

        Raises:
            InputError: naming the first.
        """
        inputs = (
            self.inputs
            if shard is None
            else [self.inputs[part.input] for part in self.parts(shard)]
        )
        for given, (size, tag) in zip(
            inputs, identities([given["path"] for given in inputs]), strict=True
        ):
            if (size, tag) != (given["size"], given["tag"]):
                what = (
                    f"has {size:,} bytes, it had {given['size']:,}"
                    if size != given["size"]
                    else "was written to (its time of change is another)"
                )
                raise InputError(
                    f"changed since the job was planned: {what}; put it back, or begin the job anew"
                    " with --overwrite",
                    given["path"],
                )


def identify(path: str) -> tuple[int, str]:
    """(size, a tag that changes with the content) of an input."""
    if locations.is_url(path):
        found = objects.status(path)
        if found is None or found.size is None:
            raise InputError(
                "is not there; put it back, or begin the job anew with --overwrite", path
            )
        return found.size, found.tag
    try:
        file = os.stat(path)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}; put it back, or begin the job anew with"
            " --overwrite",
            path,
        ) from None
    return file.st_size, str(file.st_mtime_ns)


def identities(paths: Sequence[str]) -> list[tuple[int, str]]:
    """Those of several inputs."""
    return locations.each(identify, paths, any(map(locations.is_url, paths)))


def versions() -> dict[str, str]:
    """Of the packages that ids and files depend on."""
    found = {}
    for package in ("numtok", "pyarrow", "tokenizers", "gigatoken"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def kept_to_text(fields: Sequence[pa.Field]) -> str:
    """The inverse of :attr:`Plan.kept_fields`."""
    return base64.b64encode(pa.schema(fields).serialize().to_pybytes()).decode()


def differences(
    plan: Plan, options: Mapping[str, Any], fingerprint: str, inputs: Sequence[Source]
) -> Iterator[str]:
    """What a call asks for that the plan does not have, for people."""
    before, now = [given["path"] for given in plan.inputs], [source.path for source in inputs]
    if added := sorted(set(now) - set(before)):
        yield f"{len(added)} more inputs, such as {added[0]}"
    if missing := sorted(set(before) - set(now)):
        yield f"{len(missing)} fewer inputs, such as {missing[0]}"
    for name in sorted({*plan.options, *options}):
        old, new = (
            json.dumps(given.get(name), sort_keys=True)
            for given in (plan.options, json.loads(json.dumps(dict(options))))
        )
        if old != new:
            yield f"{name} was {_short(old)}, now it is {_short(new)}"
    if fingerprint != plan.tokenizer["before_fit"]:
        yield "the tokenizer gives other ids"
    for package, found in versions().items():
        if found != plan.versions.get(package):
            yield f"{package} was version {plan.versions.get(package)}, now it is {found}"


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
