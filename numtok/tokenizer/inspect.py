"""Look at one text as several tokenizers see it: the numbers in it, the tokens, and the tensors.

In: a text and tokenizers. Out: plain data for whoever prints it: ``Inspection`` with one ``View``
    per tokenizer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays.text_rows import TextRows
from numtok.engines.config import vocabulary_of
from numtok.engines.engine import Slots
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan
from numtok.representations import SpelledOut
from numtok.tokenizer.token_texts import contents_of, is_lossless
from numtok.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class NumberInText:
    """A number in the text: ``start`` and ``stop`` in characters, the exact value, and that value
    as float64.
    """

    text: str
    start: int
    stop: int
    value: Decimal
    as_float: float


@dataclass(frozen=True)
class Token:
    """A token of an inspected text: id, text (a part of a character as ``\\xe2``), index of the
    number it belongs to (None: text), place value.
    """

    id: int
    text: str
    number: int | None
    place: int | None = None


@dataclass(frozen=True)
class View:
    """Tokens and columns of the inspected text, by one tokenizer."""

    names: tuple[str, ...]  # of its representations, with their options, as ``parse`` takes them
    tokens: tuple[Token, ...]  # all of them, in order
    # index into ``Inspection.numbers`` of each number that became number tokens; the others stay
    # text
    selected: tuple[int, ...]
    columns: dict[str, npt.NDArray[Any]]  # the tensors, one row per selected number
    engine: str  # what encoded the text between the numbers
    fitted: tuple[str, ...] = ()  # names of those that had no fit and got one to these numbers

    @property
    def per_number(self) -> float | None:
        """Mean number of tokens that a selected number costs; None without one."""
        of_numbers = sum(token.number is not None for token in self.tokens)
        return of_numbers / len(self.selected) if self.selected else None


@dataclass(frozen=True)
class Inspection:
    """A text, the numbers that the grammar finds, and one view per tokenizer."""

    text: str
    numbers: tuple[NumberInText, ...]
    views: tuple[View, ...]


def inspect_text(text: str, tokenizers: Sequence[Tokenizer]) -> Inspection:
    """Look at ``text`` through tokenizers of one grammar. What has to be fitted to a corpus, as bins
    of quantiles, and is not, is fitted to the numbers of the text.
    """
    scanned = scan([text], tokenizers[0].grammar)
    floats = scanned.to_float64().tolist()
    numbers = tuple(
        NumberInText(n.text, n.start, n.stop, n.value, as_float)
        for n, as_float in zip(scanned, floats, strict=True)
    )
    return Inspection(text, numbers, tuple(_view(text, tokenizer) for tokenizer in tokenizers))


def subword_spans(
    tokenizer: Tokenizer, numbers: Numbers
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (first, last) token that overlaps each number, among the ids that the source tokenizer
    alone gives to ``numbers.rows``.
    """
    encoded = tokenizer.engine.encode(numbers.rows, Slots.none(len(numbers.rows)))
    ends = dataclasses.replace(numbers, start=_last_characters(numbers))
    first_tokens = tokenizer.engine.first_tokens
    return first_tokens(encoded, numbers), first_tokens(encoded, ends)


def _last_characters(numbers: Numbers) -> npt.NDArray[np.int64]:
    """Return int64[n]: where the last character of each number begins."""
    base = numbers.rows.offsets[numbers.document]
    start = numbers.stop - 1
    for _ in range(3):  # a character has up to three bytes after its first
        start = start - ((numbers.rows.text[base + start] & 0xC0) == 0x80)
    return start


def token_counts(tokenizer: Tokenizer, numbers: Numbers) -> npt.NDArray[np.int64]:
    """Return int64[n]: how many tokens each number becomes, for selected numbers."""
    first = tokenizer.representations[0]
    if isinstance(first, SpelledOut):
        return first.token_counts(numbers)
    if not first.stays_text:
        return np.ones(len(numbers), np.int64)
    begin, last = subword_spans(tokenizer, numbers)
    return last - begin + 1


def _fitted(text: str, tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer, with what is needs_fit fitted to the numbers of the text."""
    numbers = scan([text], tokenizer.grammar)
    if not tokenizer.selector.carries_sign:
        numbers = numbers.without_sign()
    values = numbers.to_float64()
    return tokenizer.with_options(
        [one.fit_to(values) if one.needs_fit else one for one in tokenizer.representations]
    )


def _view(text: str, tokenizer: Tokenizer) -> View:
    fitted = tuple(one.spec() for one in tokenizer.representations if one.needs_fit)
    tokenizer = _fitted(text, tokenizer) if fitted else tokenizer
    encoding = tokenizer.encode(text)
    numbers, _, is_selected = tokenizer.selector.select(TextRows.of([text]))
    selected = tuple(np.flatnonzero(is_selected).tolist())
    first, counts = encoding["number_index"], token_counts(tokenizer, numbers)
    spans = zip(selected, first.tolist(), (first + counts).tolist(), strict=True)
    has_places = "place_value" in encoding.batch.schema.names
    places = encoding["place_value"].tolist() if has_places else None
    tokens = tokens_of(tokenizer, encoding["input_ids"].tolist(), places, spans)
    names = tuple(one.spec() for one in tokenizer.representations)
    declared = (column for one in tokenizer.representations for column in one.columns().values())
    columns = {column.name: encoding[column.name] for column in declared if column.per == "number"}
    return View(names, tokens, selected, columns, tokenizer.engine.name, fitted)


def tokens_of(
    tokenizer: Tokenizer,
    ids: list[int],
    places: list[int] | None,
    spans: Iterable[tuple[int, int, int]],
) -> tuple[Token, ...]:
    """Return tokens, with place values if there are any, and the numbers whose spans hold them."""
    owner: dict[int, int] = {}
    for number, begin, stop in spans:
        owner |= dict.fromkeys(range(begin, stop), number)
    places_or_none: Sequence[int | None] = places or [None] * len(ids)
    shown = zip(ids, _token_texts(tokenizer, ids), places_or_none, strict=True)
    return tuple(
        Token(id, text, owner.get(at), place) for at, (id, text, place) in enumerate(shown)
    )


def _token_texts(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    """Return the text of each token: its characters for byte-level tokenizers, else the token as it
    is in the vocabulary.
    """
    if is_lossless(tokenizer.config):
        contents = contents_of(tokenizer.config, set(ids))
        return [contents[token].decode("utf-8", "backslashreplace") for token in ids]
    names = {number: token for token, number in vocabulary_of(tokenizer.config).items()}
    names |= {token["id"]: token["content"] for token in tokenizer.config["added_tokens"]}
    return [names.get(token, f"#{token}") for token in ids]
