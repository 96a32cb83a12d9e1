"""Select the numbers of texts that become tokens, and count what becomes of the others.

A number stays text if it is inside an added token of the source tokenizer that the text may contain,
such as ``<extra_id_0>`` or ``<|0.00|>``, or if a representation cannot hold it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.cached import cached_property
from numtok.arrays.text_rows import TextRows
from numtok.engines.hf_tokenizers import complete_library, load
from numtok.engines.special_rows import any_of, spans_in_rows
from numtok.errors import RepresentationError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Numbers
from numtok.numbers.scan import scan_rows
from numtok.numbers.scanner import SHORT_BYTES, rule_arrays, scan_short
from numtok.representations import Representation, SingleToken

Mask = npt.NDArray[np.bool_]


@dataclass
class EncodeReport:
    """Counts of an encoding: texts, tokens, numbers, and numbers that were not encoded exactly.
    Reports add up with ``+``.

    Attributes:
        documents: texts that were encoded.
        bytes: of the texts.
        tokens: that they became.
        numbers: that the grammar found.
        left_as_text: numbers that stay ordinary text, by the representation that cannot hold them.
        clipped: numbers replaced by the nearest that the representation can hold, by
            representation.
        in_added_tokens: digits inside the tokenizer's own added tokens, which are not numbers.
        vanishing: numbers so near to zero after scaling that a model can hardly tell them from it,
            by representation.
        numbers_by_column, left_by_column: of texts that a template made of columns: numbers that
            stand in the values of each column, and those of them that stay ordinary text.

    Example:
        >>> import numtok
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers=numtok.FoNE(3, 2))
        >>> _, report = tokenizer.encode_with_report(["1 to 12345"])
        >>> report.numbers, report.left_as_text
        (2, {'fone': 1})
    """

    documents: int = 0
    bytes: int = 0
    tokens: int = 0
    numbers: int = 0
    left_as_text: dict[str, int] = field(default_factory=dict)
    clipped: dict[str, int] = field(default_factory=dict)
    in_added_tokens: int = 0
    vanishing: dict[str, int] = field(default_factory=dict)
    numbers_by_column: dict[str, int] = field(default_factory=dict)
    left_by_column: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: EncodeReport) -> EncodeReport:
        def add(a: Any, b: Any) -> Any:
            if not isinstance(a, dict):
                return a + b
            return {key: a.get(key, 0) + b.get(key, 0) for key in a | b}

        counts = ((one.name, getattr(self, one.name)) for one in dataclasses.fields(self))
        return EncodeReport(**{name: add(a, getattr(other, name)) for name, a in counts})


class SelectedNumbers(NamedTuple):
    """The numbers that become tokens."""

    numbers: Numbers  # n of them, without their sign if it stays in the text
    report: EncodeReport  # what became of all
    is_selected: Mask  # bool[m], which of the m numbers that ``scan`` finds in these rows they are


class NumberSelector:
    """Selects the numbers that fit the representations, outside the source tokenizer's added tokens."""

    def __init__(
        self,
        representations: Sequence[Representation],
        grammar: Grammar,
        added_tokens: Sequence[Any],
        normalizer: Any,
    ) -> None:
        self.representations, self.grammar = tuple(representations), grammar
        # number tokens stand for numbers with their sign; if one of the representations does not,
        # the sign stays in the text for all
        self.carries_sign = all(one.carries_sign for one in representations)
        ordinary = [token for token in added_tokens if not token["special"]]
        self._with_digits = {
            False: TokensWithDigits(ordinary, normalizer),
            True: TokensWithDigits(list(added_tokens), normalizer),
        }

    def select(self, rows: TextRows, parse_special: bool = False) -> SelectedNumbers:
        """Return the numbers that become tokens. RepresentationError for a number that a
        representation with ``overflow="error"`` cannot hold.
        """
        numbers, outside = self._written(rows, parse_special)
        report = EncodeReport(
            len(rows), rows.nbytes, 0, len(numbers), in_added_tokens=len(outside) - len(numbers)
        )
        numbers.to_float64()  # computed once here, whatever is left out below
        keep = self._held(numbers, report)
        if not keep.all():
            if outside.all():
                outside = keep
            else:
                outside[outside] = keep
            numbers = numbers.leave_out(~keep)
        self._count_inexact(numbers, report)
        memory.trim_memory(rows.nbytes)
        return SelectedNumbers(numbers, report, outside)

    def in_short_text(
        self, text: bytes, parse_special: bool = False
    ) -> list[tuple[int, int, bool]] | None:
        """Return the numbers of :meth:`select` in one short text of valid UTF-8, and those that a
        representation may not hold: (start, stop, whether all surely hold it) of each, without a
        sign that stays in the text; None if only :meth:`select` can tell.
        """
        tokens = self._with_digits[parse_special].spans_in(text)
        if not 0 < len(text) <= SHORT_BYTES or self.grammar.pattern is not None or tokens is None:
            return None
        low, high = self._exact_range
        spans = [
            (start, stop, low <= lowest and top <= high)
            for start, stop, lowest, top in scan_short(text, self._rules)
        ]
        for first, last in tokens:
            spans = [one for one in spans if last <= one[0] or one[1] <= first]
        if self.carries_sign:
            return spans
        return [(*_without_sign(text, start, stop), sure) for start, stop, sure in spans]

    @cached_property
    def _rules(self) -> Any:
        return rule_arrays(self.grammar)

    @cached_property
    def _exact_range(self) -> tuple[int, int]:
        """(start, stop) of the decimal positions that are exact in all representations; empty if only
        ``fits`` can tell.
        """
        ranges = [one.exact_digit_range for one in self.representations]
        return max(one.start for one in ranges), min(one.stop for one in ranges)

    def scan(self, rows: TextRows, parse_special: bool = False) -> tuple[Numbers, Mask]:
        """Return the n numbers of the texts, and bool[n], which of them become tokens."""
        numbers, _ = self._written(rows, parse_special)
        return numbers, self._held(numbers, EncodeReport())

    def _written(self, rows: TextRows, parse_special: bool) -> tuple[Numbers, Mask]:
        """Return (the numbers outside of added tokens, which of those that ``scan`` finds they
        are).
        """
        scanned = scan_rows(rows, self.grammar)
        outside = self._with_digits[parse_special].outside(scanned)
        numbers = scanned if outside.all() else scanned.select(outside)
        return numbers if self.carries_sign else numbers.without_sign(), outside

    def _held(self, numbers: Numbers, report: EncodeReport) -> Mask:
        """Return bool[n]: which numbers all representations take; the others are counted, or an
        error.
        """
        keep = np.ones(len(numbers), np.bool_)
        for representation in self.representations:
            fits = representation.fits(numbers)
            if fits.all():
                continue
            if representation.overflow == "error":
                raise _overflow_error(representation, numbers.select(~fits))
            if representation.overflow == "text" and (left := int(np.count_nonzero(keep > fits))):
                report.left_as_text[representation.name] = left
                keep &= fits
        return keep

    def _count_inexact(self, numbers: Numbers, report: EncodeReport) -> None:
        for representation in self.representations:
            if clipped := int(np.count_nonzero(representation.clipped(numbers))):
                report.clipped[representation.name] = clipped
            if not isinstance(representation, SingleToken):
                continue
            if vanishing := int(np.count_nonzero(representation.near_zero(numbers))):
                report.vanishing[representation.name] = vanishing


