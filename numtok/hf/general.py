"""The general way, for every call: the base class does all of its own work, with a backend that
replaces the numbers of each text by placeholders and gives encodings of the original text.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from transformers import BatchEncoding, PreTrainedTokenizerFast
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils.generic import PaddingStrategy

from numtok.arrays.cached import cached_property
from numtok.arrays.text_rows import TextRows
from numtok.engines.hf_tokenizers import library
from numtok.errors import InputError
from numtok.hf.backend import BackendState
from numtok.hf.placeholders import (
    MOST_REMEMBERED,
    Placeholders,
    ReplacedText,
    replace_numbers,
    with_backend,
)
from numtok.hf.streams import (
    NumberStreams,
    add_to_encoding,
    warn_missing_streams,
)
from numtok.numbers.extract import SHORT_TEXT
from numtok.numbers.numbers import Numbers
from numtok.tokenizer.vocabulary import symbol_columns

Ints = npt.NDArray[np.int64]

# options of a call whose answer says where tokens stand in the text
_WITH_SPANS = ("return_offsets_mapping", "return_overflowing_tokens", "is_split_into_words")


class Call(NamedTuple):
    """The arguments of one call."""

    text: Any  # the texts, as transformers takes them
    pair: Any
    with_streams: bool  # whether to return the number streams
    options: Mapping[str, Any]  # the others, as the base class hands them to its ``_encode_plus``


def encode_generally(
    tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call, keep_spans: bool = False
) -> Any:
    """Encode the call as the base class does, with numbers as tokens and, if it wants them, streams.
    A short text by itself is encoded again when something asks for its ``encodings``, unless the
    call wants spans or streams, or ``keep_spans`` is set.
    """
    short = not (keep_spans or call.with_streams or any(map(call.options.get, _WITH_SPANS)))
    backend = NumberBackend(state, tokenizer.backend_tokenizer, call.with_streams, short)
    out: Any = PreTrainedTokenizerFast._encode_plus(
        with_backend(tokenizer, backend), text=call.text, text_pair=call.pair, **call.options
    )
    if backend.has_numbers and not call.with_streams:
        warn_missing_streams(tokenizer.deprecation_warnings, state.numtok)
    encodings = out.encodings
    if not encodings or not isinstance(encodings[0], NumberEncoding):
        return out
    if backend.replaced_short:
        later = encodings_later(tokenizer, state, call)
        return LazyBatchEncoding.of(out.data, out.n_sequences, later)
    lazy = LazyBatchEncoding.of(
        out.data, out.n_sequences, lambda: [one.restored() for one in encodings]
    )
    if backend.streams is not None:
        rows = [backend.streams.spread(len(one), *one.number_positions) for one in encodings]
        ids = out["input_ids"]
        single = isinstance(ids, list) and not (ids and isinstance(ids[0], list))
        add_to_encoding(lazy, rows, call.options.get("return_tensors"), single)
    return lazy


def set_truncation_and_padding(tokenizer: PreTrainedTokenizerFast, options: Any) -> None:
    """Set truncation and padding of the backend as the base class does for a call. The backend
    keeps them.
    """
    tokenizer.set_truncation_and_padding(
        padding_strategy=options.get("padding_strategy", PaddingStrategy.DO_NOT_PAD),
        truncation_strategy=options.get("truncation_strategy", TruncationStrategy.DO_NOT_TRUNCATE),
        max_length=options.get("max_length"),
        stride=options.get("stride", 0),
        pad_to_multiple_of=options.get("pad_to_multiple_of"),
        padding_side=options.get("padding_side"),
    )


def encodings_later(
    tokenizer: PreTrainedTokenizerFast, state: BackendState, call: Call
) -> Callable[[], list[Any]]:
    """Return a function that encodes the texts with everything as it is now."""
    as_now, processor = with_backend(tokenizer, None), tokenizer.backend_tokenizer.post_processor

    def make() -> list[Any]:
        backend = state.placeholders_for([]).tokenizer  # which may be changed
        backend.post_processor = processor
        as_now._tokenizer = backend
        bare = {**call.options, "return_tensors": None, "verbose": False}
        again = call._replace(with_streams=False, options=bare)
        return list(encode_generally(as_now, state, again, keep_spans=True).encodings)

    return make


class NumberBackend:
    """The backend of one call: the ``tokenizers.Tokenizer`` in everything but ``encode_batch``."""

    def __init__(self, state: BackendState, backend: Any, with_streams: bool, short: bool) -> None:
        self._state, self._backend, self._with_streams = state, backend, with_streams
        self._short = short  # whether a short text needs no spans of its numbers
        self.has_numbers = self.replaced_short = False
        self.streams: NumberStreams | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    @property
    def encode_special_tokens(self) -> bool:
        return bool(self._backend.encode_special_tokens)

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        self._backend.encode_special_tokens = value

    def encode_batch(
        self, batch: Sequence[Any], add_special_tokens: bool, is_pretokenized: bool
    ) -> Any:
        """Encode a batch: return the encodings of the original texts, but with the ids of numbers."""
        options = {"add_special_tokens": add_special_tokens, "is_pretokenized": is_pretokenized}
        try:
            rows = [_sequences(row, is_pretokenized) for row in batch]
            texts = [text for row in rows for sequence in row for text in sequence]
            if len(rows) == 1 and (short := self._encode_short(rows[0], texts, options)):
                return short
            numbers = self._numbers(texts)
        except InputError:  # the backend has its own words for what is not text
            return self._backend.encode_batch(batch, **options)
        if numbers is None:
            return self._backend.encode_batch(batch, **options)
        placeholders = self._state.placeholders_for(texts)
        take_settings(placeholders.tokenizer, self._backend)
        replaced = iter(self._replaced(texts, numbers, placeholders))
        by_row = [[[next(replaced) for _ in sequence] for sequence in row] for row in rows]
        inputs = [
            _input([[one.text for one in sequence] for sequence in row], is_pretokenized)
            for row in by_row
        ]
        encodings = placeholders.tokenizer.encode_batch(inputs, **options)
        return [
            NumberEncoding(one, row, placeholders, is_pretokenized)
            for one, row in zip(encodings, by_row, strict=True)
        ]

    def _encode_short(
        self, row: list[list[str]], texts: list[str], options: dict[str, Any]
    ) -> list[Any] | None:
        """Return the encoding of one short text or pair, without spans; None if only arrays can tell
        its numbers. A sentence takes 1.6 to 2.3 times as long as by the plain tokenizer, and 5 to 7
        times as long with arrays and spans.
        """
        state = self._state
        longest = max(map(len, texts), default=SHORT_TEXT)
        if not self._short or state.numbers_stay or longest >= SHORT_TEXT:
            return None
        if not (state.may_hold_number(texts) or state.contains_reserved_token(texts)):
            return None
        placeholders, parse = state.placeholders_for(texts), not self.encode_special_tokens
        replaced = [_replace_in_short(state, placeholders, text, parse) for text in texts]
        if None in replaced:
            return None
        self.has_numbers, self.replaced_short = replaced != texts, True
        take_settings(placeholders.tokenizer, self._backend)
        rest, split = iter(replaced), options["is_pretokenized"]
        one = _input([[next(rest) for _ in sequence] for sequence in row], split)
        (encoding,) = placeholders.tokenizer.encode_batch([one], **options)
        return [NumberEncoding(encoding, [], placeholders, split)]

    def _numbers(self, texts: list[str]) -> Numbers | None:
        """Return the numbers of the texts; None if the texts are to be encoded as they are."""
        state, named = self._state, self._state.contains_reserved_token(texts)
        if not (self._with_streams or named or state.may_hold_number(texts)):
            return None
        parse = not self.encode_special_tokens
        numbers = state.numtok.selector.select(TextRows.of(texts), parse_special=parse).numbers
        self.has_numbers = len(numbers) > 0
        nothing_to_replace = not self.has_numbers or state.numbers_stay
        return None if nothing_to_replace and not (self._with_streams or named) else numbers

    def _replaced(
        self, texts: list[str], numbers: Numbers, placeholders: Placeholders
    ) -> list[ReplacedText]:
        """Return the texts with placeholders; makes the streams, if they are wanted."""
        state = self._state
        if state.numbers_stay:
            if self._with_streams:
                self.streams = NumberStreams(numbers, {}, {}, np.arange(len(numbers) + 1))
            return replace_numbers(texts, numbers, None)
        if state.one_token and not self._with_streams:
            return replace_numbers(texts, numbers, [placeholders.number] * len(numbers))
        columns, slots, spelled = state.numtok.encode_numbers(numbers)
        if self._with_streams:
            first, places = state.numtok.representations[0], slots.offsets[:-1]
            per_token = symbol_columns(first, spelled, places, len(slots.unspaced))
            self.streams = NumberStreams(numbers, columns, per_token, slots.offsets)
        return replace_numbers(texts, numbers, placeholders.of_slots(slots))


def _replace_in_short(
    state: BackendState, placeholders: Placeholders, text: str, parse: bool
) -> str | None:
    """Return a short text with placeholders in place of its numbers; None if only arrays can tell."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None
    spans = state.numtok.selector.in_short_text(data, parse_special=parse)
    if not spans:
        return None if spans is None else text
    one_token = placeholders.number.encode() if state.one_token else b""
    by_number = placeholders.by_number
    parts: list[bytes] = []
    at = 0
    for start, stop, is_exact in spans:
        number = data[start:stop]
        placeholder = one_token if is_exact and one_token else by_number.get(number)
        if placeholder is None:
            if len(by_number) > MOST_REMEMBERED:
                placeholders.by_number = by_number = {}
            ids = state.numtok.ids_of_one(number) if is_exact else None
            if ids is None:  # the text around it decides
                by_number |= _placeholders_of_numbers(state, placeholders, data, spans, parse)
            else:
                by_number[number] = placeholders.of_ids(ids).encode()
            placeholder = by_number[number]
        parts += (data[at:start], placeholder)
        at = stop
    return b"".join([*parts, data[at:]]).decode()


