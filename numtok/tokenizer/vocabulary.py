"""The tokens of one tokenizer: those of its source, and numtok's for numbers.

In: a tokenizer.json and a representation. Out: the tokenizer.json with the number tokens added, and
    which of its ids stand for what.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from numtok.engines.interface import NumberTokens, is_byte_level
from numtok.engines.number_tokens import OWN_SYMBOL, add_number_tokens, own_tokens, vocabulary_of
from numtok.representations import Representation, SingleToken
from numtok.tokenizer.spelling import Spelling, first_ids


@dataclass(frozen=True, eq=False)
class NumberVocabulary:
    """See the module.

    Attributes:
        config: the tokenizer.json with the number tokens added, as a dict.
        tokens: the id of every token that numtok uses for numbers.
        own: the id of every added token that is numtok's, in use or not.
        spelling: the tokens of a representation that spells numbers out.
        in_text: what the engines are to know of the number tokens.
    """

    config: dict[str, Any]
    tokens: dict[str, int]
    own: dict[str, int]
    spelling: Spelling | None
    in_text: NumberTokens

    @classmethod
    def of(
        cls,
        source: dict[str, Any],
        representation: Representation,
        leading_space: str,
        saved: Collection[str],
    ) -> NumberVocabulary:
        """That of a source with the tokens that the first representation needs; ``saved`` are
        numtok's tokens in it that were named when it was saved.
        """
        two_forms = leading_space == "auto" and is_byte_level(source)
        config, tokens = add_number_tokens(source, representation, two_forms)
        own = own_tokens(config, tokens, saved)
        spelling = Spelling.of(representation, tokens)
        plain, spaced = (int(ids[0]) if len(ids) else -1 for ids in first_ids(tokens, spelling))
        hidden = tuple(number for number in own.values() if number not in (plain, spaced))
        return cls(config, tokens, own, spelling, NumberTokens(plain, spaced, hidden))

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return 1 + int(
            max(
                [
                    *vocabulary_of(self.config).values(),
                    *(token["id"] for token in self.config["added_tokens"]),
                ]
            )
        )

    def described(self) -> dict[str, Any]:
        """As the schema's metadata tell it: the ids of number tokens, and of symbols in runs."""
        symbols = {
            number for content, number in self.tokens.items() if OWN_SYMBOL.fullmatch(content)
        }
        tokens = {
            content: number for content, number in self.tokens.items() if number not in symbols
        }
        in_runs = (
            {"symbols": self.spelling.runs(symbols)}
            if symbols and self.spelling is not None
            else {}
        )
        return {"tokens": tokens, "vocab_size": self.size, **in_runs}


def share_tokens(some: Sequence[Representation], others: Sequence[Representation]) -> bool:
    """Whether they are the same but for options that leave the tokens of numbers as they are, such
    as a scale.
    """

    return isinstance(some[0], SingleToken) and [*map(type, some)] == [*map(type, others)]
