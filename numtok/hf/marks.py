"""Texts with each number replaced by marks: private-use characters that a copy of the tokenizer has as added tokens in place of ``[NUM]``.

In: the texts of one call. Out: marked texts, and where each number was. What ``tokenizers`` makes of them is what it would make of the text with
``[NUM]`` in place of each number, except that a literal ``[NUM]`` is ordinary text. A spelled-out number is one mark per token.

A tokenizer's ids do not depend on what its added tokens are called, so the copy gives the same ids; the symbols of a spelled-out number that are
words of the vocabulary (``6`` in GPT-2) get an added token beside it in the copy, and their own id afterwards.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays.text_rows import TextRows
from numtok.engines.interface import Slots
from numtok.engines.private_use import CodePoints, unused, used_in, used_in_tokens
from numtok.numbers.numbers import Numbers
from numtok.tokenizer.tokenizer import Tokenizer

Ints = npt.NDArray[np.int64]

MOST_KEPT = 2  # copies of a tokenizer, each with other marks


class Marks:
    """The copy of a tokenizer that knows marks.

    Attributes:
        tokenizer: the ``tokenizers.Tokenizer``.
        code_points: int64, those of the marks.
        ids: int64, the source's id for each id of the copy.
        contents: what a mark stands for, by mark.
        probe: the encoding of some text, without special tokens.
    """

    def __init__(self, numtok: Tokenizer, used: CodePoints) -> None:
        import tokenizers

        marked = _marked_tokens(numtok)
        self.code_points = unused(np.union1d(used, used_in_tokens(numtok.config)), len(marked))
        entries = _marked_entries(numtok, marked, [chr(code) for code in self.code_points.tolist()])
        self.tokenizer = tokenizers.Tokenizer.from_str(
            json.dumps(numtok.config | {"added_tokens": entries, "truncation": None, "padding": None})
        )
        self.probe = self.tokenizer.encode("a", add_special_tokens=False)  # now: calls set truncation and padding
        characters = list(map(chr, self.code_points.tolist()))
        self.contents = {character: content for character, (_, content) in zip(characters, marked, strict=True)}
        self._code_points = {number: code for (number, _), code in zip(marked, self.code_points.tolist(), strict=True)}
        self._pattern = re.compile(f"[{''.join(characters)}]" if characters else "(?!)")  # Subword has no tokens: matches nowhere
        self.ids = np.arange(numtok.vocab_size + len(marked))
        for number, code in self._code_points.items():
            copied = self.tokenizer.token_to_id(chr(code))
            self.ids[copied] = number
        self.is_mark = np.zeros(len(self.ids), np.bool_)
        self.is_mark[[number for number in map(self.tokenizer.token_to_id, _forms(self.contents)) if number is not None]] = True
        self.renames = bool(np.any(self.ids != np.arange(len(self.ids))))

    def spell(self, ids: npt.NDArray[np.int32]) -> str:
        """The marks of number tokens, one each."""
        table = np.zeros(int(ids.max(initial=0)) + 1, np.uint32)
        for number in np.unique(ids).tolist():
            table[number] = self._code_points[number]
        return table[ids].astype("<u4").tobytes().decode("utf-32-le")

    def replaced(self, text: str, surfaces: Sequence[str]) -> str | None:
        """``text`` with its marks, in order, replaced; None if there are not as many, as the text itself has some of the characters."""
        pieces = self._pattern.split(text)
        if len(pieces) != len(surfaces) + 1:
            return None
        return "".join(piece + surface for piece, surface in zip(pieces, [*surfaces, ""], strict=True))

    def occur_in(self, used: CodePoints) -> bool:
        """Whether one of the characters is among those used in a text."""
        return bool(np.isin(used, self.code_points).any())


def _forms(contents: dict[str, str]) -> list[str]:
    return [form for mark in contents for form in (mark, f" {mark}")]


def _spaced(numtok: Tokenizer) -> set[str]:
    """The second forms, with a space, of numtok's own tokens."""
    own = numtok.own_tokens
    return {content for content in own if content.startswith(" ") and content[1:] in own and content in numtok.tokens}


def _marked_tokens(numtok: Tokenizer) -> list[tuple[int, str]]:
    """(id, content) of each token that gets a mark: every one of numtok's own, in use or not, as none of them is read in a text."""
    own, spaced = numtok.own_tokens, _spaced(numtok)
    symbols = {number: content for content, number in numtok.tokens.items() if content not in own}
    return [(number, content) for content, number in own.items() if content not in spaced] + list(symbols.items())


def _marked_entries(numtok: Tokenizer, marked: Sequence[tuple[int, str]], characters: Sequence[str]) -> list[dict[str, Any]]:
    """The entries of added_tokens, with the characters as the marks of those tokens."""
    own, spaced = numtok.own_tokens, _spaced(numtok)
    mark_of = {content: character for (_, content), character in zip(marked, characters, strict=True)}
    entries = []
    for token in numtok.config["added_tokens"]:
        content = token["content"]
        if content in spaced:
            token = token | {"content": " " + mark_of[content[1:]]}
        elif content in own:
            token = token | {"content": mark_of[content]}
        entries.append(token)
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    symbols = [content for _, content in marked if content not in own]
    return entries + [{"id": numtok.vocab_size + k, "content": mark_of[content], **flags} for k, content in enumerate(symbols)]