def _placeholders_of_numbers(
    state: BackendState,
    placeholders: Placeholders,
    data: bytes,
    spans: list[tuple[int, int, bool]],
    parse: bool,
) -> dict[bytes, bytes]:
    """Return the placeholders of each number of a short text, keyed by the number's bytes; of one
    that some representation does not hold, which stays text, the number itself.
    """
    by_number = {data[start:stop]: data[start:stop] for start, stop, _ in spans}
    numbers = state.numtok.selector.select(
        TextRows.of([data.decode()]), parse_special=parse
    ).numbers
    spelled = placeholders.of_slots(state.numtok.encode_numbers(numbers).slots)
    for start, stop, placeholder in zip(numbers.start, numbers.stop, spelled, strict=True):
        by_number[data[start:stop]] = placeholder.encode()
    return by_number


def take_settings(copied: Any, backend: Any) -> None:
    """Give the copy of a backend that knows placeholders what calls and users change."""
    if copied is backend:
        return
    copied.post_processor = backend.post_processor
    if copied.encode_special_tokens != backend.encode_special_tokens:
        copied.encode_special_tokens = backend.encode_special_tokens
    cut, padding = backend.truncation, backend.padding
    if copied.truncation != cut:
        copied.enable_truncation(**cut) if cut else copied.no_truncation()
    if copied.padding != padding:
        copied.enable_padding(**padding) if padding else copied.no_padding()


