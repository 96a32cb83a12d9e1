"""The short way for one text or pair, as in serving and unbatched ``map``: the marks of numbers that
were met before are known, and nothing is asked about tokens but their ids. Gives the same as the
general way, which makes the ``encodings`` when something asks for them.

Why there is a second way: of one short text with numbers, the general way has 0.10 to 0.20 of the plain
fast tokenizer's speed, and this one 0.7 to 1.2 (GPT-2, BERT, T5; xval and place). Its 0.2 ms for arrays
of one row (bytes, scan, floats, spans) are 3 minutes in an unbatched ``map`` over a million rows. Without
numbers the general way has 0.4 to 0.8.
"""

from __future__ import annotations

import itertools
from typing import Any

from transformers import PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils.generic import PaddingStrategy

from numtok.arrays.text_rows import TextRows
from numtok.hf.backend import BackendState
from numtok.hf.general import (
    Call,
    LazyBatchEncoding,
    encode_as_base,
    encodings_later,
    set_truncation_and_padding,
    take_settings,
)
from numtok.hf.placeholders import Marks, Piece
from numtok.hf.streams import warn_missing_streams

SHORT = 1 << 10  # characters; beyond, the general way costs little more
CLOSE = 4  # bytes between two numbers that are encoded once, as in 12:30 and 2020-01-02
NOT_HERE = (
    "is_split_into_words", "split_special_tokens", "return_overflowing_tokens",
    "return_offsets_mapping",
)  # fmt: skip

NOT_CUT = None, TruncationStrategy.DO_NOT_TRUNCATE
NOT_PADDED = None, PaddingStrategy.DO_NOT_PAD
KINDS = (
    ("type_ids", "token_type_ids", "return_token_type_ids"),
    ("attention_mask", "attention_mask", "return_attention_mask"),
    ("special_tokens_mask", "special_tokens_mask", "return_special_tokens_mask"),
)


def encode_shortly(tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call) -> Any:
    """Encode a short text; None if it takes the general way."""
    text, pair, options = call.text, call.pair, call.options
    texts = (text,) if pair is None else (text, pair)
    if call.with_streams or tokenizer.split_special_tokens or any(map(options.get, NOT_HERE)):
        return None
    for one in texts:
        if type(one) is not str or not 0 < len(one) < SHORT:
            return None
    stay = state.numbers_stay
    if (stay or not state.may_hold_number(texts)) and not state.contains_reserved_token(texts):
        return encode_as_base(tokenizer, call)
    marks = state.marks_for(texts)
    others: list[list[int]] = []
    fitted, backend = _is_cut_or_padded(options), tokenizer.backend_tokenizer
    if fitted or backend.truncation or backend.padding:
        set_truncation_and_padding(tokenizer, options)
    backend.encode_special_tokens = False
    take_settings(marks.tokenizer, backend)
    # Other tokens than the first go in afterwards, if there are any, unless they count for the length.
    later = None if fitted or state.one_token else others
    marked = texts if stay else tuple([_marked(state, marks, one, later) for one in texts])
    if None in marked:
        return None
    if state.one_token and marked != texts:
        warn_missing_streams(tokenizer.deprecation_warnings, state.numtok)
    (encoding,) = marks.tokenizer.encode_batch_fast(
        [marked[0] if pair is None else marked],
        add_special_tokens=options.get("add_special_tokens", True),
    )
    data = _data(tokenizer, marks, encoding, others, options)
    tensors = options.get("return_tensors")
    rows: Any = data if tensors is None else {name: [row] for name, row in data.items()}
    if options.get("return_length"):
        rows["length"] = [len(data["input_ids"])]
    out = LazyBatchEncoding.of(rows, len(texts), encodings_later(tokenizer, state, call))
    return out if tensors is None else out.convert_to_tensors(tensors)


def _is_cut_or_padded(options: Any) -> bool:
    cut, padded = options.get("truncation_strategy"), options.get("padding_strategy")
    return cut not in NOT_CUT or padded not in NOT_PADDED


