"""Number and special tokens of a tokenizer: of a ``numtok.Tokenizer``, or of a transformers
tokenizer to which numtok's tokens were added.

In: a tokenizer. Out: plain ids, for :class:`numtok_torch.data.collator.NumberCollator`.
"""

from __future__ import annotations

from typing import Any

import numtok
from numtok.engines.number_tokens import OWN_SYMBOL
from numtok.errors import TokenizerError
from numtok.representations import END_NUM, NUM
from numtok.tokenizer.schema import read_metadata
from numtok_torch.data.rows import NumberTokens, inner_shapes


def tokens_of(tokenizer: Any) -> dict[str, Any]:
    """``tokens``, ``vocab_size`` and, as far as known, ``shapes``."""
    if isinstance(tokenizer, numtok.Tokenizer):
        schema = tokenizer.batch_schema()
        metadata = read_metadata(schema)
        return {
            "tokens": NumberTokens.from_metadata(metadata),
            "shapes": inner_shapes(schema),
            "vocab_size": metadata["vocab_size"],
        }
    if not hasattr(tokenizer, "get_added_vocab"):
        raise TokenizerError(
            f"{type(tokenizer).__name__} is neither a numtok.Tokenizer nor a transformers"
            " tokenizer; use NumberCollator.from_schema"
        )
    known = {"vocab_size": len(tokenizer)}
    inner = getattr(tokenizer, "numtok", None)
    if isinstance(inner, numtok.Tokenizer):  # a numtok.hf.NumberTokenizer
        return tokens_of(inner) | known
    added: dict[str, int] = tokenizer.get_added_vocab()
    own = tuple(
        sorted(
            number
            for content, number in added.items()
            if content in (NUM, f" {NUM}", END_NUM) or OWN_SYMBOL.fullmatch(content)
        )
    )
    return {"tokens": NumberTokens(own, own, added.get(END_NUM)), **known}


def special_ids(tokenizer: Any) -> tuple[int, ...]:
    """The ids of its special tokens."""
    if isinstance(tokenizer, numtok.Tokenizer):
        return tuple(token["id"] for token in tokenizer.config["added_tokens"] if token["special"])
    return tuple(tokenizer.all_special_ids)


def token_id(tokenizer: Any, token: int | str) -> int:
    """The id of a token given as either."""
    if not isinstance(token, str):
        return int(token)
    if isinstance(tokenizer, numtok.Tokenizer):
        added = {entry["content"]: entry["id"] for entry in tokenizer.config["added_tokens"]}
        number = added.get(token)
    else:
        number = tokenizer.get_vocab().get(token)
    if number is None:
        raise TokenizerError(
            f"the tokenizer has no token {token!r}; give its id, or one of its special tokens"
        )
    return int(number)
