"""Digits inside an added token of the source tokenizer, such as ``<extra_id_0>`` or ``<|0.00|>``,
are not numbers where the text may contain it.

In: the added tokens and numbers. Out: the numbers outside of those tokens.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.engines.hf_tokenizers import complete_library, load
from numtok.numbers.numbers import Numbers


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
        longest_first = sorted(self._chosen, key=len, reverse=True)
        words = b"|".join(re.escape(word.encode()) for word in longest_first)
        self._pattern = re.compile(words) if self._chosen else None
        self._whole_words = frozenset(
            word.encode() for word, token in self._chosen.items() if token["single_word"]
        )
        self._tokens, self._normalizer = list(tokens), normalizer
        common = os.path.commonprefix(list(self._chosen))  # of strings  # noqa: RUF071
        self._common = common.encode()
        self._normalized = normalizer is not None and any(
            token["normalized"] for token in self._chosen.values()
        )

    def __bool__(self) -> bool:
        return self._pattern is not None

    def spans_in(self, text: bytes) -> list[tuple[int, int]] | None:
        """Return the spans of the tokens in one text; None if only :meth:`outside` can tell."""
        if self._pattern is None or self._common not in text:
            return None if self._normalized else []
        found = [match.span() for match in self._pattern.finditer(text)]
        return None if self._normalized or (found and self._whole_words) else found

    def outside(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Return bool[n]: which numbers do not overlap one of the tokens in their text."""
        if self._pattern is None or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        rows = numbers.rows
        base = int(rows.offsets[0])
        text, offsets = rows.text[base : int(rows.offsets[-1])].tobytes(), rows.offsets - base
        if self._normalized:
            spans = self._normalized_spans(text, offsets, numbers.document)
        else:
            spans = self._spans(text, offsets)
        if not len(spans):
            return np.ones(len(numbers), np.bool_)
        starts, stops = spans.T
        first, last = (offsets[numbers.document] + at for at in (numbers.start, numbers.stop))
        # the last span that begins before the number ends
        nearest = np.searchsorted(starts, last, "left") - 1
        overlaps = (nearest >= 0) & (np.append(stops, -1)[nearest] > first)
        return np.asarray(~overlaps)

    def _spans(self, text: bytes, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return int64[n, 2], the spans of the tokens, each within one row."""
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

    def _normalized_spans(
        self, text: bytes, offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int64]:
        """Return int64[n, 2], the spans of the tokens in the rows that hold numbers, found by
        ``tokenizers`` itself, which knows the place of every character it changed.
        """
        wanted = {self._finder.token_to_id(word) for word in self._chosen}
        spans = []
        for row in np.unique(rows).tolist():
            own = text[offsets[row] : offsets[row + 1]].decode()
            encoding = self._finder.encode(own, add_special_tokens=False)
            for token, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True):
                if token in wanted:
                    first = int(offsets[row]) + len(own[:start].encode())
                    spans.append((first, first + len(own[start:stop].encode())))
        return np.array(spans, np.int64).reshape(-1, 2)

    @functools.cached_property
    def _finder(self) -> Any:
        """Return a tokenizer of the added tokens alone."""
        complete_library("finding added tokens with digits in normalized text")
        unknown = "\ufdd0"  # a noncharacter, no added token
        model = {"type": "WordLevel", "vocab": {unknown: 0}, "unk_token": unknown}
        found = {"added_tokens": self._tokens, "normalizer": self._normalizer, "model": model}
        return load({"version": "1.0", **found})


@functools.cache
def _word() -> Any:
    r"""Return the pattern of what `tokenizers` takes for a part of a word beside a `single_word`
    token: \w as in Unicode's UTS 18.
    """
    import regex

    return regex.compile(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]")


def _is_word(beside: bytes, which: int) -> bool:
    """Whether the first (0) or last (-1) character is a part of a word."""
    characters = beside.decode("utf-8", "ignore")
    return bool(characters) and bool(_word().match(characters[which]))
