"""The quick way for batches: through numtok's own engine, without ``Encoding`` objects.

The general way makes the ``encodings`` when something asks for them, and does the calls for which
the quick way is not certain to give the same (pairs, words, overflow, offsets...).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from transformers import BatchEncoding, PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils.generic import PaddingStrategy

from numtok.arrays import memory
from numtok.errors import InputError
from numtok.hf.backend import BackendState
from numtok.hf.general import (
    Call,
    LazyBatchEncoding,
    encodings_later,
    set_truncation_and_padding,
)
from numtok.hf.streams import add_to_encoding, as_numpy, warn_missing_streams
from numtok.representations import streams
from numtok.representations.columns import NUMBER_MASK, neutral
from numtok.tokenizer.encoder import cores
from numtok.tokenizer.layout import to_token_layout

SMALL = 1 << 12  # characters; below, tokenizers itself is as quick
LARGE = 1 << 19  # characters to encode before the engine is made, which takes a second
NOT_HERE = (  # options of the general way
    "is_split_into_words", "split_special_tokens", "stride", "return_overflowing_tokens",
    "return_offsets_mapping",
)  # fmt: skip

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class SpecialTokens(NamedTuple):
    """Special tokens before and after a text, and the token types of all."""

    before: list[int]
    after: list[int]
    types_before: list[int]
    types_after: list[int]
    type: int


NO_SPECIAL = SpecialTokens([], [], [], [], 0)


class Placement(NamedTuple):
    """Where the tokens of n rows go in one flat array."""

    size: int  # of the array
    edges: Ints  # int64[n + 1], the rows with their padding
    source: Ints  # int64[t], places of the tokens that are kept, in the text
    target: Ints  # int64[t], and in the array
    before: Ints  # int64[n, special tokens], places of those before and after each text
    after: Ints


class Flat(NamedTuple):
    """n encoded rows in flat arrays: row r is ``[edges[r]:edges[r + 1]]`` of each."""

    columns: dict[str, Array]  # what the base class returns, in its order, int64[t]
    streams: dict[str, Array]  # the number streams, [t, ...]
    edges: Ints  # int64[n + 1]

    def rows(self, values: Any) -> list[Any]:
        return [values[first:last] for first, last in itertools.pairwise(self.edges.tolist())]


def encode_quickly(
    tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call
) -> BatchEncoding | None:
    """Encode a batch by numtok's engine; None if it takes the general way."""
    text, options = call.text, call.options
    single = isinstance(text, str)
    if single and len(text) < SMALL:  # at once, for the short way
        return None
    if not text or not isinstance(text, str | list | tuple) or call.pair is not None:
        return None
    if tokenizer.split_special_tokens or any(map(options.get, NOT_HERE)):
        return None
    texts: list[Any] = [text] if single else list(text)
    if not all(type(one) is str for one in texts) or not _worth_while(state, texts):
        return None
    flat = encode_flat(tokenizer, state, texts, call.with_streams, options)
    if flat is None:
        return None
    tensors = options.get("return_tensors")
    if tensors is not None and (not flat.edges[-1] or len(set(np.diff(flat.edges).tolist())) > 1):
        return None
    set_truncation_and_padding(tokenizer, options)
    for row in flat.rows(flat.columns["input_ids"]):
        tokenizer._eventual_warn_about_too_long_sequence(
            row, options.get("max_length"), options.get("verbose", True)
        )
    later = encodings_later(tokenizer, state, call)
    out = _batch_encoding(flat, tensors, bool(options.get("return_length")), later)
    if single and tensors is None:  # the batch dimension goes, but for the length
        out.data |= {name: rows[0] for name, rows in out.data.items() if name != "length"}
    return out


def _batch_encoding(
    flat: Flat, tensors: Any, with_length: bool, encodings: Callable[[], list[Any]]
) -> BatchEncoding:
    """Return the rows as transformers returns them: lists, or tensors."""
    data = {
        name: [row.tolist() for row in flat.rows(values)]
        if tensors is None
        else np.stack(flat.rows(values))
        for name, values in flat.columns.items()
    }
    if with_length:
        data["length"] = np.diff(flat.edges).tolist()
    out = LazyBatchEncoding.of(data, 1, encodings)
    out.convert_to_tensors(tensors)
    by_row = zip(*map(flat.rows, flat.streams.values()), strict=True)
    streams = [dict(zip(flat.streams, row, strict=True)) for row in by_row]
    add_to_encoding(out, streams, tensors, single=False)
    return out


def encode_flat(
    tokenizer: PreTrainedTokenizerFast,
    state: BackendState,
    texts: Any,
    with_streams: bool,
    options: Mapping[str, Any],
) -> Flat | None:
    """Encode texts by numtok's engine; None if rows would not fit, or are not text."""
    special: SpecialTokens | None = NO_SPECIAL
    if options.get("add_special_tokens", True):
        special = _special_tokens(tokenizer, state)
    if special is None:
        return None
    room = _room(options, len(special.before) + len(special.after))
    if room is not None and room < 0:
        return None
    parse = not tokenizer.split_special_tokens
    try:
        batch = state.numtok.encode_batch(texts, parse_special=parse, threads=_threads())
    except InputError:  # the caller has its own words for that
        return None
    if not with_streams and len(memory.flat(batch.column("number_index"))[0]):
        warn_missing_streams(tokenizer.deprecation_warnings, state.numtok)
    ids, offsets = memory.flat(batch.column("input_ids"))
    side = options.get("padding_side") or tokenizer.padding_side
    placement = _placement(offsets, room, tokenizer.truncation_side, special, options, side)
    if placement is None:
        return None
    columns = _columns(tokenizer, ids.to_numpy(), placement, special, options)
    streams = _streams(batch, placement) if with_streams else {}
    return Flat(columns, streams, placement.edges)


