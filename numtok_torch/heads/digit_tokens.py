"""Which tokens are digits of numbers, one by one or in groups, and what may stand among them: as
losses on tokens need it, from a file's schema, a tokenizer, or a vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from numtok import Tokenizer
from numtok.engines.config import vocabulary_of
from numtok.errors import SchemaError
from numtok.numbers.grammar import Grammar
from numtok.representations import END_NUM, NUM, SpelledOut, from_dict
from numtok.tokenizer.schema import read_metadata

LONGEST = 3  # digits of one token


@dataclass(frozen=True)
class DigitTokens:
    """Ids of the tokens that are digits of numbers, and of those that may stand among them."""

    digits: Mapping[int, str]  # id to the digits as they are written: ``"7"``, ``"007"``
    # ids that join the digits of one number without a value of their own: the point, separators of
    # groups
    joints: tuple[int, ...] = ()
    # ids of ``+`` and ``-``, and of ``e`` and ``E``, after which digits are an exponent
    signs: tuple[int, ...] = ()
    powers: tuple[int, ...] = ()
    # ids of the brackets that all numbers stand in; digits elsewhere are text. Without brackets all
    # digits count, and a separator of groups, which may be a comma of the text, joins none.
    opens: tuple[int, ...] = ()
    closes: tuple[int, ...] = ()
    order: str = "msd"  # ``"msd"``, the most significant digit first, or ``"lsd"``
    points: tuple[int, ...] = ()  # of the joints, those behind which digits are a fraction

    @classmethod
    def from_schema(cls, schema: pa.Schema) -> DigitTokens:
        """Find the digit tokens of a file that numtok wrote with numbers spelled out in digits:
        PlaceValue, Digits, P10. SchemaError for any other data.
        """
        metadata = read_metadata(schema)
        first = from_dict(metadata["numbers"][0])
        contents: dict[str, int] = dict(metadata["tokens"])
        what = f"the numbers of this data are {first.name}"
        if not isinstance(first, SpelledOut):
            return cls._of(contents, ".", "msd", what)  # which refuses them
        if "symbols" in metadata:
            named = first.added_tokens(two_forms=False).together or first.token_strings
            contents |= dict(zip(named, ids_of_runs(metadata["symbols"]["plain"]), strict=True))
        point = "." if first.marks_begin else Grammar.from_dict(metadata["grammar"]).decimal
        joints = ".,_'" if first.marks_begin else point
        return cls._of(contents, joints, first.order or "msd", what, point)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any) -> DigitTokens:
        """Find the digit tokens of a ``numtok.Tokenizer`` or a transformers tokenizer. Where
        numbers stay text, they are the digits of the vocabulary, one by one, without a space in
        front, and the point. SchemaError if it has no such tokens.
        """
        inner = getattr(tokenizer, "numtok", tokenizer)
        if isinstance(inner, Tokenizer) and not inner.representations[0].stays_text:
            return cls.from_schema(inner.batch_schema())
        if isinstance(inner, Tokenizer):
            vocabulary = vocabulary_of(inner.config)
        else:
            vocabulary = tokenizer.get_vocab()
        single = {content: number for content, number in vocabulary.items() if len(content) == 1}
        return cls._of(single, ".", "msd", f"this is a vocabulary ({type(tokenizer).__name__})")

    @classmethod
    def _of(
        cls, contents: Mapping[str, int], joints: str, order: str, what: str, point: str = "."
    ) -> DigitTokens:
        """Find the digit tokens among contents and their ids; ``what`` begins the message if they
        are no digits.
        """
        # [NUM:602] stands for 602
        written = {
            number: content[5:-1] if content.startswith("[NUM:") else content
            for content, number in contents.items()
        }

        def ids(symbols: Iterable[str]) -> tuple[int, ...]:
            return tuple(number for number, symbol in written.items() if symbol in {*symbols})

        digits = {n: one for n, one in written.items() if one.isascii() and one.isdigit()}
        widths = [len(one) for one in digits.values()]
        whole = [width for width in range(1, LONGEST + 1) if widths.count(width) == 10**width]
        digits = {number: one for number, one in digits.items() if len(one) in whole}
        if not digits:
            raise SchemaError(
                f"{what}, without a token for each digit; take numbers that are spelled out in"
                " digits: place, digits, p10"
            )
        opens, closes = ([NUM, f" {NUM}"], [END_NUM]) if END_NUM in contents else ([], [])
        marks = ids(joints), ids("+-"), ids("eE"), ids(opens), ids(closes)
        return cls(digits, *marks, order, ids(point))

    def groups(self) -> list[dict[int, float]]:
        """Return id to value, for each count of digits."""
        widths = sorted({len(symbol) for symbol in self.digits.values()})
        return [
            {number: float(one) for number, one in self.digits.items() if len(one) == width}
            for width in widths
        ]


def ids_of_runs(runs: Any) -> list[int]:
    """Return the ids of the runs [first id, count] of the metadata."""
    return [first + k for first, count in runs for k in range(count)]
