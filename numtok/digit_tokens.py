"""Digits inside an added token of the source tokenizer, such as ``<extra_id_0>`` or ``<|0.00|>``, are not numbers where the text may contain it.

In: the added tokens and numbers. Out: the numbers outside of those tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from numtok.numbers import Numbers


class DigitTokens:
    """The added tokens that hold a digit.

    Args:
        tokens: entries of ``added_tokens`` in a tokenizer.json, of which only ``content`` and ``single_word`` are looked at.
    """

    def __init__(self, tokens: Iterable[Mapping[str, Any]]) -> None:
        chosen = {token["content"]: token["single_word"] for token in tokens if any(map(str.isdecimal, token["content"]))}
        longest_first = sorted(chosen, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(re.escape(word.encode()) for word in longest_first)) if chosen else None
        self._whole_words = frozenset(word.encode() for word, single in chosen.items() if single)

    def __bool__(self) -> bool:
        return self._pattern is not None

    def outside(self, numbers: Numbers) -> Numbers:
        """The numbers that do not overlap one of the tokens in their text."""
        if self._pattern is None or not len(numbers):
            return numbers
        rows = numbers.rows
        base = int(rows.offsets[0])
        spans = self._spans(rows.text[base : int(rows.offsets[-1])].tobytes(), rows.offsets - base)
        if not len(spans):
            return numbers
        starts, stops = spans.T + base
        first, last = rows.offsets[numbers.document] + numbers.start, rows.offsets[numbers.document] + numbers.stop
        nearest = np.searchsorted(starts, last, "left") - 1  # the last span that begins before the number ends
        overlaps = (nearest >= 0) & (np.append(stops, -1)[nearest] > first)
        return numbers.select(~overlaps)

    def _spans(self, text: bytes, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """int64[n, 2]: where the tokens stand, each within one row."""
        assert self._pattern is not None
        found = list(self._pattern.finditer(text))
        spans = np.array([match.span() for match in found], np.int64).reshape(-1, 2)
        row = np.searchsorted(offsets, spans[:, 0], "right") - 1
        good = spans[:, 1] <= offsets[row + 1]
        for k, match in enumerate(found):
            if good[k] and match.group() in self._whole_words:
                before = text[max(offsets[row[k]], match.start() - 4) : match.start()]
                after = text[match.end() : min(offsets[row[k] + 1], match.end() + 4)]
                good[k] = not (_is_word(before, -1) or _is_word(after, 0))
        return spans[good]


# What `tokenizers` takes for a part of a word beside a `single_word` token: \w as in Unicode's UTS 18.
_WORD = regex.compile(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]")


def _is_word(beside: bytes, which: int) -> bool:
    """Whether the first (0) or last (-1) character is a part of a word."""
    characters = beside.decode("utf-8", "ignore")
    return bool(characters) and bool(_WORD.match(characters[which]))
