"""The ids of number and special tokens of a ``numtok.Tokenizer`` or a
``numtok.hf.NumberTokenizer``, for :class:`numtok_torch.data.collator.NumberCollator`.
"""

from __future__ import annotations

from typing import Any

import numtok
from numtok.errors import TokenizerError
from numtok.tokenizer.packing import NumberTokens
from numtok_torch.data.rows import inner_shapes


def tokens_of(tokenizer: Any) -> dict[str, Any]:
    """``tokens``, ``vocab_size`` and ``shapes``."""
    inner = getattr(tokenizer, "numtok", tokenizer)  # of a numtok.hf.NumberTokenizer
    if not isinstance(inner, numtok.Tokenizer):
        raise TokenizerError(
            f"{type(tokenizer).__name__} is neither a numtok.Tokenizer nor a"
            " numtok.hf.NumberTokenizer; use NumberCollator.from_schema"
        )
    schema = inner.batch_schema()
    return {
        "tokens": NumberTokens.from_schema(schema),
        "shapes": inner_shapes(schema),
        "vocab_size": inner.vocab_size if inner is tokenizer else len(tokenizer),
    }


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
