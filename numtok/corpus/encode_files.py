"""``numtok encode`` as one call: everything may be given by name, as on the command line.
:mod:`numtok.corpus.encode` and :mod:`numtok.corpus.jobs.job` do the work.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import pyarrow as pa

from numtok import storage
from numtok.corpus.encode import encode_corpus
from numtok.corpus.encode_options import EncodeOptions
from numtok.corpus.fit import ScaleFit, xval_place
from numtok.corpus.jobs.request import SHARD_SIZE
from numtok.corpus.read.documents import columns_with_numbers, find_inputs
from numtok.corpus.split import parse_split
from numtok.corpus.summary import Summary
from numtok.corpus.write import OUTPUT_FORMATS
from numtok.errors import OutputError, RepresentationError, TokenizerError
from numtok.numbers.grammar import check_grammar
from numtok.options import shown_option
from numtok.representations import Representation
from numtok.representations.registry import set_for_all
from numtok.tokenizer.tokenizer import Tokenizer

Files = str | Path | Sequence[str | Path]
NUMBERS = "xval:log"  # if none are given, as it holds magnitudes up to 1.8e308
FILE_ENDS = tuple(suffix for one in OUTPUT_FORMATS.values() for suffix in one.suffixes)
Options = ParamSpec("Options")


def _with_options_of(
    kind: Callable[Options, EncodeOptions],
) -> Callable[[Callable[..., Summary]], Callable[Concatenate[Files, str | Path, Options], Summary]]:
    """Give a function ``f(inputs, output, **options)`` the keywords of a dataclass, for type checkers
    and ``help``.
    """

    def typed(call: Callable[..., Summary]) -> Callable[..., Summary]:
        positional = list(inspect.signature(call).parameters.values())[:2]
        keywords = inspect.signature(kind).parameters.values()
        call.__signature__ = inspect.Signature([*positional, *keywords])  # type: ignore[attr-defined]
        return call

    return typed


@_with_options_of(EncodeOptions)
def encode_files(inputs: Files, output: str | Path, **options: Any) -> Summary:
    """Encode files, a row per document, into one Parquet or Arrow file or a folder of them, as
    ``numtok encode`` does.

    Args:
        inputs: a file, folder, glob or URL, ``-`` for standard input, or a list of them.
        output: a .parquet, .arrow, .feather or .ipc file, ``-``, or a folder of shards.
        options: those of :class:`numtok.corpus.encode_options.EncodeOptions`.

    Returns:
        The counts, as a :class:`numtok.corpus.summary.Summary`.

    Raises:
        NumtokError: with the file and row. No half-written output is left; whole shards stay.

    Example:
        >>> import numtok
        >>> summary = numtok.encode_files("sample.jsonl", "encoded.parquet", numbers="p10")
        >>> summary.documents, summary.numbers
        (31, 183)
    """
    checked = EncodeOptions(**options)
    tokenizer, fit = _tokenizer(checked)
    _check_tensors(tokenizer, checked)
    paths = [os.fspath(inputs)] if isinstance(inputs, str | os.PathLike) else list(inputs)
    if checked.split is not None:
        summary = _encode_parts(paths, output, tokenizer, checked, fit)
    elif _is_folder(output, checked):
        from numtok.corpus.jobs.job import encode_folder  # which a file does not need

        summary = encode_folder(paths, output, tokenizer, checked, fit=fit)
    else:
        summary = encode_corpus(paths, output, tokenizer, checked, fit=fit)
    if summary.documents and not summary.numbers and checked.template is None:
        first = find_inputs(paths, checked.input_format)[0]
        summary.number_columns = columns_with_numbers(first, tokenizer.grammar, checked.delimiter)
    return summary


def _is_folder(output: str | Path, options: EncodeOptions) -> bool:
    """Whether the output is a folder of shards: its name ends in a slash, it is there, or the
    options say so; OutputError if they do, but it is named like a file. Workers say so of a name
    without a suffix.
    """
    name = os.fspath(output)
    named_like_one = name.lower().endswith(FILE_ENDS)
    if name.endswith(("/", os.sep)):
        return True
    if not (storage.is_url(name) and named_like_one) and storage.is_folder(name):
        return True
    like_a_file = name == "-" or named_like_one or storage.is_file(name)
    if options.asks_for_shards and like_a_file:
        raise OutputError(
            f"{name} is a file, or named like one, but the options for shards are for a"
            " folder; name one, as in out/"
        )
    by_workers = options.workers is not None and options.output_format is None
    no_suffix = not os.path.splitext(name)[1]
    return options.asks_for_shards or (by_workers and not like_a_file and no_suffix)


def _tokenizer(options: EncodeOptions) -> tuple[Tokenizer, ScaleFit | None]:
    """Return the tokenizer, made of the options unless it is made already, and how to fit it."""
    source = options.tokenizer
    if isinstance(source, Tokenizer):
        for name in ("numbers", "grammar", "overflow", "dense", "leading_space"):
            if getattr(options, name) not in (None, False):
                raise TokenizerError(
                    f"{shown_option(name, getattr(options, name))} is for a tokenizer that is yet to"
                    " be made; this one has its own, so leave it out"
                )
        scaled, fit = _scaled(source.representations, False, options)
        return source.with_options(scaled), fit
    numbers = NUMBERS if options.numbers is None else options.numbers
    chosen = set_for_all(numbers, options.overflow, compact=not options.dense)
    if options.dense and not any(hasattr(one, "compact") for one in chosen):
        names = ",".join(one.name for one in chosen)
        raise RepresentationError(
            f"{names!r} has no tensors, which dense=True (--dense) is for: bits and fone have; leave"
            " it out"
        )
    scaled, fit = _scaled(chosen, isinstance(numbers, str), options)
    spaces = options.leading_space
    if spaces is not None and all(one.stays_text for one in scaled):
        raise TokenizerError(
            f"{shown_option('leading_space', spaces)} is for numbers that become tokens of their"
            f" own, and {scaled[0].name} leaves them text; leave it out"
        )
    grammar = check_grammar(options.grammar)
    return Tokenizer.from_pretrained(source, scaled, grammar, options.engine, spaces), fit


def _scaled(
    chosen: Sequence[Representation], by_name: bool, options: EncodeOptions
) -> tuple[Sequence[Representation], ScaleFit | None]:
    """Return the representations with xVal's scale, if it is given; and how to fit what is not."""
    find = options.fit or any(
        one is not None for one in (options.scale, options.clip, options.fit_quantile)
    )
    find = find or (by_name and any(representation.has_scale for representation in chosen))
    if options.scale is not None:
        if options.fit or options.fit_quantile is not None:
            other = "fit=... (--fit)" if options.fit else "fit_quantile=... (--fit-quantile)"
            raise RepresentationError(
                f"scale=... (--scale) gives the scale, which {other} is to find; leave out one"
            )
        place, find = xval_place(chosen), False
        xval: Any = dataclasses.replace(chosen[place], scale=options.scale, clip=options.clip)  # type: ignore[type-var]
        chosen = [*chosen[:place], xval, *chosen[place + 1 :]]
    if find:
        xval_place(chosen)
    elif not any(representation.needs_fit for representation in chosen):
        return chosen, None
    return chosen, ScaleFit(options.fit_quantile, options.clip, find)


