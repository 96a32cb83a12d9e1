"""The general way, for every call: the base class does all of its own work on marked text.

In: the arguments of a call (:class:`numtok.hf.texts.Call`). Out: the ``BatchEncoding`` of the base
    class, with the ids and offsets of the original text, and the number streams if they were asked
    for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils.generic import PaddingStrategy

from numtok.arrays.text_rows import TextRows
from numtok.errors import InputError
from numtok.hf.advice import advise_streams
from numtok.hf.backend import BackendState
from numtok.hf.encoding import LazyBatchEncoding, with_marks
from numtok.hf.marks import MarkedText, Marks, with_numbers_in_place, with_numbers_marked
from numtok.hf.streams import NumberStreams, attach, stream_of_symbols
from numtok.hf.texts import Call, CallTexts
from numtok.numbers.numbers import Numbers


def encode_generally(tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call) -> Any:
    """What the base class returns for the call, of text with numbers."""
    try:
        texts = CallTexts(call.text, call.pair, bool(call.options.get("is_split_into_words")))
        if (
            not call.with_streams
            and not state.may_hold_number(texts.strings)
            and not state.is_named_in(texts.strings)
        ):
            return encode_as_base(tokenizer, call)
        rows = TextRows.of(texts.strings)
    except InputError:  # whatever the base class says about input that is not text
        return encode_as_base(tokenizer, call)
    split = call.options.get("split_special_tokens")
    numbers = state.numtok.finder.numbers(
        rows, parse_special=not (tokenizer.split_special_tokens if split is None else split)
    )
    if len(numbers) and not call.with_streams:
        advise_streams(tokenizer.deprecation_warnings, state.numtok)
    nothing_to_mark = not len(numbers) or state.numbers_stay
    if nothing_to_mark and not call.with_streams and not state.is_named_in(texts.strings):
        return encode_as_base(tokenizer, call)
    return _encode_marked(
        tokenizer, state, texts, numbers, tokenizer.backend_tokenizer.post_processor, call
    )


def encode_as_base(tokenizer: PreTrainedTokenizerFast, call: Call) -> Any:
    """The call as it is."""
    return PreTrainedTokenizerFast._encode_plus(
        tokenizer, text=call.text, text_pair=call.pair, **call.options
    )


def encodings_later(
    tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call
) -> Callable[[], list[Any]]:
    """A function that encodes texts, with everything as it is now, and returns the
    ``tokenizers.Encoding`` of each.
    """
    make = _making(tokenizer, state, call, tokenizer.backend_tokenizer.post_processor)

    def find_and_make() -> list[Any]:
        texts = CallTexts(call.text, call.pair, False)
        return make(
            texts, state.numtok.finder.numbers(TextRows.of(texts.strings), parse_special=True)
        )

    return find_and_make


def _making(
    tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call, post_processor: Any
) -> Callable[[CallTexts, Numbers], list[Any]]:
    """Likewise of texts and numbers that are known."""
    settings = vars(tokenizer).copy()

    def make(texts: CallTexts, numbers: Numbers) -> list[Any]:
        as_now = PreTrainedTokenizerFast.__new__(PreTrainedTokenizerFast)
        vars(as_now).update(settings)
        bare = Call(
            call.text, call.pair, False, {**call.options, "return_tensors": None, "verbose": False}
        )
        return list(
            _encode_marked(
                as_now, state, texts, numbers, post_processor, bare, encodings=True
            ).encodings
        )

    return make


def leave_backend_as_called(tokenizer: PreTrainedTokenizerFast, options: Mapping[str, Any]) -> None:
    """The backend keeps the truncation and padding of the last call, whether it was the one to
    encode or not.
    """
    tokenizer.set_truncation_and_padding(
        padding_strategy=options.get("padding_strategy", PaddingStrategy.DO_NOT_PAD),
        truncation_strategy=options.get("truncation_strategy", TruncationStrategy.DO_NOT_TRUNCATE),
        max_length=options.get("max_length"),  # type: ignore[arg-type]
        stride=options.get("stride", 0),
        pad_to_multiple_of=options.get("pad_to_multiple_of"),
        padding_side=options.get("padding_side"),
    )


def _encode_marked(
    tokenizer: PreTrainedTokenizerFast,
    state: BackendState,
    texts: CallTexts,
    numbers: Numbers,
    post_processor: Any,
    call: Call,
    encodings: bool = False,
) -> Any:
    """Let the base class encode the marked texts, with the post-processor of the moment of the
    call. ``encodings``: they will be asked for.
    """
    marks = state.marks_for(texts.strings)
    marks.tokenizer.post_processor = post_processor
    marked, streams = _marked(state, texts.strings, numbers, marks, call.with_streams)
    with_offsets = encodings or _needs_offsets(state, texts, call)
    of_call = with_marks(tokenizer, marks, texts.rows(marked), texts.split, with_offsets)
    text, pair = texts.rebuilt([marked_text.text for marked_text in marked])
    base: Any = encode_as_base(of_call, Call(text, pair, False, call.options))
    found = list(base.encodings)
    if with_offsets:
        out = LazyBatchEncoding.of(base, lambda: [encoding.restored() for encoding in found])
    else:
        out = LazyBatchEncoding.of(
            base, functools.partial(_making(tokenizer, state, call, post_processor), texts, numbers)
        )
    if streams is not None:
        tensors = call.options.get("return_tensors")
        by_row = [streams.spread(len(encoding), *encoding.number_tokens) for encoding in found]
        attach(
            out,
            by_row,
            tensors,
            not texts.batched
            and tensors is None
            and not call.options.get("return_overflowing_tokens"),
        )
    return out


def _needs_offsets(state: BackendState, texts: CallTexts, call: Call) -> bool:
    """Whether the call takes offsets: for itself, or to tell which of several numbers a token is."""
    if (
        texts.split
        or call.options.get("return_offsets_mapping")
        or call.options.get("return_overflowing_tokens")
    ):
        return True
    cut = (
        call.options.get("truncation_strategy", TruncationStrategy.DO_NOT_TRUNCATE)
        != TruncationStrategy.DO_NOT_TRUNCATE
    )
    return call.with_streams and (cut or state.numbers_stay or not texts.one_each)


def _marked(
    state: BackendState, texts: Sequence[str], numbers: Numbers, marks: Marks, with_streams: bool
) -> tuple[list[MarkedText], NumberStreams | None]:
    """The texts with marks, and the number streams if they are wanted."""
    if state.numbers_stay:
        return with_numbers_in_place(texts, numbers), (
            NumberStreams(numbers, {}) if with_streams else None
        )
    if state.one_token and not with_streams:
        return with_numbers_marked(texts, numbers, None, marks), None
    columns, slots, spelled = state.numtok.encode_numbers(numbers)
    streams = (
        NumberStreams(numbers, columns, stream_of_symbols(state.numtok, slots, spelled))
        if with_streams
        else None
    )
    return with_numbers_marked(texts, numbers, slots, marks), streams
