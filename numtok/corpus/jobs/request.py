"""Read what a call asks a job for: which inputs, encoded by what, into which shards."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numtok import storage
from numtok.corpus.encode import refuse_own_names, rows_for
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.fit import ScaleFit
from numtok.corpus.read.documents import check_formats
from numtok.corpus.read.find import find_inputs
from numtok.corpus.read.sources import Source
from numtok.corpus.split import HashRange
from numtok.corpus.summary import SHARD_BATCH_BYTES
from numtok.corpus.write.encoded import check_options
from numtok.errors import InputError, OutputError
from numtok.tokenizer.tokenizer import Tokenizer

SHARD_SIZE = 256 << 20
FILE_SUFFIXES = {"parquet": ".parquet", "arrow": ".arrow"}
# how a job is done, not what it writes; or told by others that are planned
_NOT_PLANNED = (
    *("workers", "overwrite", "on_error", "progress", "ray", "shard"),
    *("tokenizer", "overflow", "dense", "scale", "split"),
)


@dataclass(frozen=True)
class Request:
    """Request for a job: what encodes which inputs, in the order of their paths, into which shards."""

    sources: Sequence[Source]
    tokenizer: Tokenizer  # with the representations that were asked for
    options: EncodeOptions
    fit: ScaleFit | None = None  # how to find the scale, if there is none
    hash_range: str | None = None  # of the documents of a split; None for all documents

    @property
    def planned(self) -> dict[str, Any]:
        """Return all that changes the output, JSON-ready, by the names of encode_files."""
        options, tokenizer, fit = self.options, self.tokenizer, self.fit
        planned = {one.name: getattr(options, one.name) for one in dataclasses.fields(options)}
        for name in _NOT_PLANNED:
            del planned[name]
        if options.delimiter is None:  # as in the plans of versions without that option
            del planned["delimiter"]
        return planned | {
            "keep_columns": list(options.keep_columns),
            "output_format": options.output_format or "parquet",
            "hash_range": self.hash_range,
            "numbers": [representation.to_dict() for representation in tokenizer.representations],
            "grammar": tokenizer.grammar.to_dict(),
            "leading_space": tokenizer.leading_space,
            "fit": fit is not None,
            "fit_quantile": fit and fit.quantile,
            "clip": fit and fit.clip,
            "shard_size": None if options.shards else options.shard_size or SHARD_SIZE,
        }

    @property
    def documents(self) -> HashRange | None:
        """The documents that are encoded; None for all."""
        bounds = self.hash_range
        return None if bounds is None else HashRange.parse(bounds, self.options.split_seed)


def make_request(
    inputs: Sequence[str | Path],
    tokenizer: Tokenizer,
    options: EncodeOptions,
    fit: ScaleFit | None = None,
    hash_range: str | None = None,
) -> Request:
    """Return the request, checked as far as that goes without reading the inputs."""
    batch_bytes = options.batch_bytes or SHARD_BATCH_BYTES
    options = dataclasses.replace(options, batch_bytes=batch_bytes)
    kind = options.output_format or "parquet"
    if kind not in FILE_SUFFIXES:
        raise OutputError(f"unknown output format {kind!r}; choose {' or '.join(FILE_SUFFIXES)}")
    check_options(f"shard{FILE_SUFFIXES[kind]}", kind, options.compression)
    refuse_own_names(options.keep_columns, tokenizer)
    schema = tokenizer.batch_schema(options.keep_text, options.add_special_tokens)
    rows_for(options, schema, tokenizer)
    sources = sorted(find_inputs(inputs, options.input_format), key=lambda source: source.path)
    check_formats(sources, options.text_unit, options.delimiter)
    for source in sources:
        if source.path == "-" or source.size is None:
            message = (
                "cannot be cut into shards, nor read again after a kill; save it to a file first,"
                " or write one file instead of a folder"
            )
            raise InputError(message, source.name)
    return Request(sources, tokenizer, options, fit, hash_range)


def refuse_inputs_within(sources: Sequence[Source], folder: str) -> None:
    """Raise ``OutputError`` if an input lies in the folder that is written."""

    def resolved(path: str) -> str:
        return path if storage.is_url(path) else os.path.realpath(path)

    for source in sources:
        if resolved(source.path).startswith(storage.join(resolved(folder), "")):
            raise OutputError(
                f"{source.path} is an input, but lies in the output folder {folder}; choose another"
                " folder"
            )
