"""Text as it is written: ids one by one, and the text that each of them settles.

In: the ids that a model writes. Out: pieces of text, which joined are what ``decode`` gives of all
ids. A spelled-out number comes whole, once its last token is there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numtok.engines.number_tokens import vocabulary_of
from numtok.errors import InputError
from numtok.representations import END_NUM, NUM, SingleToken, SpelledOut
from numtok.tokenizer.decode import canonical
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.vocabulary import Spelling, first_ids

UNFINISHED = "\ufffd"  # what bytes decode to whose character is not whole yet


class DecodeStream:
    """Text from ids that come one after the other, numbers whole: as
    ``tokenizers.decoders.DecodeStream``, for a :class:`numtok.Tokenizer` or a
    :class:`numtok.hf.NumberTokenizer`.

    Args:
        ids: a prompt, whose text is not given.
        skip_special_tokens: leave out special tokens; ``[NUM]`` is none.
    """

    def __init__(self, ids: Sequence[int] | None = None, skip_special_tokens: bool = False) -> None:
        self.skip_special_tokens = skip_special_tokens
        self._ids: list[int] = list(ids or ())
        self._values = ["0"] * len(self._ids)  # of a prompt: they are not shown
        self._known = len(self._ids)  # of these ids the text was given
        self._has_values: bool | None = None  # None before the first number
        # tokens of numbers, and those that begin one; None before the first id
        self._symbols: tuple[set[int], set[int]] | None = None
        self._byte_ids: set[int | None] | None = None  # None before the first id

    def step(self, tokenizer: Any, id: int | Sequence[int], number_value: Any = None) -> str | None:
        """The text that is settled by one more id, or several; None if there is none.

        ``number_value`` is that of a number that is one token: a float, a ``Decimal`` or its text.
        Without values ``[NUM]`` shows as itself.

        Raises:
            InputError: if some numbers have values and others none.
        """
        inner = getattr(tokenizer, "numtok", tokenizer)  # of a numtok.hf.NumberTokenizer
        more = [id] if isinstance(id, int) else list(id)
        if not _value_ids(inner).isdisjoint(more):
            has_value = number_value is not None
            if self._has_values not in (None, has_value):
                raise InputError(
                    "some numbers have a number_value and others none; give all, or none"
                )
            self._has_values = has_value
        self._ids += more
        text = "0" if number_value is None else str(canonical([number_value])[0])
        self._values += [text] * len(more)
        if self._is_in_number(inner) or self._is_in_bytes(inner):
            return None
        return self._settled(tokenizer, UNFINISHED)

    def finish(self, tokenizer: Any) -> str | None:
        """The rest, if the last number or character is not whole; None if there is none."""
        return self._settled(tokenizer, None)

    def _settled(self, tokenizer: Any, unfinished: str | None) -> str | None:
        given, text = self._text(tokenizer, self._known), self._text(tokenizer, len(self._ids))
        if len(text) <= len(given) or (unfinished and text.endswith(unfinished)):
            return None
        # The last tokens given stay, as the text of the next ones may depend on them.
        del self._ids[: self._known], self._values[: self._known]
        self._known = len(self._ids)
        return text[len(given) :]

    def _text(self, tokenizer: Any, count: int) -> str:
        """Of the first ids."""
        ids, values = self._ids[:count], None
        if self._has_values:
            numbers = _value_ids(getattr(tokenizer, "numtok", tokenizer))
            values = [self._values[at] for at, one in enumerate(ids) if one in numbers]
        if not isinstance(tokenizer, Tokenizer):
            options = {"skip_special_tokens": self.skip_special_tokens, "number_value": values}
            return str(tokenizer.decode(ids, **options))
        added = tokenizer.config["added_tokens"] if self.skip_special_tokens else []
        special = {token["id"] for token in added if token["special"]}
        return tokenizer.decode([one for one in ids if one not in special], values)

    def _is_in_number(self, tokenizer: Tokenizer) -> bool:
        """Whether the last ids begin a number that may go on."""
        first = tokenizer.representations[0]
        if not isinstance(first, SpelledOut):
            return False
        if self._symbols is None:
            forms = first_ids(tokenizer.tokens, Spelling.of(first, tokenizer.tokens))
            begins = {int(one) for form in forms for one in form}
            self._symbols = set(tokenizer.tokens.values()), begins
        symbols, begins = self._symbols
        for run, symbol in enumerate(reversed(self._ids), 1):
            if symbol not in symbols or symbol == tokenizer.tokens.get(END_NUM):
                return False
            if symbol in begins and run < (first.length or math.inf):
                return True
        return False

    def _is_in_bytes(self, tokenizer: Tokenizer) -> bool:
        """Whether the last id is that of a byte, as SentencePiece has them: one byte that is wrong
        changes the text of all that it stands in a row with.
        """
        if self._byte_ids is None:
            vocab = vocabulary_of(tokenizer.config)
            self._byte_ids = {vocab.get(f"<0x{byte:02X}>") for byte in range(256)}
        return bool(self._ids) and self._ids[-1] in self._byte_ids


def _value_ids(tokenizer: Tokenizer) -> set[int | None]:
    """The ids of numbers that are one token."""
    if not isinstance(tokenizer.representations[0], SingleToken):
        return set()
    return {tokenizer.tokens.get(NUM), tokenizer.tokens.get(f" {NUM}")}
