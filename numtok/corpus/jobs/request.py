"""Read what a call asks a job for: which inputs, encoded by what, into which shards."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from numtok import storage
from numtok.corpus.encode import refuse_own_names, rows_for
from numtok.corpus.fit import ScaleFit
from numtok.corpus.read.documents import check_formats
from numtok.corpus.read.find import find_inputs
from numtok.corpus.read.sources import Source
from numtok.corpus.settings import EncodeSettings, ShardSettings
from numtok.corpus.split import HashRange
from numtok.corpus.write.encoded import check_options
from numtok.corpus.write.sinks import FORMATS
from numtok.errors import InputError, OutputError
from numtok.tokenizer.tokenizer import Tokenizer

SHARD_SIZE = 256 << 20
FILE_SUFFIXES = {"parquet": ".parquet", "arrow": ".arrow"}
# how it is done, not what
_NOT_PLANNED = ("workers", "overwrite", "on_error")


class Sharding(NamedTuple):
    """Options that say how a corpus is cut into shards, and which of them this run encodes."""

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
    """Tokenizer that encodes, with its engine and what is left to fit."""

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
    if not (storage.is_url(name) and named_like_one) and storage.is_folder(name):
        return True
    like_a_file = name == "-" or named_like_one or storage.is_file(name)
    if asked and like_a_file:
        raise OutputError(
            f"{name} is a file, or named like one, but the options for shards are for a"
            " folder; name one, as in out/"
        )
    by_workers = settings.workers is not None and settings.output_format is None
    return asked or (by_workers and not like_a_file and not os.path.splitext(name)[1])


@dataclass(frozen=True)
class Request:
    """Request for a job: what encodes which inputs, in the order of their paths, into which shards."""

    sources: Sequence[Source]
    encoder: Encoder
    settings: ShardSettings
    sharding: Sharding

    @property
    def options(self) -> dict[str, Any]:
        """Return all that changes the output, JSON-ready, by the names of encode_files."""
        given = dataclasses.asdict(self.settings)
        tokenizer, fit = self.encoder.tokenizer, self.encoder.fit
        if self.settings.delimiter is None:  # as in the plans of versions without that option
            del given["delimiter"]
        return {name: value for name, value in given.items() if name not in _NOT_PLANNED} | {
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
    """Return the request, checked as far as that goes without reading the inputs."""
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
    """Raise ``OutputError`` if an input lies in the folder that is written."""

    def resolved(path: str) -> str:
        return path if storage.is_url(path) else os.path.realpath(path)

    for source in sources:
        if resolved(source.path).startswith(resolved(folder).rstrip("/") + "/"):
            raise OutputError(
                f"{source.path} is an input, but lies in the output folder {folder}; choose another"
                " folder"
            )
