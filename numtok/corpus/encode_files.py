"""``numtok encode`` as one call: everything may be given by name, as on the command line.
:mod:`numtok.corpus.encode` and :mod:`numtok.corpus.jobs.job` do the work.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

import pyarrow as pa

from numtok import storage
from numtok.corpus.encode import encode_corpus
from numtok.corpus.fit import ScaleFit, xval_place
from numtok.corpus.jobs.request import Encoder, Sharding, is_folder
from numtok.corpus.read.documents import columns_with_numbers
from numtok.corpus.read.find import find_inputs
from numtok.corpus.settings import EncodeOptions, EncodeSettings, ShardSettings, check_delimiter
from numtok.corpus.split import HashRange, parse_split
from numtok.corpus.summary import Progress, Summary
from numtok.errors import RepresentationError, TokenizerError
from numtok.numbers.grammar import Grammar, check_grammar
from numtok.representations import Representation
from numtok.representations.parse import for_files
from numtok.tokenizer.tokenizer import Tokenizer

Files = str | Path | Sequence[str | Path]
NUMBERS = "xval:log"  # what files are encoded with if nothing is said: it holds every magnitude
Chosen = str | Representation | Sequence[Representation | str]


def encode_files(  # noqa: D417  # the reference has a table of the others
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
    ``numtok encode`` does; the reference says more of the options.

    Args:
        inputs: a file, folder, glob or URL, ``-`` for standard input, or a list of them.
        output: a .parquet, .arrow, .feather or .ipc file, ``-``, or a folder of shards.
        tokenizer: what :meth:`numtok.Tokenizer.from_pretrained` takes; or a ``Tokenizer``.
        numbers: representations, ``"xval:log"`` if not given, or their names, ``"xval,fone:6,4"``.
        grammar: what counts as a number, or its name, ``"european"``; prose if not given.
        overflow, dense, engine, leading_space: of the tokenizer that is made.
        scale, clip, fit, fit_quantile: of xVal; fitted where it is given by name and without scale.
        shards, shard_size, shard, ray, card, split: of a folder of shards.
        progress: called from the calling thread, several times a second.
        options: see :class:`numtok.corpus.settings.EncodeOptions`.

    Raises:
        NumtokError: with the file and row. No half-written output is left; whole shards stay.
    """
    beside = {"grammar": grammar, "overflow": overflow, "dense": dense or None}
    asked = {"numbers": numbers, **beside, "leading_space": leading_space}
    scaling = _Scaling(scale, clip, fit, fit_quantile)
    encoder = _encoder(tokenizer, engine, asked, scaling)
    _check_tensors(encoder.tokenizer, options)
    given = [os.fspath(inputs)] if isinstance(inputs, str | os.PathLike) else inputs
    sharding = Sharding(shards, shard_size, shard, ray, card)
    if split is None:
        summary = _encode(given, output, encoder, sharding, progress, options)
    else:
        parts = parse_split(split)
        summary = _encode_parts(given, output, encoder, sharding, progress, options, parts)
    if summary.documents and not summary.numbers and options.get("template") is None:
        first = find_inputs(given, options.get("input_format"))[0]
        summary.number_columns = columns_with_numbers(
            first, encoder.tokenizer.grammar, check_delimiter(options.get("delimiter"))
        )
    return summary


class _Scaling(NamedTuple):
    """What was said of xVal's scale."""

    scale: float | None
    clip: float | None
    fit: bool
    quantile: float | None


