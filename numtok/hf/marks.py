"""Texts with each number replaced by marks: private-use characters that a copy of the tokenizer has
as added tokens in place of ``[NUM]``.

In: the texts of one call. Out: marked texts, and where each number was. What ``tokenizers`` makes
    of them is what it would make of the text with ``[NUM]`` in place of each number, except that a
    literal ``[NUM]`` is ordinary text. A spelled-out number is one mark per token.

A tokenizer's ids do not depend on what its added tokens are called, so the copy gives the same ids;
the symbols of a spelled-out number that are words of the vocabulary (``6`` in GPT-2) get an added
token beside it in the copy, and their own id afterwards.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.engines.interface import Slots
from numtok.engines.private_use import CodePoints, unused, used_in, used_in_tokens
from numtok.numbers.numbers import Numbers
from numtok.representations import NUM
from numtok.tokenizer.tokenizer import Tokenizer

Ints = npt.NDArray[np.int64]

MOST_KEPT = 2  # copies of a tokenizer, each with other marks


class WithoutOffsets:
    """A ``tokenizers.Tokenizer`` for calls that ask for no offsets: it encodes up to a fifth
    faster.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.encode_batch = tokenizer.encode_batch_fast

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    @property
    def encode_special_tokens(self) -> bool:
        return bool(self._tokenizer.encode_special_tokens)

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        self._tokenizer.encode_special_tokens = value


class Marks:
    """The copy of a tokenizer that knows marks.

    Attributes:
        tokenizer: the ``tokenizers.Tokenizer``. without_offsets: the same one, for calls that ask
            for none.
        code_points: int64, those of the marks.
        number: the mark of a number that is one token; empty if there is none.
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
            json.dumps(
                numtok.config | {"added_tokens": entries, "truncation": None, "padding": None}
            )
        )
        self.without_offsets = WithoutOffsets(self.tokenizer)
        self.probe = self.tokenizer.encode(
            "a", add_special_tokens=False
        )  # now: calls set truncation and padding
        characters = list(map(chr, self.code_points.tolist()))
        self.contents = {
            character: content for character, (_, content) in zip(characters, marked, strict=True)
        }
        self.number = next(
            (character for character, content in self.contents.items() if content == NUM), ""
        )
        self._code_points = {
            number: code
            for (number, _), code in zip(marked, self.code_points.tolist(), strict=True)
        }
        self._pattern = re.compile(
            f"[{''.join(characters)}]" if characters else "(?!)"
        )  # Subword has no tokens: matches nowhere
        self.ids = np.arange(numtok.vocab_size + len(marked))
        for number, code in self._code_points.items():
            copied = self.tokenizer.token_to_id(chr(code))
            self.ids[copied] = number
        self.is_mark = np.zeros(len(self.ids), np.bool_)
        self.is_mark[
            [
                number
                for number in map(self.tokenizer.token_to_id, _forms(self.contents))
                if number is not None
            ]
        ] = True
        self.renames = bool(np.any(self.ids != np.arange(len(self.ids))))

    def spell(self, ids: npt.NDArray[np.int32]) -> str:
        """The marks of number tokens, one each."""
        table = np.zeros(int(ids.max(initial=0)) + 1, np.uint32)
        for number in np.unique(ids).tolist():
            table[number] = self._code_points[number]
        return table[ids].astype("<u4").tobytes().decode("utf-32-le")

    def replaced(self, text: str, surfaces: Sequence[str]) -> str | None:
        """``text`` with its marks, in order, replaced; None if there are not as many, as the text
        itself has some of the characters.
        """
        pieces = self._pattern.split(text)
        if len(pieces) != len(surfaces) + 1:
            return None
        return "".join(
            piece + surface for piece, surface in zip(pieces, [*surfaces, ""], strict=True)
        )

    def occur_in(self, texts: Sequence[str]) -> bool:
        """Whether one of the characters is in one of the texts."""
        return any(not text.isascii() and self._pattern.search(text) for text in texts)


def _forms(contents: dict[str, str]) -> list[str]:
    return [form for mark in contents for form in (mark, f" {mark}")]


def _spaced(numtok: Tokenizer) -> set[str]:
    """The second forms, with a space, of numtok's own tokens."""
    own = numtok.own_tokens
    return {
        content
        for content in own
        if content.startswith(" ") and content[1:] in own and content in numtok.tokens
    }