def _sequences(row: Any, split: bool) -> list[list[str]]:
    """Return the one or two sequences of a row: its text, or words. InputError if something is not
    a text.
    """
    many = row if isinstance(row, list | tuple) else []
    if isinstance(row, str) and not split:
        return [[row]]
    if split and row is many and all(isinstance(word, str) for word in many):
        return [list(many)]
    if len(many) == 2 and not (split and any(isinstance(part, str) for part in many)):
        sequences = [list(part) if split else [part] for part in many]
        if all(isinstance(text, str) for sequence in sequences for text in sequence):
            return sequences
    raise InputError("expected text")


def _input(row: Sequence[Sequence[Any]], split: bool) -> Any:
    """Return the row as ``tokenizers`` takes it: the inverse of :func:`_sequences`."""
    parts = [sequence if split else sequence[0] for sequence in row]
    return parts[0] if len(parts) == 1 else tuple(parts)


class LazyBatchEncoding(BatchEncoding[Any]):
    """A ``BatchEncoding`` whose ``encodings`` are made when they are asked for: that costs as much
    as encoding the text.
    """

    _built: list[Any] | None = None
    _make: Callable[[], list[Any]] | None = None

    @classmethod
    def of(
        cls, data: dict[str, Any], n_sequences: int, make: Callable[[], list[Any]]
    ) -> LazyBatchEncoding:
        """Return the encoding of ``data``, which is not copied; ``make`` makes the ``encodings``."""
        lazy = cls.__new__(cls)
        vars(lazy).update(data=data, _n_sequences=n_sequences, _make=make)
        return lazy

    @property
    def _encodings(self) -> Any:
        if self._built is None and self._make is not None:
            self._built = self._make()
        return self._built

    @_encodings.setter
    def _encodings(self, encodings: Any) -> None:
        self._built = encodings

    @property
    def is_fast(self) -> bool:
        return self._built is not None or self._make is not None