def _encoder(source: Any, engine: Any, asked: Mapping[str, Any], scaling: _Scaling) -> Encoder:
    """Return the tokenizer, made of what was ``asked`` unless it is made already, and how to fit
    it.
    """
    own, numbers = isinstance(source, Tokenizer), asked["numbers"]
    if own and (wrong := [name for name, value in asked.items() if value is not None]):
        raise TokenizerError(
            f"{wrong[0]}={asked[wrong[0]]!r} is for a tokenizer that is yet to be made; this one"
            " has its own, so leave it out"
        )
    by_name = not own and (numbers is None or isinstance(numbers, str))
    named = NUMBERS if numbers is None else numbers
    chosen = (
        source.representations if own else for_files(named, asked["overflow"], bool(asked["dense"]))
    )
    scaled, fit = _scaled(chosen, by_name, scaling)
    if own:
        return Encoder(source.with_options(scaled), source, engine, fit)
    rules, spaces = check_grammar(asked["grammar"]), asked["leading_space"]
    if spaces is not None and all(one.stays_text for one in scaled):
        raise TokenizerError(
            f"leading_space={spaces!r} is for numbers that become tokens of their own, and"
            f" {scaled[0].name} leaves them text; leave it out"
        )
    made = Tokenizer.from_pretrained(source, scaled, rules, engine, spaces)
    return Encoder(made, source, engine, fit)


def _check_tensors(tokenizer: Tokenizer, options: EncodeOptions) -> None:
    """Refuse Arrow's tensor type where there is no tensor."""
    types = (getattr(field.type, "value_type", None) for field in tokenizer.batch_schema())
    tensors = any(isinstance(kind, pa.FixedShapeTensorType) for kind in types)
    if options.get("tensors") == "extension" and not tensors:
        raise RepresentationError(
            "tensors='extension' is for columns of tensors, and there is none; leave it out, or"
            " give dense=True where there can be"
        )


def _encode(
    inputs: Sequence[str | Path],
    output: str | Path,
    encoder: Encoder,
    sharding: Sharding,
    progress: Callable[[Progress], None] | None,
    options: EncodeOptions,
) -> Summary:
    if is_folder(output, sharding, EncodeSettings(**options)):
        from numtok.corpus.jobs.job import encode_folder  # which a file does not need

        settings = ShardSettings(**options)
        return encode_folder(inputs, output, encoder, settings, sharding, progress)
    return encode_corpus(
        inputs, output, encoder.tokenizer, fit=encoder.fit, progress=progress, **options
    )


def _encode_parts(
    inputs: Sequence[str | Path],
    output: str | Path,
    encoder: Encoder,
    sharding: Sharding,
    progress: Callable[[Progress], None] | None,
    options: EncodeOptions,
    hash_ranges: Mapping[str, str],
) -> Summary:
    """Encode into a folder for each split, one after the other, all with the scale of the first."""
    from numtok.corpus.jobs.finish import finish_splits
    from numtok.corpus.jobs.job import encode_folder

    made = {}
    for name, bounds in hash_ranges.items():
        settings = ShardSettings(**options, hash_range=bounds)
        is_folder(output, sharding._replace(shards=1), settings)  # or an error
        share = sharding.for_split(HashRange.parse(bounds, settings.split_seed))
        folder = storage.join(output, name)
        made[name] = encode_folder(inputs, folder, encoder, settings, share, progress)
        scaled = encoder.tokenizer.with_options(made[name].representations)
        encoder = encoder._replace(tokenizer=scaled, fit=None)
    if not any(one.share for one in made.values()):
        finish_splits(output, list(made), sharding.card)
    return Summary.of_splits(made, str(output))


def _scaled(
    chosen: Sequence[Representation], by_name: bool, asked: _Scaling
) -> tuple[Sequence[Representation], ScaleFit | None]:
    """Return the representations with xVal's scale, if it is given; and how to fit what is not."""
    find = any(one not in (None, False) for one in asked)
    find = find or (by_name and any(representation.has_scale for representation in chosen))
    if asked.scale is not None:
        if asked.fit or asked.quantile is not None:
            raise RepresentationError(
                "scale=... gives the scale, which"
                f" {'fit=...' if asked.quantile is None else 'fit_quantile=...'} is to find; leave out one"
            )
        place, find = xval_place(chosen), False
        xval: Any = dataclasses.replace(chosen[place], scale=asked.scale, clip=asked.clip)  # type: ignore[type-var]
        chosen = [*chosen[:place], xval, *chosen[place + 1 :]]
    if find:
        xval_place(chosen)
    elif not any(representation.needs_fit for representation in chosen):
        return chosen, None
    return chosen, ScaleFit(asked.quantile, asked.clip, find)
