"""The token that ends a document where several are joined.

In: a tokenizer, and what a user says. Out: its id.
"""

from __future__ import annotations

from typing import Any

from numtok.errors import TokenizerError
from numtok.tokenizer.tokenizer import Tokenizer

USUAL = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<｜end▁of▁sentence｜>", "[SEP]")


def end_token(tokenizer: Tokenizer, given: str | int | None = None) -> int:
    """The id of the end token.

    Args:
        tokenizer: whose.
        given: a token or its id; None for the first of the usual ones that the tokenizer has as an
            added token.

    Raises:
        TokenizerError: if it has none of them, or the one that is given is none, or part of
            numbers.
    """
    added = {token["content"]: int(token["id"]) for token in tokenizer.config["added_tokens"]}
    if given is None:
        found = next((added[content] for content in USUAL if content in added), None)
        if found is None:
            raise TokenizerError(
                "the tokenizer has none of the usual end tokens; name the one that ends a document"
                " by end_token=..."
            )
        return found
    number = (
        given
        if isinstance(given, int)
        else added.get(given, _of_vocabulary(tokenizer.config["model"]["vocab"]).get(given))
    )
    if number is None or not 0 <= number < tokenizer.vocab_size:
        raise TokenizerError(
            f"end_token={given!r} is no token of the tokenizer; give a token, or the id of one"
        )
    if number in tokenizer.tokens.values():
        raise TokenizerError(
            f"end_token={given!r} is a token that numbers are made of; choose one that ends"
            " documents"
        )
    return number


def _of_vocabulary(vocabulary: Any) -> dict[str, int]:
    """Token to id, also of a Unigram's list."""
    return (
        dict(vocabulary)
        if isinstance(vocabulary, dict)
        else {entry[0]: number for number, entry in enumerate(vocabulary)}
    )