class NumberEncoding:
    """The encoding of a text with numbers, with the attributes of ``tokenizers.Encoding`` that
    :class:`transformers.BatchEncoding` is filled from. Other attributes are those of ``replaced``,
    the encoding of the text with placeholders. Each of the ``sequences`` (two for a pair) has one
    text, or one per word if it was ``split``.
    """

    def __init__(
        self,
        replaced: Any,
        sequences: Sequence[Sequence[ReplacedText]],
        placeholders: Placeholders,
        split: bool,
    ) -> None:
        self.replaced, self.sequences = replaced, sequences
        self.placeholders, self.split = placeholders, split

    def __getattr__(self, name: str) -> Any:
        return getattr(self.replaced, name)

    def __len__(self) -> int:
        return len(self.replaced)

    def restored(self) -> Any:
        """Return the encoding of the original text."""
        if not any(len(text) for texts in self.sequences for text in texts):
            return self.replaced
        encoding = library().Encoding()
        encoding.__setstate__(json.dumps(self._state()).encode())
        return encoding

    def _state(self) -> dict[str, Any]:
        """Return the state that ``tokenizers`` would pickle for this encoding."""
        state: dict[str, Any] = json.loads(self.replaced.__getstate__())
        return state | {
            "ids": self.ids,
            "tokens": self.tokens,
            "offsets": self.offsets,
            "overflowing": [encoding._state() for encoding in self.overflowing],
        }

    @cached_property
    def _replaced_ids(self) -> list[int]:
        return list(self.replaced.ids)

    @cached_property
    def ids(self) -> list[int]:
        return self.placeholders.source_ids(self._replaced_ids)

    @property
    def tokens(self) -> list[str]:
        contents, ids = self.placeholders.contents, self.placeholders.ids
        return [
            token[:-1] + contents[token[-1]] if id in ids else token
            for token, id in zip(self.replaced.tokens, self._replaced_ids, strict=True)
        ]

    @cached_property
    def overflowing(self) -> list[NumberEncoding]:
        rest = self.sequences, self.placeholders, self.split
        return [NumberEncoding(row, *rest) for row in self.replaced.overflowing]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        starts, stops = (places.copy() for places in self._replaced_spans)
        for text, where in self._tokens_of_texts:
            starts[where], stops[where] = text.original(starts[where], stops[where])
        return list(zip(starts.tolist(), stops.tolist(), strict=True))

    @cached_property
    def _replaced_spans(self) -> tuple[Ints, Ints]:
        """Starts and stops of every token in its text with placeholders."""
        flat = itertools.chain.from_iterable(self.replaced.offsets)  # quicker than of tuples
        starts, stops = np.fromiter(flat, np.int64, 2 * len(self)).reshape(-1, 2).T
        return starts, stops

    @cached_property
    def _tokens_of_texts(self) -> list[tuple[ReplacedText, Ints]]:
        """The texts that hold numbers, and the tokens of each."""
        sequence_of = _or_none(self.replaced.sequence_ids)
        word_of = _or_none(self.replaced.word_ids) if self.split else np.zeros(len(self), np.int64)
        return [
            (text, np.flatnonzero((sequence_of == k) & (word_of == word)))
            for k, texts in enumerate(self.sequences)
            for word, text in enumerate(texts)
            if len(text)
        ]

    @property
    def number_positions(self) -> tuple[Ints, Ints, Ints]:
        """(positions, numbers, symbols): where tokens stand for numbers, the number of the call that
        each stands for, and which of the number's tokens it is. Of numbers that stay text, only the
        token in which one begins, of several the first.
        """
        starts, stops = self._replaced_spans
        ids = self.placeholders.ids
        is_placeholder = np.array([id in ids for id in self._replaced_ids], np.bool_)
        parts = [(np.empty(0, np.int64),) * 3]
        for text, where in self._tokens_of_texts:
            if text.numbers_stay:
                parts.append(_first_tokens(text, where, starts[where], stops[where]))
                continue
            where = where[is_placeholder[where]]
            last = stops[where] - 1
            number = text.numbers_at(last)
            parts.append((where, number + text.first, last - text.placeholder_starts[number]))
        tokens, numbers, symbols = map(np.concatenate, zip(*parts, strict=True))
        return tokens, numbers, symbols


def _or_none(places: list[int | None]) -> Ints:
    return np.array([-1 if place is None else place for place in places], np.int64)


def _first_tokens(
    text: ReplacedText, where: Ints, starts: Ints, stops: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return the tokens of numbers that stay text: the token in which each number begins, if it was
    not cut off, and the first number that begins there.
    """
    if not len(where):
        return where, where, where
    token = np.searchsorted(np.maximum.accumulate(stops), text.starts, "right")
    covered = np.minimum(starts, stops - 1)  # a digit may have been trimmed to nothing
    begins = np.append(covered, np.iinfo(np.int64).max)[token]
    # After the start of the first token there was more.
    there = (begins < text.stops) & ((token > 0) | (begins <= text.starts))
    tokens, first = np.unique(token[there], return_index=True)
    return where[tokens], np.flatnonzero(there)[first] + text.first, np.zeros(len(tokens), np.int64)
