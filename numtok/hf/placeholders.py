"""Placeholders: private-use characters that stand for numbers while ``tokenizers`` has a text. A copy
of the tokenizer has them as added tokens in place of ``[NUM]``, so that a literal ``[NUM]`` is
ordinary text; a spelled-out number is one placeholder per token. Where numbers are tokens of the
text, placeholders may be rows of the vocabulary
(:func:`numtok.engines.vocabulary_rows.with_rows_in_text`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from transformers import PreTrainedTokenizerFast

from numtok.arrays import memory
from numtok.engines.config import ordinary_token
from numtok.engines.engine import Slots
from numtok.engines.hf_tokenizers import load
from numtok.engines.tokenizers_engine import unused, used_in, used_in_tokens
from numtok.engines.vocabulary_rows import with_rows_in_text
from numtok.numbers.numbers import Numbers
from numtok.representations import NUM
from numtok.tokenizer.tokenizer import Tokenizer

Ints = npt.NDArray[np.int64]

MOST_REMEMBERED = 1 << 14  # numbers of short texts


class Placeholders:
    """The copy of a tokenizer that knows placeholders, characters that do not occur in the texts to
    ``avoid``. InputError if these use nearly every private-use character.

    Attributes:
        tokenizer: the ``tokenizers.Tokenizer``.
        number: the placeholder of a number that is one token; empty if there is none.
        contents: the token that each placeholder stands for.
        renamed: the source's id of each id that only the copy has, for symbols that are words of
            the vocabulary (``6`` in GPT-2).
        ids: those of the placeholders in the copy.
        any_id: one of them; 0 if there is none.
        probe: the encoding of some text, without special tokens.
        by_number: the placeholders of each number that a short text held, or the number itself if
            it stays.
    """

    def __init__(self, numtok: Tokenizer, avoid: Sequence[str]) -> None:
        """Copy the tokenizer, with a placeholder in the place of each token of numtok's own, and an
        added one for each symbol that is a word of the vocabulary.
        """
        used = used_in("".join(text for text in avoid if not text.isascii()))
        own_tokens = numtok.own_tokens
        # the second forms, with a space
        spaced = {
            one
            for one in own_tokens
            if one[:1] == " " and one[1:] in own_tokens and one in numtok.tokens
        }
        symbols = {
            content: id for content, id in numtok.tokens.items() if content not in own_tokens
        }
        replaced = {
            content: id for content, id in own_tokens.items() if content not in spaced
        } | symbols
        free = unused(np.union1d(used, used_in_tokens(numtok.config)), len(replaced))
        placeholder_of = dict(zip(replaced, map(chr, free.tolist()), strict=True))
        config = numtok.config | {"truncation": None, "padding": None}
        replaced_config = None
        if numtok.spelling is not None and numtok.spelling.reading is not None:
            replaced_config = with_rows_in_text(config, list(placeholder_of.values()))
        if replaced_config is None:
            names = {
                one: placeholder_of.get(one) or f" {placeholder_of[one[1:]]}" for one in own_tokens
            }
            shown = (names.get(one["content"], one["content"]) for one in config["added_tokens"])
            pairs = zip(config["added_tokens"], shown, strict=True)
            entries = [token | {"content": content} for token, content in pairs]
            following = itertools.count(numtok.vocab_size)
            entries += map(ordinary_token, following, (placeholder_of[one] for one in symbols))
            replaced_config = config | {"added_tokens": entries}
        self.tokenizer = load(replaced_config)
        self.probe = self.tokenizer.encode("a", add_special_tokens=False)
        self.contents = {one: content for content, one in placeholder_of.items()}
        self.number = placeholder_of.get(NUM, "")
        self.by_number: dict[bytes, bytes] = {}
        self._by_id = {id: placeholder_of[content] for content, id in replaced.items()}
        find = self.tokenizer.token_to_id
        self.renamed = {find(one): id for id, one in self._by_id.items() if find(one) != id}
        self.any_id = int(find(next(iter(self.contents), "")) or 0)
        forms = [find(form) for one in self.contents for form in (one, f" {one}")]
        self.ids = frozenset(id for id in forms if id is not None)

    def of_ids(self, ids: list[int]) -> str:
        """Return the placeholders of tokens, by their ids in the source."""
        return "".join([self._by_id[id] for id in ids])

    def of_slots(self, slots: Slots) -> list[str]:
        """Return the placeholders of each number."""
        every = self.of_ids(slots.unspaced.tolist())
        edges = itertools.pairwise(slots.offsets.tolist())
        return [every[first:last] for first, last in edges]

    def source_ids(self, ids: list[int]) -> list[int]:
        """Return the ids of the source tokenizer for ids of the copy with placeholders."""
        return [self.renamed.get(id, id) for id in ids] if self.renamed else ids

    def texts_between(self, text: str, count: int) -> list[str] | None:
        """Return what stands before, between and after the placeholders of ``text``; None if there
        are not ``count``, as the text itself has some of the characters.
        """
        places = [at for at, one in enumerate(text) if one in self.contents]
        if len(places) != count:
            return None
        edges = zip([0, *(at + 1 for at in places)], [*places, len(text)], strict=True)
        return [text[start:stop] for start, stop in edges]

    def occur_in(self, texts: Sequence[str]) -> bool:
        """Whether one of the characters is in one of the texts."""
        for text in texts:  # not a generator, which costs more than the rest
            if not (text.isascii() or self.contents.keys().isdisjoint(text)):
                return True
        return False


def with_backend(tokenizer: PreTrainedTokenizerFast, backend: Any) -> PreTrainedTokenizerFast:
    """Return a stock tokenizer that is the same except for the backend."""
    stock = PreTrainedTokenizerFast.__new__(PreTrainedTokenizerFast)
    vars(stock).update(vars(tokenizer), _tokenizer=backend)
    return stock


@dataclass(frozen=True, eq=False)
class ReplacedText:
    """A text in which placeholders replace n numbers, or which the numbers stay in (``Subword``)."""

    text: str  # with placeholders
    first: int  # the index of its first number among all numbers of the call
    starts: Ints  # int64[n], characters of each number in the original text, half-open
    stops: Ints
    numbers_stay: bool
    # int64[n], characters of each number's placeholders in ``text``; if numbers stay, of the number
    placeholder_starts: Ints
    placeholder_stops: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def numbers_at(self, characters: Ints) -> Ints:
        """Return int64[k]: the number of which each character of ``text`` is a placeholder, or -1."""
        if not len(self):
            return np.full(len(characters), -1)
        nearest = np.searchsorted(self.placeholder_starts, characters, "right") - 1
        inside = (nearest >= 0) & (characters < self.placeholder_stops[np.maximum(nearest, 0)])
        return np.where(inside, nearest, -1)

    def original(self, starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
        """Return spans of ``text`` in the original text. The span of a placeholder is that of the
        whole number.
        """
        if self.numbers_stay or not len(self):
            return starts, stops
        return self._moved(starts, 0, self.starts), self._moved(stops, 1, self.stops)

    def _moved(self, places: Ints, is_stop: int, edges: Ints) -> Ints:
        inside = self.numbers_at(places - is_stop)
        passed = np.searchsorted(self.placeholder_stops, places, "right")  # numbers before
        shifts = np.concatenate([[0], self.stops - self.placeholder_stops])
        return np.where(inside >= 0, edges[np.maximum(inside, 0)], places + shifts[passed])


def replace_numbers(
    texts: Sequence[str], numbers: Numbers, placeholders: Sequence[str] | None
) -> list[ReplacedText]:
    """Return ``texts`` with each number replaced by its placeholders; None: the numbers stay."""
    starts, stops = _characters(texts, numbers)
    edges = itertools.pairwise(numbers.per_document().tolist())
    replaced = []
    for text, (first, last) in zip(texts, edges, strict=True):
        spans = starts[first:last], stops[first:last]
        if placeholders is None:
            replaced.append(ReplacedText(text, first, *spans, True, *spans))
            continue
        parts: list[str] = []
        at = 0
        of_text = placeholders[first:last]
        for start, stop, one in zip(spans[0].tolist(), spans[1].tolist(), of_text, strict=True):
            parts += (text[at:start], one)
            at = stop
        widths = np.fromiter(map(len, of_text), np.int64, len(of_text))
        new_stops = spans[1] - np.cumsum(spans[1] - spans[0] - widths)
        new_spans = new_stops - widths, new_stops
        whole = "".join([*parts, text[at:]])
        replaced.append(ReplacedText(whole, first, *spans, False, *new_spans))
    return replaced


def _characters(texts: Sequence[str], numbers: Numbers) -> tuple[Ints, Ints]:
    """Convert starts and stops in bytes to characters within each row."""
    if not len(numbers) or all(map(str.isascii, texts)):
        return numbers.start, numbers.stop
    rows = numbers.rows
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    follows = (rows.text[first:last] & 0xC0) == 0x80  # bytes that do not begin a character
    before = memory.offsets_of(follows)
    base = rows.offsets[numbers.document] - first
    starts, stops = (at - before[base + at] + before[base] for at in (numbers.start, numbers.stop))
    return starts, stops
