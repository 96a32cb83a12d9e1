"""Count the tokens of numbers: by the source tokenizer alone, and spelled out by each
representation that does so.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field

from numtok.arrays.text_rows import TextRows, Texts
from numtok.engines.engine import Slots
from numtok.errors import InputError
from numtok.numbers.grammar import Grammar
from numtok.numbers.scan import scan
from numtok.representations import SpelledOut, Subword
from numtok.representations.registry import REPRESENTATIONS, default_instances
from numtok.tokenizer.inspect import subword_spans
from numtok.tokenizer.saving import fingerprint_of
from numtok.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class TokenCosts:
    """Sums over the texts that were looked at."""

    tokenizer: str = ""  # the fingerprint of what it was made from; empty without texts
    bytes: int = 0
    numbers: int = 0
    tokens: int = 0  # that the source tokenizer gives
    before: int = 0  # those of them that overlap a number; one that overlaps two counts twice
    spelled: dict[str, int] = field(default_factory=dict)  # tokens, by name of a representation

    @classmethod
    def of(cls, texts: Texts, tokenizer: Tokenizer) -> TokenCosts:
        """Count the tokens of texts, by the tokenizer's source and with its grammar."""
        rows = TextRows.of(texts)
        numbers = scan(rows, tokenizer.grammar)
        tokens = len(tokenizer.engine.encode(rows, Slots.none(len(numbers.rows))).ids)
        first, last = subword_spans(tokenizer, numbers)
        each, spelled = last - first + 1, {}
        kinds = (one for kind in REPRESENTATIONS.values() for one in default_instances(kind))
        for representation in kinds:
            if not isinstance(representation, SpelledOut):
                continue
            fits = representation.fits(numbers)
            became = int(representation.token_counts(numbers.select(fits)).sum())
            # What stays text costs what it cost before.
            spelled[representation.spec()] = int(each[~fits].sum()) + became
        source = source_fingerprint(tokenizer)
        return cls(source, rows.nbytes, len(numbers), tokens, int(each.sum()), spelled)

    def __add__(self, other: TokenCosts) -> TokenCosts:
        if not (self.tokenizer and other.tokenizer):
            return self if self.tokenizer else other
        if self.tokenizer != other.tokenizer:
            raise InputError(
                "these statistics were counted with two tokenizers, whose tokens cannot be added"
                " up; count both with one of them"
            )
        common = [name for name in self.spelled if name in other.spelled]
        spelled = {name: self.spelled[name] + other.spelled[name] for name in common}
        names = ("bytes", "numbers", "tokens", "before")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return dataclasses.replace(self, **sums, spelled=spelled)


@functools.lru_cache(maxsize=1)
def source_fingerprint(tokenizer: Tokenizer) -> str:
    """Return a fingerprint that is equal for tokenizers made from the same source, whatever their
    numbers become.
    """
    own_ids, added = set(tokenizer.own_tokens.values()), tokenizer.config["added_tokens"]
    theirs = [token for token in added if token["id"] not in own_ids]
    source = tokenizer.config | {"added_tokens": theirs}
    return fingerprint_of(source, (Subword(),), Grammar(), "auto")
