"""Read what a call asks a job for: which inputs, encoded by what; and cut the inputs into shards.

A plain file of lines is cut where a line begins, a Parquet file between row groups; all others stay
whole. A part belongs to the shard in which its middle lies, the inputs being laid end to end, so
that shards are of about one size.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from numtok import storage
from numtok.corpus.encode import refuse_own_names, rows_for
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.fit import ScaleFit
from numtok.corpus.read.documents import (
    INPUT_FORMATS,
    check_formats,
    find_inputs,
    group_sizes,
    line_start,
)
from numtok.corpus.read.sources import Source
from numtok.corpus.summary import SHARD_BATCH_BYTES
from numtok.corpus.write import check_options
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


Span = tuple[int, int | None, int]  # start, stop, bytes


class Part(NamedTuple):
    """A part of one input, or all of it."""

    path: str
    format: str
    compression: str | None
    size: int  # of all of the input, when it was planned
    tag: str  # of the same; it changes with the content
    start: int  # byte of a file of lines, row group of a Parquet file
    stop: int | None  # None for a file that is not cut
    length: int  # in bytes, as stored

    @property
    def source(self) -> Source:
        """The part as an input."""
        return Source(self.path, self.format, self.compression, self.length, self.start, self.stop)


def cut(
    sources: Sequence[Source], tags: Sequence[str], count: int, text_unit: str
) -> list[list[Part]]:
    """Return the parts of each of at most ``count`` shards, which together hold each input exactly
    once; ``text_unit="file"`` keeps text files whole.
    """
    total = sum(source.size or 0 for source in sources)
    shards: dict[int, list[Part]] = {}
    done = 0
    for source, tag in zip(sources, tags, strict=True):
        stop = done + (source.size or 0)
        numbers = range(done * count // total, stop * count // total + 2) if total else ()
        ends = [end for k in numbers if done < (end := total * k // count) < stop]
        pieces: dict[int, list[Span]] = {}
        for span in _spans(source, [end - done for end in ends], text_unit):
            twice_middle = 2 * done + span[2]
            done += span[2]
            place = min(twice_middle * count // (2 * total), count - 1) if total else 0
            pieces.setdefault(place, []).append(span)
        for place, some in pieces.items():
            joined = (some[0][0], some[-1][1], sum(length for _, _, length in some))
            shards.setdefault(place, []).append(_part(source, tag, joined))
    return [shards[place] for place in sorted(shards)]


def cut_again(source: Source, tag: str, count: int, text_unit: str) -> list[Part]:
    """Return so many parts of a file that has changed since it was cut into as many; the last ones
    are empty where there is too little to cut.
    """
    parts = [part for shard in cut([source], [tag], count, text_unit) for part in shard]
    return parts + [_part(source, tag, (0, 0, 0))] * (count - len(parts))


def _spans(source: Source, inner: Sequence[int], text_unit: str) -> list[Span]:
    """Return the spans that the file is cut into; ``inner`` are the bytes where it should be cut."""
    size = source.size or 0
    kind = None if source.compression or not inner else INPUT_FORMATS[source.format].cut
    if kind == "lines" and not (source.format == "txt" and text_unit == "file"):
        starts = sorted({0, *(line_start(source.path, at, size) for at in inner)} - {size})
        if len(starts) > 1:
            bounds = itertools.pairwise([*starts, size])
            return [(start, stop, stop - start) for start, stop in bounds]
    if kind == "row groups" and len(ends := _group_ends(source)) > 2:
        groups = enumerate(itertools.pairwise(ends))
        return [(number, number + 1, end - start) for number, (start, end) in groups]
    return [(0, None, size)]


def _group_ends(source: Source) -> list[int]:
    """Return where row groups would end if the file had nothing else; just 0 for a damaged one."""
    with contextlib.suppress(InputError):
        groups = group_sizes(source)
        size, total = source.size or 0, max(sum(groups), 1)
        return [0, *(size * done // total for done in itertools.accumulate(groups))]
    return [0]


def _part(source: Source, tag: str, span: Span) -> Part:
    return Part(source.path, source.format, source.compression, source.size or 0, tag, *span)