def _marked_tokens(numtok: Tokenizer) -> list[tuple[int, str]]:
    """(id, content) of each token that gets a mark: every one of numtok's own, in use or not, as
    none of them is read in a text.
    """
    own, spaced = numtok.own_tokens, _spaced(numtok)
    symbols = {number: content for content, number in numtok.tokens.items() if content not in own}
    return [(number, content) for content, number in own.items() if content not in spaced] + list(
        symbols.items()
    )


def _marked_entries(
    numtok: Tokenizer, marked: Sequence[tuple[int, str]], characters: Sequence[str]
) -> list[dict[str, Any]]:
    """The entries of added_tokens, with the characters as the marks of those tokens."""
    own, spaced = numtok.own_tokens, _spaced(numtok)
    mark_of = {
        content: character for (_, content), character in zip(marked, characters, strict=True)
    }
    entries = []
    for token in numtok.config["added_tokens"]:
        content = token["content"]
        if content in spaced:
            token = token | {"content": " " + mark_of[content[1:]]}
        elif content in own:
            token = token | {"content": mark_of[content]}
        entries.append(token)
    flags = {
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": False,
    }
    symbols = [content for _, content in marked if content not in own]
    return entries + [
        {"id": numtok.vocab_size + k, "content": mark_of[content], **flags}
        for k, content in enumerate(symbols)
    ]


