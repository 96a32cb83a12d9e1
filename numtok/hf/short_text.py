"""The quick way for one short text, as in serving and unbatched ``map``.

In: one text. Out: the same ``BatchEncoding`` that the general way gives. Its ``encodings`` are made
    when something asks for them, by the general way, and so are calls for which the short way is
    not certain to give the same (pairs, words, offsets, streams, spelled-out numbers...).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils.generic import PaddingStrategy

from numtok.hf.advice import advise_streams
from numtok.hf.backend import BackendState
from numtok.hf.encoding import LazyBatchEncoding
from numtok.hf.general import encode_as_base, encodings_later
from numtok.hf.texts import Call

SHORT = 1 << 10  # characters; beyond, the general way costs little more
NOT_HERE = (
    "is_split_into_words",
    "split_special_tokens",
    "return_overflowing_tokens",
    "return_offsets_mapping",
    "return_length",
)


def encode_shortly(tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call) -> Any:
    """The text, or None if it takes the general way."""
    text, options = call.text, call.options
    if type(text) is not str or len(text) > SHORT or call.pair is not None or call.with_streams:
        return None
    if tokenizer.split_special_tokens or any(map(options.get, NOT_HERE)):
        return None
    if not state.may_hold_number((text,)) and not state.is_named_in((text,)):
        return encode_as_base(tokenizer, call)
    marks = state.marks_for((text,))
    if not state.one_token or marks.renames:
        return None
    marked = state.numtok.finder.replaced(text, marks.number, parse_special=True)
    encoding = None if marked is None else _encoded(tokenizer, marks.tokenizer, marked, options)
    if encoding is None:
        return None
    if marked is not text:
        advise_streams(tokenizer.deprecation_warnings, state.numtok)
    names = ("type_ids", "token_type_ids"), ("attention_mask",) * 2
    data = {"input_ids": encoding.ids}
    for own, name in names:
        asked = options.get(f"return_{name}")
        if name in tokenizer.model_input_names if asked is None else asked:
            data[name] = getattr(encoding, own)
    if options.get("return_special_tokens_mask"):
        data["special_tokens_mask"] = encoding.special_tokens_mask
    tokenizer._eventual_warn_about_too_long_sequence(
        data["input_ids"], options.get("max_length"), options.get("verbose", True)
    )
    tensors = options.get("return_tensors")
    rows = data if tensors is None else {name: [row] for name, row in data.items()}
    make = encodings_later(tokenizer, state, call)
    return LazyBatchEncoding(rows, tensor_type=tensors, n_sequences=1, make=make)


def _encoded(
    tokenizer: PreTrainedTokenizerFast, backend: Any, text: str, options: Mapping[str, Any]
) -> Any:
    """The ``tokenizers.Encoding`` of one text, padded as the call wants; None if it is to be cut."""
    backend.post_processor = tokenizer.backend_tokenizer.post_processor
    if backend.truncation is not None:
        backend.no_truncation()
    if backend.padding is not None:
        backend.no_padding()
    if backend.encode_special_tokens:
        backend.encode_special_tokens = False
    special = options.get("add_special_tokens", True)
    (encoding,) = backend.encode_batch_fast([text], add_special_tokens=special)
    most, cut = options.get("max_length"), options.get("truncation_strategy")
    if cut not in (None, TruncationStrategy.DO_NOT_TRUNCATE) and len(encoding) > (most or 0):
        return None
    padding = options.get("padding_strategy", PaddingStrategy.DO_NOT_PAD)
    if padding != PaddingStrategy.DO_NOT_PAD:
        length = most if padding == PaddingStrategy.MAX_LENGTH and most else len(encoding)
        multiple = options.get("pad_to_multiple_of") or 1
        encoding.pad(
            length + -length % multiple,
            direction=options.get("padding_side") or tokenizer.padding_side,
            pad_id=tokenizer.pad_token_id,
            pad_type_id=tokenizer.pad_token_type_id,
            pad_token=tokenizer.pad_token,
        )
    return encoding
