"""``numtok encode`` as one call: everything may be given by name, as on the command line.
:mod:`numtok.corpus.encode` and :mod:`numtok.corpus.jobs.job` do the work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

import pyarrow as pa

from numtok import corpus, locations
from numtok.corpus.fit import ScaleFit, xval_place
from numtok.corpus.jobs.request import Encoder, Sharding, is_folder
from numtok.corpus.read.batches import ReadOptions
from numtok.corpus.read.find import find_inputs
from numtok.corpus.read.formats import FORMATS
from numtok.corpus.read.sources import Source
from numtok.corpus.read.template import ROW, Template, as_texts
from numtok.corpus.sample import parse_split
from numtok.corpus.settings import EncodeOptions, EncodeSettings
from numtok.corpus.summary import Progress, Summary
from numtok.errors import InputError, NumtokError, RepresentationError, TokenizerError
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.numbers.scan import scan
from numtok.representations import Representation
from numtok.representations.parse import for_files
from numtok.tokenizer.tokenizer import Tokenizer

Files = str | Path | Sequence[str | Path]
_TABLES = ("csv", "tsv", "parquet", "arrow", "jsonl")
_LOOKED_AT = 1 << 20  # bytes of a table
Chosen = str | Representation | Sequence[Representation | str]


def encode_files(
    inputs: Files,
    output: str | Path,
    *,
    tokenizer: Any = None,
    numbers: Chosen | None = None,
    grammar: Grammar | str | None = None,
    overflow: Literal["text", "clip", "error"] | None = None,
    dense: bool = False,
    scale: float | None = None,
    clip: float | None = None,
    fit: bool = False,
    fit_quantile: float | None = None,
    engine: Literal["auto", "gigatoken", "tokenizers"] = "auto",
    leading_space: Literal["auto", "separate"] | None = None,
    shards: int | None = None,
    shard_size: int | None = None,
    shard: tuple[int, int] | None = None,
    ray: str | None = None,
    card: bool = False,
    split: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Unpack[EncodeOptions],
) -> Summary:
    """Encode files, a row per document, into one Parquet or Arrow file or a folder of them, as
    ``numtok encode`` does.

    Args:
        inputs: a file, folder, glob or URL, ``-`` for standard input, or a list of them.
        output: a .parquet, .arrow, .feather or .ipc file; ``-`` for standard output, as JSON lines
            or an Arrow stream; or a folder of shards, if it ends in a slash, exists, or one of the
            options for shards is given. ``workers`` processes write the shards. After a kill, the
            same call goes on where it was (``docs/corpora.md``).
        tokenizer: a source tokenizer, as :meth:`numtok.Tokenizer.from_pretrained` takes it; or a
            ``Tokenizer``, which has its numbers and its grammar.
        numbers: representations, ``"xval"`` if not given, or their names, ``"xval,fone:6,4"``.
        grammar: what counts as a number, or its name, ``"european"``; prose if not given.
        overflow: what to do with numbers that a representation cannot hold, ``"text"``, ``"clip"``
            or ``"error"``; for all representations that have this option.
        dense: write the tensors of bits and fone instead of integers and digits, of which
            :func:`numtok.expand` and the torch layers make tensors. If ``tokenizer`` is a
            ``Tokenizer``, its columns are written.
        scale: xVal's values are multiplied by it. If not given, one is fitted where xVal is given
            by name.
        clip: the largest magnitude of xVal's scaled values. If not given, 5, or none if ``scale``
            is given.
        fit: fit the scale even if xVal is given as ``XVal(...)``.
        fit_quantile: fit the scale so that this quantile of the magnitudes becomes 5.
        engine: see :meth:`numtok.Tokenizer.from_pretrained`.
        leading_space: see :meth:`numtok.Tokenizer.from_pretrained`.
        shards: how many files the folder has at most; each is made of about as much input.
        shard_size: about how many bytes of input a shard has; 256 MiB if neither is given.
        shard: (i, n): write only every n-th shard, from the i-th on, counted from 1, as one of n
            machines. Call :func:`numtok.finish_job` when all are done.
        ray: the address of a Ray cluster that is to write the shards: ``auto``, ``local``, or
            ``host:port``. All nodes must see the same files.
        card: also write a README.md that the Hugging Face hub and ``datasets`` read, once the
            folder is finished.
        split: ``"train=0.98,validation=0.02"``: the output is a folder with a folder of shards for
            each, and a document's place depends on its text and ``split_seed`` alone.
        progress: called from the calling thread, several times a second.
        options: text_column, template, keep_columns, keep_text, add_special_tokens, parse_special,
            input_format, output_format, compression, text_unit, workers, batch_bytes, overwrite,
            tensors, on_error, layout, pack, pack_mode, end_token, shuffle, sample, split_seed,
            stats: see
            :class:`numtok.corpus.settings.EncodeOptions`.

    Raises:
        NumtokError: with the file and row. No half-written output is left, nor after an interrupt;
            shards that are done stay.
    """
    own = isinstance(tokenizer, Tokenizer)
    beside: dict[str, Any] = {"numbers": numbers, "grammar": grammar, "overflow": overflow}
    beside |= {"dense": dense or None, "leading_space": leading_space}
    if own and (wrong := [name for name, value in beside.items() if value is not None]):
        raise TokenizerError(
            f"{wrong[0]}={beside[wrong[0]]!r} is for a tokenizer that is yet to be made; this one"
            " has its own, so leave it out"
        )
    by_name = not own and (numbers is None or isinstance(numbers, str))
    chosen = (
        tokenizer.representations
        if own
        else for_files("xval" if numbers is None else numbers, overflow, dense)
    )
    scaled, finding = _scaled(chosen, by_name, fit, fit_quantile, scale, clip)
    if own:
        made = tokenizer.with_options(scaled)
    else:
        rules = check_grammar(grammar)
        made = Tokenizer.from_pretrained(tokenizer, scaled, rules, engine, leading_space)
    types = (getattr(field.type, "value_type", None) for field in made.batch_schema())
    if options.get("tensors") == "extension" and not any(
        isinstance(kind, pa.FixedShapeTensorType) for kind in types
    ):
        raise RepresentationError(
            "tensors='extension' is for columns of tensors, and there is none; leave it out, or"
            " give dense=True where there can be"
        )
    encoder = Encoder(made, tokenizer, engine, finding)
    given = [os.fspath(inputs)] if isinstance(inputs, str | os.PathLike) else inputs
    sharding = Sharding(shards, shard_size, shard, ray, card)
    if split is None:
        summary = _encode(given, output, encoder, sharding, progress, options)
    else:
        parts = parse_split(split)
        summary = _encode_parts(given, output, encoder, sharding, progress, options, parts)
    if summary.documents and not summary.numbers and options.get("template") is None:
        first = find_inputs(given, options.get("input_format"))[0]
        summary.number_columns = _columns_with_numbers(first, made.grammar)
    return summary


def _encode(
    inputs: Sequence[str | Path],
    output: str | Path,
    encoder: Encoder,
    sharding: Sharding,
    progress: Callable[[Progress], None] | None,
    options: EncodeOptions,
) -> Summary:
    """Into a folder or a file, as it is named."""
    if is_folder(output, sharding, EncodeSettings(**options)):
        return corpus.encode_folder(
            inputs, output, encoder, EncodeSettings.of_shards(**options), sharding, progress
        )
    return corpus.encode_corpus(
        inputs, output, encoder.tokenizer, fit=encoder.fit, progress=progress, **options
    )


def _encode_parts(
    inputs: Sequence[str | Path],
    output: str | Path,
    encoder: Encoder,
    sharding: Sharding,
    progress: Callable[[Progress], None] | None,
    options: EncodeOptions,
    samples: Mapping[str, str],
) -> Summary:
    """Into a folder for each split, one after the other, all with the scale of the first."""
    if options.get("sample") is not None:
        raise InputError("sample and split both tell which documents are taken; leave out one")
    made = {}
    for name, sample in samples.items():
        settings = EncodeSettings.of_shards(**(options | {"sample": sample}))
        is_folder(output, sharding._replace(shards=1), settings)  # or an error
        share = sharding.for_sample(settings.documents)
        folder = locations.join(output, name)
        made[name] = corpus.encode_folder(inputs, folder, encoder, settings, share, progress)
        scaled = encoder.tokenizer.with_options(made[name].representations)
        encoder = encoder._replace(tokenizer=scaled, fit=None)
    if not any(one.share for one in made.values()):
        corpus.finish_splits(output, list(made), sharding.card)
    return Summary.of_splits(made, str(output))


def _scaled(
    chosen: Sequence[Representation],
    by_name: bool,
    fit: bool,
    quantile: float | None,
    scale: float | None,
    clip: float | None,
) -> tuple[Sequence[Representation], ScaleFit | None]:
    """The representations with the scale that is given for xVal; or how to find it, if it is not,
    and what else is to be fitted.
    """
    asked = fit or quantile is not None or scale is not None or clip is not None
    find = asked or (by_name and any(representation.has_scale for representation in chosen))
    if scale is not None:
        if fit or quantile is not None:
            raise RepresentationError(
                "scale gives the scale, fit and fit_quantile find one; leave out one or the other"
            )
        place, find = xval_place(chosen), False
        xval: Any = dataclasses.replace(chosen[place], scale=scale, clip=clip)  # type: ignore[type-var]
        chosen = [*chosen[:place], xval, *chosen[place + 1 :]]
    if find:
        xval_place(chosen)
    elif not any(representation.unfitted for representation in chosen):
        return chosen, None
    return chosen, ScaleFit(quantile, clip, find)


class _Looking(Template):
    """Keeps the texts of each column that it is given."""

    def __init__(self) -> None:
        super().__init__(ROW)
        self.seen: dict[str, list[str | None]] = {}

    def of_columns(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        for name, column in columns.items():
            self.seen.setdefault(name, []).extend(as_texts(column).to_pylist())
        return super().of_columns(columns)

    def of_row(self, row: Mapping[str, Any]) -> str | None:
        for name, value in row.items():
            self.seen.setdefault(name, []).append(None if value is None else str(value))
        return super().of_row(row)


def _columns_with_numbers(source: Source, grammar: Grammar) -> tuple[str, ...]:
    """The columns in which the first rows hold numbers; none for a pipe, or what is no table."""
    if source.size is None or source.format not in _TABLES:
        return ()
    looking = _Looking()
    with contextlib.suppress(NumtokError, pa.ArrowException, OSError):
        how = ReadOptions(None, (), _LOOKED_AT, template=looking)
        next(FORMATS[source.format].read(source, how), None)
    return tuple(
        name
        for name, texts in looking.seen.items()
        if len(scan([text or "" for text in texts], grammar))
    )
