"""Look at one text as several tokenizers see it: the numbers in it, the tokens, and the tensors.

In: a text and tokenizers. Out: plain data for whoever prints it: ``Inspection`` with one ``View`` per tokenizer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.engines.choose import Slots, first_tokens
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import extract, scan
from numtok.representations import SpelledOut, Subword
from numtok.tokenizer import detokenize as decode
from numtok.tokenizer.tokenizer import Encoding, Tokenizer

SIGNS = "+-\u2212"  # a representation may leave the sign in the text


@dataclass(frozen=True)
class Found:
    """A number in the text: ``start`` and ``stop`` in characters, the exact value, and that value as float64."""

    text: str
    start: int
    stop: int
    value: Decimal
    as_float: float


@dataclass(frozen=True)
class Token:
    """One token: id, text (a part of a character as ``\\xe2``), the number it belongs to (None: text), place value."""

    id: int
    text: str
    number: int | None
    place: int | None = None


@dataclass(frozen=True)
class View:
    """What one tokenizer makes of the text.

    Attributes:
        names: of its representations.
        tokens: all of them, in order.
        taken: index into ``Inspection.numbers`` of each number that became number tokens; the others stay text.
        columns: the tensors, one row per taken number.
        engine: what encoded the text between the numbers.
    """

    names: tuple[str, ...]
    tokens: tuple[Token, ...]
    taken: tuple[int, ...]
    columns: dict[str, npt.NDArray[Any]]
    engine: str

    @property
    def per_number(self) -> float | None:
        """Mean number of tokens that a taken number costs; None without one."""
        return sum(token.number is not None for token in self.tokens) / len(self.taken) if self.taken else None


@dataclass(frozen=True)
class Inspection:
    """A text, the numbers that the grammar finds, and one view per tokenizer."""

    text: str
    numbers: tuple[Found, ...]
    views: tuple[View, ...]


def inspect_text(text: str, tokenizers: Sequence[Tokenizer]) -> Inspection:
    """Look at ``text`` through each of the tokenizers; the numbers are those of the first one's grammar."""
    found = extract(text, tokenizers[0].grammar)
    floats = scan([text], tokenizers[0].grammar).to_float64().tolist()
    numbers = tuple(Found(one.text, one.start, one.stop, one.value, value) for one, value in zip(found, floats, strict=True))
    return Inspection(text, numbers, tuple(_view(text, tokenizer) for tokenizer in tokenizers))


def subword_spans(tokenizer: Tokenizer, numbers: Numbers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(first, last) token that overlaps each number, among the ids that the source tokenizer alone gives to ``numbers.rows``."""
    nothing = np.empty(0, np.int32)
    encoded = tokenizer.engine.encode(numbers.rows, Slots.of(numbers.select(nothing), nothing, nothing, np.zeros(1, np.int64)))
    ends = dataclasses.replace(numbers, start=_last_characters(numbers))
    return first_tokens(tokenizer.engine, encoded, numbers), first_tokens(tokenizer.engine, encoded, ends)


def _last_characters(numbers: Numbers) -> npt.NDArray[np.int64]:
    """int64[n]: where the last character of each number begins."""
    base = numbers.rows.offsets[numbers.document]
    start = numbers.stop - 1
    for _ in range(3):  # a character has up to three bytes after its first
        start = start - ((numbers.rows.text[base + start] & 0xC0) == 0x80)
    return start


def taken_numbers(tokenizer: Tokenizer, numbers: Numbers) -> npt.NDArray[np.bool_]:
    """bool[n]: which numbers the representations take; the others stay text."""
    if isinstance(tokenizer.numbers[0], Subword):
        return np.ones(len(numbers), np.bool_)
    taken: npt.NDArray[np.bool_] = np.logical_and.reduce([one.fits(numbers) | (one.overflow == "clip") for one in tokenizer.numbers])
    return taken


def token_counts(tokenizer: Tokenizer, numbers: Numbers) -> npt.NDArray[np.int64]:
    """int64[n]: how many tokens each number becomes, for numbers that are taken."""
    first = tokenizer.numbers[0]
    if isinstance(first, Subword):
        begin, last = subword_spans(tokenizer, numbers)
        return last - begin + 1
    if isinstance(first, SpelledOut):
        return np.diff(first.encode(numbers).offsets) + 2 * first.framed
    return np.ones(len(numbers), np.int64)


def _view(text: str, tokenizer: Tokenizer) -> View:
    encoding = tokenizer.encode(text, keep_text=True)
    numbers = scan([text], tokenizer.grammar)
    taken = _in_order(encoding["number_text"].tolist(), numbers, taken_numbers(tokenizer, numbers))
    counts = token_counts(tokenizer, numbers.select(np.array(taken, np.int64)))
    owner: dict[int, int] = {}
    for number, first, count in zip(taken, encoding["number_index"].tolist(), counts.tolist(), strict=True):
        owner |= dict.fromkeys(range(first, first + count), number)
    ids = encoding["input_ids"].tolist()
    shown = _token_texts(tokenizer, ids)
    places = encoding["place_value"].tolist() if "place_value" in encoding.batch.schema.names else [None] * len(ids)
    tokens = tuple(Token(ids[k], shown[k], owner.get(k), places[k]) for k in range(len(ids)))
    return View(tuple(one.name for one in tokenizer.numbers), tokens, taken, _columns(encoding, tokenizer), tokenizer.engine.name)


def _in_order(surfaces: list[str], numbers: Numbers, taken: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """Which of the numbers have these surfaces; those within the tokenizer's own added tokens are missing among them."""
    written = numbers.text().to_pylist()
    matched: list[int] = []
    for number in np.flatnonzero(taken).tolist():
        if len(matched) < len(surfaces) and written[number].lstrip(SIGNS) == surfaces[len(matched)].lstrip(SIGNS):
            matched.append(number)
    return tuple(matched)


def _columns(encoding: Encoding, tokenizer: Tokenizer) -> dict[str, npt.NDArray[Any]]:
    """The representations' own tensors, one value per number."""
    columns = (column for representation in tokenizer.numbers for column in representation.columns().values())
    return {column.name: encoding[column.name] for column in columns if column.per == "number"}


def _token_texts(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    """What each token stands for: its characters for byte-level tokenizers, else the token as it is in the vocabulary."""
    if decode.is_lossless(tokenizer.config):
        table = decode.token_bytes(tokenizer.config)
        pieces = [table.values[table.offsets[one] : table.offsets[one + 1]].tobytes() for one in ids]
        return [piece.decode("utf-8", "backslashreplace") for piece in pieces]
    vocabulary = tokenizer.config["model"]["vocab"]
    contents = (
        dict(enumerate(token for token, _ in vocabulary)) if isinstance(vocabulary, list) else {n: token for token, n in vocabulary.items()}
    )
    contents |= {token["id"]: token["content"] for token in tokenizer.config["added_tokens"]}
    return [contents.get(one, f"#{one}") for one in ids]