def _data(
    tokenizer: PreTrainedTokenizerFast,
    marks: Marks,
    encoding: Any,
    others: list[list[int]],
    options: Any,
) -> dict[str, list[int]]:
    """Return the lists that the base class returns, in its order, with the ids of ``others`` after
    each placeholder.
    """
    marked: list[int] = encoding.ids
    ids = _with_others(marks, marked, others) if others else marks.source_ids(marked)
    tokenizer._eventual_warn_about_too_long_sequence(
        ids, options.get("max_length"), options.get("verbose", True)
    )
    data = {"input_ids": ids}
    for own, name, option in KINDS:
        asked = options.get(option)
        if asked or (asked is None and name in tokenizer.model_input_names):
            row = getattr(encoding, own)
            if len(row) < len(ids):
                row = _widened(marks, row, marked, others)
            data[name] = row
    return data


def _with_others(marks: Marks, ids: list[int], others: list[list[int]]) -> list[int]:
    """Return the source's ids, and behind each mark the others of its number."""
    out: list[int] = []
    left = iter(others)
    for id in ids:
        out.append(marks.renamed.get(id, id))
        if id in marks.mark_ids:
            out += next(left)
    return out


def _widened(marks: Marks, row: list[int], ids: list[int], others: list[list[int]]) -> list[int]:
    """Repeat the value of each placeholder in ``row`` for each of its other ids."""
    if row.count(row[0]) == len(row):
        return row[:1] * (len(row) + sum(map(len, others)))
    left = iter(others)
    times = [1 + len(next(left)) if id in marks.mark_ids else 1 for id in ids]
    return [one for one, many in zip(row, times, strict=True) for _ in range(many)]


def _marked(
    state: BackendState, marks: Marks, text: str, others: list[list[int]] | None
) -> str | None:
    """Return the text with marks in place of its numbers; None if only the general way can tell.
    With ``others``, each number is one mark, or a few that stand close together are, and all ids
    behind the first go there.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None
    found = state.numtok.selector.in_short_text(data, parse_special=True)
    if not found:
        return None if found is None else text
    known, at = marks.pieces, 0
    parts: list[bytes] = []
    last: list[int] | None = None  # the others of a mark that ends at ``at``
    for start, stop, sure in found:
        before, number = data[at:start], data[start:stop]
        at = stop
        own = marks.sure if sure and state.one_token else known.get(number)
        if own is None:
            known = _learnt(state, marks, number, sure) or _all_learnt(state, marks, data, found)
            own = known[number]
        if others is None or own.first == number:
            parts += (before, own.first)
            if own.others:
                parts.append(marks.written(own.others))
            last = None
            continue
        close = None
        if last is not None and len(before) <= CLOSE:
            close = marks.ids_after_mark(before + own.first)
        if last is None or close is None:
            parts += (before, own.first)
            last = []
            others.append(last)
        else:
            last += close
        last += own.others
    return b"".join([*parts, data[at:]]).decode()


def _learnt(
    state: BackendState, marks: Marks, number: bytes, sure: bool
) -> dict[bytes, Piece] | None:
    """Add the placeholders of the number to ``marks.pieces``, and return these; None if its text
    does not tell.
    """
    ids = state.numtok.one_to_symbols(number) if sure else None
    if ids is None:
        return None
    known = marks.room_for_pieces()
    known[number] = marks.piece(ids)
    return known


def _all_learnt(
    state: BackendState, marks: Marks, text: bytes, found: list[tuple[int, int, bool]]
) -> dict[bytes, Piece]:
    """Return the placeholders of each number in the text, keyed by the number's bytes."""
    known = marks.room_for_pieces()
    for start, stop, _ in found:  # what some representation does not hold stays text
        known[text[start:stop]] = Piece(text[start:stop], [])
    numbers = state.numtok.selector.numbers(TextRows.of([text.decode()]), parse_special=True)
    slots = state.numtok.encode_numbers(numbers)[1]
    edges = itertools.pairwise(slots.offsets.tolist())
    for (first, last), start, stop in zip(
        edges, numbers.start.tolist(), numbers.stop.tolist(), strict=True
    ):
        known[text[start:stop]] = marks.piece(slots.plain[first:last].tolist())
    return known