def _without_sign(text: bytes, start: int, stop: int) -> tuple[int, int]:
    """Return (start, stop) of one number as :meth:`Numbers.without_sign` does."""
    first = text[start]
    width = 1 if first in b"+-(" else 3 if first == 0xE2 else 0
    return start + width, stop - (first == 0x28)


def _overflow_error(representation: Representation, beyond: Numbers) -> RepresentationError:
    surface = beyond.text()[0].as_py()
    shown = surface if len(surface) <= 60 else f"{surface[:40]}... ({len(surface)} characters)"
    return RepresentationError(
        f"{representation.name} cannot hold {shown}; use overflow='text' (--overflow text) to"
        " leave such numbers as text, or 'clip'",
        document=int(beyond.document[0]),
        byte=int(beyond.start[0]),
    )


# Digits within added tokens
# -------------------------------------------------------------------------------------------------


class TokensWithDigits:
    """The added tokens with a digit that the text may contain. They are also found as the
    normalizer leaves them: ``<9A>`` in ``<9a>``.
    """

    def __init__(
        self, tokens: Sequence[Mapping[str, Any]], normalizer: Mapping[str, Any] | None = None
    ) -> None:
        self._chosen = {
            token["content"]: token for token in tokens if any(map(str.isdecimal, token["content"]))
        }
        self._pattern = any_of([word.encode() for word in self._chosen]) if self._chosen else None
        self._tokens, self._normalizer = list(tokens), normalizer
        # where a token may stand in other letters, or only as a word, `tokenizers` itself must look
        self._needs_finder = any(
            token["single_word"] or (normalizer is not None and token["normalized"])
            for token in self._chosen.values()
        )

    def spans_in(self, text: bytes) -> list[tuple[int, int]] | None:
        """Return the spans of the tokens in one text; None if only :meth:`outside` can tell."""
        if self._pattern is None:
            return []
        if self._needs_finder:
            return None
        return [match.span() for match in self._pattern.finditer(text)]

    def outside(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which numbers do not overlap one of the tokens in their text."""
        if self._pattern is None or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        rows = numbers.rows
        base = int(rows.offsets[0])
        text, offsets = rows.text[base : int(rows.offsets[-1])], rows.offsets - base
        if self._needs_finder:
            spans = self._found_spans(text.tobytes(), offsets, numbers.document)
        else:
            spans = spans_in_rows(self._pattern, text, offsets)
        if not len(spans):
            return np.ones(len(numbers), np.bool_)
        starts, stops = spans.T
        first, last = (offsets[numbers.document] + at for at in (numbers.start, numbers.stop))
        # the last span that begins before the number ends
        nearest = np.searchsorted(starts, last, "left") - 1
        overlaps = (nearest >= 0) & (np.append(stops, -1)[nearest] > first)
        return np.asarray(~overlaps)

    def _found_spans(
        self, text: bytes, offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]:
        """Return int64[n, 2], the spans of the tokens in the rows that hold numbers, found by
        ``tokenizers`` itself, which knows the place of every character it changed.
        """
        wanted = {self._finder.token_to_id(word) for word in self._chosen}
        spans = []
        for row in np.unique(rows).tolist():
            row_text = text[offsets[row] : offsets[row + 1]].decode()
            encoding = self._finder.encode(row_text, add_special_tokens=False)
            for token, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True):
                if token in wanted:
                    first = int(offsets[row]) + len(row_text[:start].encode())
                    spans.append((first, first + len(row_text[start:stop].encode())))
        return np.array(spans, np.int64).reshape(-1, 2)

    @cached_property
    def _finder(self) -> Any:
        """Return a tokenizer of the added tokens alone."""
        complete_library("finding added tokens with digits in normalized text, or that are words")
        unknown = "\ufdd0"  # a noncharacter, no added token
        model = {"type": "WordLevel", "vocab": {unknown: 0}, "unk_token": unknown}
        config = {"added_tokens": self._tokens, "normalizer": self._normalizer, "model": model}
        return load({"version": "1.0", **config})