@dataclass(frozen=True, eq=False)
class MarkedText:
    """One marked text, with n numbers.

    Attributes:
        text: with marks.
        first: the call's number of its first number.
        starts, stops: int64[n], characters of each number in the original text, half-open.
        mark_starts, mark_stops: int64[n], likewise of its marks in the marked text.
        numbers_stay: the numbers have no marks but stay text (``Subword``); the two pairs of places are then the same.
    """

    text: str
    first: int
    starts: Ints
    stops: Ints
    mark_starts: Ints
    mark_stops: Ints
    numbers_stay: bool = False

    def __len__(self) -> int:
        return len(self.starts)

    def between(self) -> list[str]:
        """The pieces of the text between the numbers, of a text without marks."""
        edges = zip([0, *self.stops.tolist()], [*self.starts.tolist(), len(self.text)], strict=True)
        return [self.text[first:last] for first, last in edges if first < last]

    def numbers_at(self, characters: Ints) -> Ints:
        """int64[k]: which of the n numbers' marks each character of the marked text is, -1 for none."""
        if not len(self):
            return np.full(len(characters), -1)
        nearest = np.searchsorted(self.mark_starts, characters, "right") - 1
        return np.where((nearest >= 0) & (characters < self.mark_stops[np.maximum(nearest, 0)]), nearest, -1)

    def original(self, starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
        """Spans of the marked text in the original one; a mark's is that of the whole number."""
        if self.numbers_stay:
            return starts, stops
        return self._moved(starts, 0), self._moved(stops, 1)

    def _moved(self, places: Ints, is_stop: int) -> Ints:
        if not len(self):
            return places
        inside = self.numbers_at(places - is_stop)
        behind = np.searchsorted(self.mark_stops, places, "right")  # how many numbers end at or before the place
        ends, mark_ends = np.append(self.stops, 0), np.append(self.mark_stops, 0)  # one more, for [-1]
        moved = places + np.where(behind > 0, ends[behind - 1] - mark_ends[behind - 1], 0)
        edges = self.stops if is_stop else self.starts
        return np.where(inside >= 0, edges[np.maximum(inside, 0)], moved)


def with_numbers_in_place(texts: Sequence[str], rows: TextRows, numbers: Numbers) -> list[MarkedText]:
    """``texts`` with the numbers left in place."""
    starts, stops = _characters(rows, numbers)
    edges = numbers.per_document().tolist()
    spans = ((first, starts[first:last], stops[first:last]) for first, last in itertools.pairwise(edges))
    return [MarkedText(text, first, a, b, a, b, numbers_stay=True) for text, (first, a, b) in zip(texts, spans, strict=True)]


def with_numbers_marked(texts: Sequence[str], rows: TextRows, numbers: Numbers, slots: Slots, marks: Marks) -> list[MarkedText]:
    """``texts`` with the numbers replaced by marks."""
    spelled = marks.spell(slots.plain)
    starts, stops = _characters(rows, numbers)
    begins = slots.offsets
    per_text = numbers.per_document().tolist()
    marked = []
    for text, first, last in zip(texts, per_text[:-1], per_text[1:], strict=True):
        a, b = starts[first:last], stops[first:last]
        lengths = np.diff(begins[first : last + 1])
        mark_starts = a - np.concatenate([[0], np.cumsum((b - a) - lengths)[:-1]]) if last > first else a
        pieces, at = [], 0
        for k, start, stop in zip(range(first, last), a.tolist(), b.tolist(), strict=True):
            pieces += [text[at:start], spelled[begins[k] : begins[k + 1]]]
            at = stop
        pieces.append(text[at:])
        marked.append(MarkedText("".join(pieces), first, a, b, mark_starts, mark_starts + lengths))
    return marked


def _characters(rows: TextRows, numbers: Numbers) -> tuple[Ints, Ints]:
    """Starts and stops as characters within each row, not bytes."""
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    follows = (rows.text[first:last] & 0xC0) == 0x80  # bytes that do not begin a character
    if not len(numbers) or not follows.any():
        return numbers.start, numbers.stop
    before = np.zeros(last - first + 1, np.int64)
    np.cumsum(follows, out=before[1:])
    base = rows.offsets[numbers.document] - first
    return numbers.start - (before[base + numbers.start] - before[base]), numbers.stop - (before[base + numbers.stop] - before[base])


def marks_for(cached: list[Marks], numtok: Tokenizer, texts: Sequence[str]) -> Marks:
    """Marks that do not occur in the texts; ``cached`` keeps the last ones made.

    Raises:
        InputError: if the texts use nearly every private-use character.
    """
    used = used_in("".join(text for text in texts if not text.isascii()))
    for marks in cached:
        if not marks.occur_in(used):
            return marks
    cached[MOST_KEPT - 1 :] = []
    cached.insert(0, Marks(numtok, used))
    return cached[0]