def _check_tensors(tokenizer: Tokenizer, options: EncodeOptions) -> None:
    """Refuse Arrow's tensor type where there is no tensor."""
    types = (getattr(field.type, "value_type", None) for field in tokenizer.batch_schema())
    tensors = any(isinstance(kind, pa.FixedShapeTensorType) for kind in types)
    if options.tensors == "extension" and not tensors:
        raise RepresentationError(
            "tensors='extension' (--tensors extension) is for columns of tensors, and there is"
            " none; leave it out, or give dense=True (--dense) where there can be"
        )


def _encode_parts(
    inputs: Sequence[str | Path],
    output: str | Path,
    tokenizer: Tokenizer,
    options: EncodeOptions,
    fit: ScaleFit | None,
) -> Summary:
    """Encode into a folder for each split, one after the other, all with the scale of the first."""
    from numtok.corpus.jobs.finish import finish_splits
    from numtok.corpus.jobs.job import encode_folder

    _is_folder(output, options)  # or an error
    summaries: dict[str, Summary] = {}
    for name, bounds in parse_split(str(options.split)).items():
        folder, split_options = storage.join(output, name), _options_of_split(options, bounds)
        summaries[name] = encode_folder(
            inputs, folder, tokenizer, split_options, fit=fit, hash_range=bounds
        )
        tokenizer, fit = tokenizer.with_options(summaries[name].representations), None
    if not any(one.share for one in summaries.values()):
        finish_splits(output, list(summaries), options.card)
    return Summary.of_splits(summaries, str(output))


def _options_of_split(options: EncodeOptions, bounds: str) -> EncodeOptions:
    """Return the options of the folder of one split: no card, and files of about the same size."""
    low, high = map(Decimal, bounds.split(":"))
    share = float(high - low)
    if options.shards is not None:
        shards = max(1, round(options.shards * share))
        return dataclasses.replace(options, card=False, shards=shards)
    size = min(int((options.shard_size or SHARD_SIZE) / share), (1 << 62) - 1)
    return dataclasses.replace(options, card=False, shard_size=size)