@dataclass(frozen=True, eq=False)
class MarkedText:
    """One marked text, with n numbers.

    Attributes:
        text: with marks.
        first: the call's number of its first number.
        starts, stops: int64[n], characters of each number in the original text, half-open.
        lengths: int64[n], how many marks it has; None for numbers that have none but stay text
            (``Subword``).
    """

    text: str
    first: int
    starts: Ints
    stops: Ints
    lengths: Ints | None = None

    @property
    def numbers_stay(self) -> bool:
        """Whether the numbers are in the marked text as they were."""
        return self.lengths is None

    @functools.cached_property
    def mark_starts(self) -> Ints:
        """int64[n]: the first character of each number's marks in the marked text."""
        if self.lengths is None or not len(self):
            return self.starts
        shorter = (self.stops - self.starts) - self.lengths
        return np.asarray(self.starts - (np.cumsum(shorter) - shorter))

    @functools.cached_property
    def mark_stops(self) -> Ints:
        """int64[n]: where they end."""
        return self.stops if self.lengths is None else self.mark_starts + self.lengths

    def __len__(self) -> int:
        return len(self.starts)

    def between(self) -> list[str]:
        """The pieces of the text between the numbers, of a text without marks."""
        edges = zip([0, *self.stops.tolist()], [*self.starts.tolist(), len(self.text)], strict=True)
        return [self.text[first:last] for first, last in edges if first < last]

    def numbers_at(self, characters: Ints) -> Ints:
        """int64[k]: which of the n numbers' marks each character of the marked text is, -1 for
        none.
        """
        if not len(self):
            return np.full(len(characters), -1)
        nearest = np.searchsorted(self.mark_starts, characters, "right") - 1
        return np.where(
            (nearest >= 0) & (characters < self.mark_stops[np.maximum(nearest, 0)]), nearest, -1
        )

    def all_marks(self, tokens: Ints) -> tuple[Ints, Ints, Ints] | None:
        """(tokens, numbers, symbols) as of a :class:`NumberEncoding`, given the tokens that are
        marks; None if some of its marks are missing.
        """
        if self.lengths is None or len(tokens) != self.lengths.sum():
            return None
        numbers = np.repeat(np.arange(len(self)), self.lengths)
        symbols = np.arange(len(tokens)) - (np.cumsum(self.lengths) - self.lengths)[numbers]
        return tokens, numbers + self.first, symbols

    def original(self, starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
        """Spans of the marked text in the original one; a mark's is that of the whole number."""
        if self.numbers_stay:
            return starts, stops
        return self._moved(starts, 0), self._moved(stops, 1)

    def original_offsets(
        self, spans: list[tuple[int, int]], tokens: Ints, numbers: Ints, symbols: Ints
    ) -> list[tuple[int, int]]:
        """Likewise of all tokens of this text, in order, given its marks (:meth:`all_marks`); what
        is not of the text is at (0, 0), and stays there.
        """
        numbers = numbers - self.first
        shifts = np.append(
            0, (self.stops - self.mark_stops)[numbers]
        )  # of what is behind each mark
        by = np.repeat(shifts, np.diff(np.concatenate([[0], tokens + 1, [len(spans)]]))).tolist()
        moved = [
            (start + shift, stop + shift) if stop else (start, stop)
            for (start, stop), shift in zip(spans, by, strict=True)
        ]
        edges = (self.starts[numbers].tolist(), self.stops[numbers].tolist())
        for token, symbol, start, stop in zip(
            tokens.tolist(), symbols.tolist(), *edges, strict=True
        ):
            moved[token] = (
                start if symbol else moved[token][0],
                stop,
            )  # the first may take the space before along
        return moved

    def _moved(self, places: Ints, is_stop: int) -> Ints:
        if not len(self):
            return places
        inside = self.numbers_at(places - is_stop)
        behind = np.searchsorted(
            self.mark_stops, places, "right"
        )  # how many numbers end at or before the place
        ends, mark_ends = (
            np.append(self.stops, 0),
            np.append(self.mark_stops, 0),
        )  # one more, for [-1]
        moved = places + np.where(behind > 0, ends[behind - 1] - mark_ends[behind - 1], 0)
        edges = self.stops if is_stop else self.starts
        return np.where(inside >= 0, edges[np.maximum(inside, 0)], moved)


def with_numbers_in_place(texts: Sequence[str], numbers: Numbers) -> list[MarkedText]:
    """``texts`` with the numbers left in place."""
    starts, stops = _characters(texts, numbers)
    edges = numbers.per_document().tolist()
    spans = (
        (first, starts[first:last], stops[first:last]) for first, last in itertools.pairwise(edges)
    )
    return [MarkedText(text, first, a, b) for text, (first, a, b) in zip(texts, spans, strict=True)]


def with_numbers_marked(
    texts: Sequence[str], numbers: Numbers, slots: Slots | None, marks: Marks
) -> list[MarkedText]:
    """``texts`` with the numbers replaced by marks: those of ``slots``, or one each."""
    spelled = (
        itertools.repeat(marks.number)
        if slots is None
        else _cut(marks.spell(slots.plain), slots.offsets.tolist())
    )
    lengths = np.ones(len(numbers), np.int64) if slots is None else np.diff(slots.offsets)
    starts, stops = _characters(texts, numbers)
    places = iter(zip(starts.tolist(), stops.tolist(), spelled, strict=False))
    marked, first = [], 0
    for text, last in zip(texts, numbers.per_document()[1:].tolist(), strict=True):
        pieces: list[str] = []
        at = 0
        for start, stop, own in itertools.islice(places, last - first):
            pieces += (text[at:start], own)
            at = stop
        pieces.append(text[at:])
        marked.append(
            MarkedText(
                "".join(pieces), first, starts[first:last], stops[first:last], lengths[first:last]
            )
        )
        first = last
    return marked


def _cut(text: str, edges: list[int]) -> Iterator[str]:
    return (text[first:last] for first, last in itertools.pairwise(edges))


def _characters(texts: Sequence[str], numbers: Numbers) -> tuple[Ints, Ints]:
    """Starts and stops as characters within each row, not bytes."""
    if not len(numbers) or all(map(str.isascii, texts)):
        return numbers.start, numbers.stop
    rows = numbers.rows
    first, last = int(rows.offsets[0]), int(rows.offsets[-1])
    follows = (rows.text[first:last] & 0xC0) == 0x80  # bytes that do not begin a character
    before = np.zeros(last - first + 1, np.int64)
    np.cumsum(follows, out=before[1:])
    base = rows.offsets[numbers.document] - first
    return numbers.start - (before[base + numbers.start] - before[base]), numbers.stop - (
        before[base + numbers.stop] - before[base]
    )


def marks_for(cached: list[Marks], numtok: Tokenizer, texts: Sequence[str]) -> Marks:
    """Marks that do not occur in the texts; ``cached`` keeps the last ones made.

    Raises:
        InputError: if the texts use nearly every private-use character.
    """
    for marks in cached:
        if not marks.occur_in(texts):
            return marks
    cached[MOST_KEPT - 1 :] = []
    cached.insert(0, Marks(numtok, used_in("".join(text for text in texts if not text.isascii()))))
    return cached[0]
