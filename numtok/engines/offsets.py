"""Where the tokens of byte-level BPE stand in their text: each covers the bytes that it decodes to,
and a number token the number.

As ``tokenizers`` tells them, a token that holds a part of a character covers the whole of it. Rows
for which the bytes do not add up, or which a normalizer changes, are told apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.arrays.kernels import allocating_kernel
from numtok.arrays.text_rows import TextRows
from numtok.arrays.unicode_classes import flags
from numtok.engines.gigatoken.unsafe_characters import changed_rows
from numtok.engines.interface import Config, Ints, is_byte_level
from numtok.engines.number_tokens import vocabulary_of
from numtok.numbers.numbers import Numbers

# as Rust has it
SPACES = frozenset(
    "Ġ\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    + "".join(map(chr, range(0x2000, 0x200B)))
)


class TokenForms(NamedTuple):
    """What is known of every token, by id."""

    widths: Ints  # int64, bytes that it decodes to
    leading: Ints  # int64, how many spaces it begins and ends with
    trailing: Ints
    normalizes: bool  # whether text becomes NFC first

    @classmethod
    def of(cls, config: Config) -> TokenForms | None:
        """Those of a tokenizer.json; None if it is not byte-level BPE, or its normalizer is
        unknown.
        """
        normalizer = config.get("normalizer")
        if not is_byte_level(config) or normalizer not in (None, {"type": "NFC"}):
            return None
        # one character a byte
        words = {number: (word, len(word)) for word, number in vocabulary_of(config).items()}
        for token in config["added_tokens"]:
            words[token["id"]] = token["content"], len(token["content"].encode())
        forms = np.zeros((3, max(words) + 1), np.int64)
        for number, (word, width) in words.items():
            forms[:, number] = width, _spaces(word), _spaces(reversed(word))
        return cls(forms[0], forms[1], forms[2], normalizer is not None)


def _spaces(characters: Iterable[str]) -> int:
    """How many of the first characters are spaces."""
    return sum(1 for _ in itertools.takewhile(SPACES.__contains__, characters))


class Spans(NamedTuple):
    """int64[t], half-open, the characters that each token covers in its row; bool[rows], for which
    rows they are known.
    """

    starts: Ints
    stops: Ints
    known: npt.NDArray[np.bool_]


def token_spans(
    ids: npt.NDArray[np.int32],
    offsets: Ints,
    rows: TextRows,
    numbers: Numbers,
    tokens: Ints,
    forms: TokenForms,
) -> Spans:
    """The spans of all tokens, int32[t] ids and int64[rows + 1] offsets, in the rows;
    int64[numbers] tokens are those that are numbers.
    """
    places = np.stack([numbers.start, numbers.stop, tokens], axis=1)
    known = np.ones(len(rows), np.bool_)
    if forms.normalizes:
        known = ~changed_rows(rows, flags("nfc_unsafe"), flags("nfc_newer"))
    text = rows.text, rows.offsets
    starts, stops = _spans(ids, offsets, *text, places, numbers.per_document(), forms, known)
    return Spans(starts, stops, known)


@allocating_kernel
def _spans(ids, offsets, text, text_offsets, places, per_row, forms, known):  # type: ignore[no-untyped-def]
    """Return (starts, stops); rows that cannot be told are marked in ``known``."""
    widths, leading = forms.widths, forms.leading
    starts, stops = np.zeros(ids.size, np.int64), np.zeros(ids.size, np.int64)
    for row in range(offsets.size - 1):
        begin, size = text_offsets[row], text_offsets[row + 1] - text_offsets[row]
        at, characters, number = 0, 0, per_row[row]  # bytes, and the characters that begin in them
        good = True
        for token in range(offsets[row], offsets[row + 1]):
            end = at + widths[ids[token]]
            if number < per_row[row + 1] and places[number, 2] == token:
                # its form with a space has one
                good = good and at + leading[ids[token]] == places[number, 0]
                end = places[number, 1]
                number += 1
            if end <= at or end > size:
                good = False
                break
            # begins within a character, which the token before it has, too
            inside = text[begin + at] & 0xC0 == 0x80
            starts[token] = characters - 1 if inside else characters
            for byte in range(begin + at, begin + end):
                if text[byte] & 0xC0 != 0x80:
                    characters += 1
            stops[token] = characters
            at = end
        known[row] = known[row] and good and at == size
    return starts, stops
