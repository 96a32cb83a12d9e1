"""The short way for one text or pair, as in serving and unbatched ``map``: the marks of numbers that
were met before are known, and nothing is asked about tokens but their ids. Gives the same as the
general way, which makes the ``encodings`` when something asks for them.
"""

from __future__ import annotations

import itertools
from typing import Any

from transformers import PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils.generic import PaddingStrategy

from numtok.arrays.text_rows import TextRows
from numtok.hf.advice import advise_streams
from numtok.hf.backend import BackendState
from numtok.hf.encoding import LazyBatchEncoding
from numtok.hf.general import (
    Call,
    encode_as_base,
    encodings_later,
    set_truncation_and_padding,
    take_settings,
)
from numtok.hf.marks import Marks, Piece

SHORT = 1 << 10  # characters; beyond, the general way costs little more
MOST_PIECES = 1 << 14  # numbers that are remembered
NOT_HERE = (
    "is_split_into_words", "split_special_tokens", "return_overflowing_tokens",
    "return_offsets_mapping",
)  # fmt: skip

KINDS = (
    ("type_ids", "token_type_ids"),
    ("attention_mask", "attention_mask"),
    ("special_tokens_mask", "special_tokens_mask"),
)


def encode_shortly(tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call) -> Any:
    """The text, or None if it takes the general way."""
    text, pair, options = call.text, call.pair, call.options
    texts = (text,) if pair is None else (text, pair)
    if call.with_streams or tokenizer.split_special_tokens or any(map(options.get, NOT_HERE)):
        return None
    if not all(type(one) is str and 0 < len(one) < SHORT for one in texts):
        return None
    if not state.is_named_in(texts) and (state.numbers_stay or not state.may_hold_number(texts)):
        return encode_as_base(tokenizer, call)
    marks, stay = state.marks_for(texts), state.numbers_stay
    others: list[list[int]] = []
    # Other tokens than the first go in afterwards, unless they count for the length.
    later = None if state.one_token or stay or _is_cut_or_padded(options) else others
    marked = [one if stay else _marked(state, marks, one, later) for one in texts]
    if None in marked:
        return None
    if tuple(marked) != texts:
        advise_streams(tokenizer.deprecation_warnings, state.numtok)
    set_truncation_and_padding(tokenizer, options)
    tokenizer.backend_tokenizer.encode_special_tokens = False
    take_settings(marks.tokenizer, tokenizer.backend_tokenizer)
    (encoding,) = marks.tokenizer.encode_batch_fast(
        [marked[0] if pair is None else tuple(marked)],
        add_special_tokens=options.get("add_special_tokens", True),
    )
    data = _data(tokenizer, marks, encoding, others, options)
    tensors = options.get("return_tensors")
    rows: Any = data if tensors is None else {name: [row] for name, row in data.items()}
    if options.get("return_length"):
        rows["length"] = [len(data["input_ids"])]
    make = encodings_later(tokenizer, state, call)
    return LazyBatchEncoding(rows, tensor_type=tensors, n_sequences=len(texts), make=make)


def _is_cut_or_padded(options: Any) -> bool:
    cut, padded = options.get("truncation_strategy"), options.get("padding_strategy")
    return not (
        cut in (None, TruncationStrategy.DO_NOT_TRUNCATE)
        and padded in (None, PaddingStrategy.DO_NOT_PAD)
    )


def _data(
    tokenizer: PreTrainedTokenizerFast,
    marks: Marks,
    encoding: Any,
    others: list[list[int]],
    options: Any,
) -> dict[str, list[int]]:
    """What the base class returns, in its order, with the ``others`` of each number behind its mark."""
    ids = marks.source_ids(encoding.ids)
    behind = []
    if others:
        found = [k for k, id in enumerate(encoding.ids) if id in marks.mark_ids]
        behind = list(zip(reversed(found), reversed(others), strict=True))
    for k, more in behind:
        ids[k + 1 : k + 1] = more
    tokenizer._eventual_warn_about_too_long_sequence(
        ids, options.get("max_length"), options.get("verbose", True)
    )
    data = {"input_ids": ids}
    for own, name in KINDS:
        asked = options.get(f"return_{name}")
        if asked or (asked is None and name in tokenizer.model_input_names):
            data[name] = getattr(encoding, own)
            for k, more in behind:
                data[name][k + 1 : k + 1] = data[name][k : k + 1] * len(more)
    return data


def _marked(
    state: BackendState, marks: Marks, text: str, others: list[list[int]] | None
) -> str | None:
    """The text with marks in place of its numbers; None if only the general way can tell. With
    ``others``, each number is one mark, and the ids of its other tokens go there.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None
    found = state.numtok.finder.in_short_text(data, parse_special=True)
    if not found:
        return None if found is None else text
    sure_mark = marks.number.encode() if state.one_token else None
    known, at = marks.pieces, 0
    parts: list[bytes] = []
    for start, stop, sure in found:
        parts.append(data[at:start])
        at = stop
        if sure and sure_mark:
            parts.append(sure_mark)
            continue
        number = data[start:stop]
        own = known.get(number)
        if own is None:
            known = _learnt(state, marks, data, found)
            own = known[number]
        parts.append(own.first)
        if others is None:
            parts.append(own.others)
        elif own.first != number:
            others.append(own.ids)
    return b"".join([*parts, data[at:]]).decode()


def _learnt(
    state: BackendState, marks: Marks, text: bytes, found: list[tuple[int, int, bool]]
) -> dict[bytes, Piece]:
    """``marks.pieces``, with what stands for each number of the text."""
    if len(marks.pieces) > MOST_PIECES:
        marks.pieces = {}
    known, begin = marks.pieces, {stop: start for start, stop, _ in found}
    for stop, start in begin.items():  # what some representation does not hold stays text
        known[text[start:stop]] = Piece(text[start:stop], b"", [])
    numbers = state.numtok.finder.numbers(TextRows.of([text.decode()]), parse_special=True)
    slots = state.numtok.encode_numbers(numbers)[1]
    edges = itertools.pairwise(slots.offsets.tolist())
    for (first, last), start, stop in zip(
        edges, numbers.start.tolist(), numbers.stop.tolist(), strict=True
    ):
        sign = text[begin[stop] : start]  # one that stays in the text
        known[text[begin[stop] : stop]] = marks.piece(sign, slots.plain[first:last].tolist())
    return known
