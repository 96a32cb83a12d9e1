"""Which tokens are digits of numbers, one by one or in groups, and what may stand among them: as
losses on tokens need it.

In: a file's schema, a tokenizer, or the ids of a vocabulary. Out: ids. Tokens of one digit are
    compared with one another, as are those of three.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from numtok import Tokenizer
from numtok.engines.number_tokens import vocabulary_of
from numtok.errors import SchemaError
from numtok.representations import END_NUM, NUM, from_dict
from numtok.tokenizer.schema import read_metadata

LONGEST = 3  # digits of one token


@dataclass(frozen=True)
class DigitTokens:
    """See the module.

    Attributes:
        digits: id to the digits as they are written: ``"7"``, ``"007"``.
        joints: ids that join the digits of one number without a value of their own: the point,
            separators of groups.
        signs, powers: ids of ``+`` and ``-``, and of ``e`` and ``E``, behind which digits are an
            exponent.
        opens, closes: ids of the brackets that all numbers stand in; digits elsewhere are text.
            Empty if there are none.
        order: ``"msd"``, the most significant digit first, or ``"lsd"``.
    """

    digits: Mapping[int, str]
    joints: tuple[int, ...] = ()
    signs: tuple[int, ...] = ()
    powers: tuple[int, ...] = ()
    opens: tuple[int, ...] = ()
    closes: tuple[int, ...] = ()
    order: str = "msd"

    @classmethod
    def from_schema(cls, schema: pa.Schema) -> DigitTokens:
        """Of a file that numtok wrote with numbers spelled out in digits: PlaceValue, Digits, P10.

        Raises:
            SchemaError: for any other data.
        """
        metadata = read_metadata(schema)
        representation = from_dict(metadata["numbers"][0])
        contents: dict[str, int] = dict(metadata["tokens"])
        if "symbols" in metadata:
            named = (
                representation.added_tokens(two_forms=False).together
                or representation.token_strings
            )
            contents |= dict(zip(named, ids_of_runs(metadata["symbols"]["plain"]), strict=True))
        return cls._of(
            contents,
            ".,_'",
            representation.order or "msd",
            f"the numbers of this data are {representation.name}",
        )

    @classmethod
    def from_tokenizer(cls, tokenizer: Any) -> DigitTokens:
        """Of a ``numtok.Tokenizer`` or a transformers tokenizer. Where numbers stay text, they are
        the digits of the vocabulary, one by one, without a space in front, and the point.

        Raises:
            SchemaError: if it has no such tokens.
        """
        inner = getattr(tokenizer, "numtok", tokenizer)
        if not isinstance(inner, Tokenizer):
            return cls._of(
                _single(tokenizer.get_vocab()),
                ".",
                "msd",
                f"this is the vocabulary of {type(tokenizer).__name__}",
            )
        if inner.representations[0].stays_text:
            return cls._of(_single(vocabulary_of(inner.config)), ".", "msd", "this is a vocabulary")
        return cls.from_schema(inner.batch_schema())

    @classmethod
    def _of(cls, contents: Mapping[str, int], joints: str, order: str, what: str) -> DigitTokens:
        """From contents and their ids; ``what`` begins the message if they are no digits."""

        def ids(symbols: Any) -> tuple[int, ...]:
            return tuple(
                number for content, number in contents.items() if _symbol(content) in symbols
            )

        written = {number: _symbol(content) for content, number in contents.items()}
        digits = {
            number: symbol
            for number, symbol in written.items()
            if symbol.isascii() and symbol.isdigit() and len(symbol) <= LONGEST
        }
        whole = [
            width
            for width in range(1, LONGEST + 1)
            if sum(len(symbol) == width for symbol in digits.values()) == 10**width
        ]
        digits = {number: symbol for number, symbol in digits.items() if len(symbol) in whole}
        if not digits:
            raise SchemaError(
                f"{what}, without a token for each digit; take numbers that are spelled out in"
                " digits: place, digits, p10"
            )
        opens, closes = (
            ((), ()) if END_NUM not in contents else (ids([NUM, f" {NUM}"]), ids([END_NUM]))
        )
        return cls(digits, ids([*joints]), ids(["+", "-"]), ids(["e", "E"]), opens, closes, order)

    def groups(self) -> list[dict[int, float]]:
        """Id to value, for each number of digits."""
        widths = sorted({len(symbol) for symbol in self.digits.values()})
        return [
            {
                number: float(symbol)
                for number, symbol in self.digits.items()
                if len(symbol) == width
            }
            for width in widths
        ]


def _single(vocabulary: Mapping[str, int]) -> dict[str, int]:
    return {content: number for content, number in vocabulary.items() if len(content) == 1}


def _symbol(content: str) -> str:
    """What a token stands for: ``602`` for ``[NUM:602]``, else the token."""
    return content[len("[NUM:") : -1] if content.startswith("[NUM:") else content


def ids_of_runs(runs: Any) -> list[int]:
    """Ids from the runs [first id, count] of the metadata."""
    return [first + k for first, count in runs for k in range(count)]