def _threads() -> int:
    """Return the number of threads: one per core, or 1 if ``TOKENIZERS_PARALLELISM`` forbids more."""
    parallel = os.environ.get("TOKENIZERS_PARALLELISM", "true").lower()
    return 1 if parallel in ("", "off", "false", "f", "no", "n", "0") else cores()


def _worth_while(state: BackendState, texts: list[str]) -> bool:
    """Whether there is enough to do in this call and for all calls so far."""
    characters = sum(map(len, texts))
    if characters < SMALL:
        return False
    state.characters += characters
    return state.characters >= LARGE


def _special_tokens(
    tokenizer: PreTrainedTokenizerFast, state: BackendState
) -> SpecialTokens | None:
    """Return the special tokens that the post-processor puts around a text at this moment; None if
    it does something else.
    """
    processor = tokenizer.backend_tokenizer.post_processor
    if processor is None:
        return NO_SPECIAL
    around = processor.process(state.placeholders_for([]).probe, None, True)
    inside = [k for k, special in enumerate(around.special_tokens_mask) if not special]
    if not inside:
        return None
    first, last = inside[0], inside[-1] + 1
    ids, types = around.ids, around.type_ids
    return SpecialTokens(ids[:first], ids[last:], types[:first], types[last:], types[first])


def _room(options: Mapping[str, Any], special: int) -> int | None:
    """Return the number of tokens of a text that fit; None for no limit, negative for the general
    way.
    """
    strategy = options.get("truncation_strategy", TruncationStrategy.DO_NOT_TRUNCATE)
    most = options.get("max_length")
    if strategy == TruncationStrategy.DO_NOT_TRUNCATE or most is None:
        return None
    return -1 if strategy == TruncationStrategy.ONLY_SECOND else int(most) - special


def _placement(
    offsets: Ints,
    room: int | None,
    cut_side: str,
    special: SpecialTokens,
    options: Mapping[str, Any],
    padding_side: str,
) -> Placement | None:
    """Return where everything goes; None if rows would be longer than their padding."""
    lengths = np.diff(offsets)
    kept = lengths if room is None else np.minimum(lengths, room)
    before, after = len(special.before), len(special.after)
    widths = kept + (before + after)
    edges = memory.offsets_of(widths)
    begins = edges[:-1]
    strategy = options.get("padding_strategy", PaddingStrategy.DO_NOT_PAD)
    if strategy != PaddingStrategy.DO_NOT_PAD:
        to_max = strategy == PaddingStrategy.MAX_LENGTH
        width = int(options["max_length"] if to_max else widths.max())
        width += -width % (options.get("pad_to_multiple_of") or 1)
        if widths.max() > width:
            return None
        edges = np.arange(len(kept) + 1) * width
        begins = edges[:-1] + (width - widths if padding_side == "left" else 0)
    first = offsets[:-1] + (lengths - kept if cut_side == "left" else 0)
    run = np.arange(int(kept.sum())) - np.repeat(np.cumsum(kept) - kept, kept)  # 0, 1... in a row
    source, target = np.repeat(first, kept) + run, np.repeat(begins + before, kept) + run
    starts = begins[:, None] + np.arange(before)
    stops = (begins + before + kept)[:, None] + np.arange(after)
    return Placement(int(edges[-1]), edges, source, target, starts, stops)


def _columns(
    tokenizer: PreTrainedTokenizerFast,
    ids: Array,
    placement: Placement,
    special: SpecialTokens,
    options: Mapping[str, Any],
) -> dict[str, Array]:
    """Return the columns that the base class returns, in its order."""

    def filled(padding: int, values: Any, before: Any, after: Any) -> Array:
        flat = np.full(placement.size, padding, np.int64)
        flat[placement.target] = values
        flat[placement.before], flat[placement.after] = before, after
        return flat

    def wanted(name: str) -> bool:
        asked = options.get(f"return_{name}")
        return name in tokenizer.model_input_names if asked is None else bool(asked)

    unpadded = placement.target.size + placement.before.size + placement.after.size
    padding = tokenizer.pad_token_id if placement.size > unpadded else 0
    columns = {"input_ids": filled(padding, ids[placement.source], special.before, special.after)}
    if wanted("token_type_ids"):
        columns["token_type_ids"] = filled(
            tokenizer.pad_token_type_id, special.type, special.types_before, special.types_after
        )
    if wanted("attention_mask"):
        columns["attention_mask"] = filled(0, 1, 1, 1)
    if options.get("return_special_tokens_mask"):
        columns["special_tokens_mask"] = filled(1, 0, 1, 1)
    return columns


def _streams(batch: pa.RecordBatch, placement: Placement) -> dict[str, Array]:
    """Return the streams, which token layout has at every token."""
    flat, forms = {}, {NUMBER_MASK.name: (NUMBER_MASK,), **streams()}
    tokens = to_token_layout(batch)
    for name in tokens.schema.names[1:]:  # the first are the ids
        values = as_numpy(memory.flat(tokens.column(name))[0])
        flat[name] = neutral(forms[name][0], placement.size, values)
        flat[name][placement.target] = values[placement.source]
    return flat
