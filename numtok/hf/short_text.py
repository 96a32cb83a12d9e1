"""The short way for one short text, as in serving and unbatched ``map``: what the general way does,
without its arrays.

In: one text. Out: the same ``BatchEncoding`` that the general way gives. Its ``encodings`` are made
    when something asks for them, by the general way, and so are calls for which the short way is
    not certain to give the same (pairs, words, offsets, streams, spelled-out numbers...).
"""

from __future__ import annotations

from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizerFast

from numtok.hf.advice import advise_streams
from numtok.hf.backend import BackendState
from numtok.hf.encoding import LazyBatchEncoding
from numtok.hf.general import encodings_later
from numtok.hf.texts import Call

SHORT = 1 << 10  # characters; beyond, the general way costs little more
NOT_HERE = (
    "is_split_into_words",
    "split_special_tokens",
    "return_overflowing_tokens",
    "return_offsets_mapping",
)


def encode_shortly(
    tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call
) -> BatchEncoding[Any] | None:
    """The text, or None if it takes the general way."""
    text, options = call.text, call.options
    if (
        type(text) is not str
        or len(text) > SHORT
        or call.pair is not None
        or call.with_streams
        or not state.one_token
    ):
        return None
    if tokenizer.split_special_tokens or any(map(options.get, NOT_HERE)):
        return None
    marks = state.marks_for((text,))
    marked_text = (
        None
        if marks.renames
        else state.numtok.finder.replaced(text, marks.number, parse_special=True)
    )
    if marked_text is None:
        return None
    advise_streams(tokenizer.deprecation_warnings, state.numtok)
    marks.tokenizer.post_processor = tokenizer.backend_tokenizer.post_processor
    marked = PreTrainedTokenizerFast.__new__(PreTrainedTokenizerFast)
    vars(marked).update(vars(tokenizer), _tokenizer=marks.without_offsets)
    base = PreTrainedTokenizerFast._encode_plus(marked, text=marked_text, **options)
    return LazyBatchEncoding.of(base, encodings_later(tokenizer, state, call))
