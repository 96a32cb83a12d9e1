"""The ids of number and special tokens of a ``numtok.Tokenizer`` or a
``numtok.hf.NumberTokenizer``, for :class:`numtok_torch.data.collator.NumberCollator`; and whether
it is the tokenizer that data, or a model, were made with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numtok
from numtok.errors import NumtokError, SchemaError, TokenizerError
from numtok.tokenizer.metadata import describe_tokenizer
from numtok.tokenizer.schema import read_metadata

# what the metadata of encoded data say of the tokenizer
IDENTITY = ("format", "tokenizer", "tokenizer_kind", "numbers")


def identity(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the metadata of encoded data say of the tokenizer, JSON-ready."""
    return {name: metadata[name] for name in IDENTITY if name in metadata}


def identity_of(tokenizer: Any) -> dict[str, Any]:
    """Return the :func:`identity` of a ``numtok.Tokenizer``, or of a transformers tokenizer made
    from one; a mapping is returned as it is.
    """
    if isinstance(tokenizer, Mapping):
        return dict(tokenizer)
    return identity(read_metadata(numtok_of(tokenizer).batch_schema()))


def check_tokenizer(
    known: Mapping[str, Any],
    tokenizer: Any,
    what: str,
    way_out: str = "load that one, with the same representations and grammar, or encode again",
    error: type[NumtokError] = SchemaError,
) -> None:
    """Refuse a tokenizer that gives other ids, or other values, than the known one.

    Args:
        known: the :func:`identity` of the right one.
        tokenizer: a ``numtok.Tokenizer``, a transformers tokenizer made from one, the identity or
            the fingerprint of one.
        what: begins the message, such as "the data was encoded by".
        way_out: ends the message.
        error: raised for another tokenizer.
    """
    inner = getattr(tokenizer, "numtok", tokenizer)  # of a numtok.hf.NumberTokenizer
    if isinstance(inner, Mapping):
        if inner.get("format") != known.get("format"):
            return  # the fingerprints of format 1 also hang on the form of the columns
        inner = inner["tokenizer"]
    fingerprint = inner if isinstance(inner, str) else getattr(inner, "fingerprint", None)
    if not isinstance(fingerprint, str):
        raise error(
            f"tokenizer={type(tokenizer).__name__} has no fingerprint; give a numtok.Tokenizer, a"
            " numtok.hf.NumberTokenizer, or the fingerprint of one"
        )
    encoded = getattr(inner, "encoded", lambda metadata: fingerprint == metadata["tokenizer"])
    if not encoded(known):
        raise error(
            f"{what} another tokenizer ({describe_tokenizer(dict(known))}; this one has"
            f" {fingerprint}); {way_out}"
        )


def numtok_of(tokenizer: Any, error: type[NumtokError] = TokenizerError) -> numtok.Tokenizer:
    """Return the ``numtok.Tokenizer`` in a tokenizer; the error if there is none."""
    inner = getattr(tokenizer, "numtok", tokenizer)  # of a numtok.hf.NumberTokenizer
    if not isinstance(inner, numtok.Tokenizer):
        raise error(
            f"{type(tokenizer).__name__} is neither a numtok.Tokenizer nor a"
            " numtok.hf.NumberTokenizer; give one of these"
        )
    return inner


def special_ids(tokenizer: Any) -> tuple[int, ...]:
    """Return the ids of a tokenizer's special tokens."""
    if isinstance(tokenizer, numtok.Tokenizer):
        return tuple(token["id"] for token in tokenizer.config["added_tokens"] if token["special"])
    return tuple(tokenizer.all_special_ids)


def token_id(tokenizer: Any, token: int | str) -> int:
    """Return the id of a token that is given as its id or its text."""
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
