"""The tokens that stand for numbers: which ones a tokenizer needs, as ordinary added tokens, their
ids, and which of its added tokens are numtok's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from numtok.engines.config import ordinary_token, vocabulary_of
from numtok.errors import TokenizerError
from numtok.representations import END_NUM, NUM, Representation, symbol_token

# of a representation that does not share the vocabulary
OWN_SYMBOL = re.compile(r" ?\[NUM:[^\[\]]+\]")


def add_number_tokens(
    config: dict[str, Any], representation: Representation, two_forms: bool
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return ``config`` with the tokens that the representation (the first of those combined)
    needs, and the ids of all of them.

    Ids are given out in a fixed order after the largest there is; tokens that are there already
    keep theirs, so a saved tokenizer does not change. TokenizerError if the source already has one
    of them as a token of another kind.
    """
    own, shared, together = representation.added_tokens(two_forms)
    vocabulary = vocabulary_of(config)
    entries = list(config.get("added_tokens") or [])
    added = {token["content"]: token for token in entries}
    if all(content in vocabulary or content in added for content in together):
        shared = (*together, *shared)
    else:
        own = (*own, *map(symbol_token, together))
    tokens: dict[str, int] = {}
    following = 1 + max([*vocabulary.values(), *(token["id"] for token in entries)], default=-1)
    for content in own:
        _check_own(content, added.get(content), vocabulary)
    for content in (*own, *shared):
        if content in added:
            tokens[content] = added[content]["id"]
        elif content in vocabulary:
            tokens[content] = vocabulary[content]
        else:
            entries.append(ordinary_token(following, content))
            tokens[content] = following
            following += 1
    return config | {"added_tokens": entries}, tokens


def _check_own(
    content: str, entry: Mapping[str, Any] | None, vocabulary: Mapping[str, int]
) -> None:
    """Refuse a source in which one of numtok's own tokens is something else."""
    if entry is not None and (entry["special"] or entry["normalized"]):
        raise TokenizerError(
            f"the source tokenizer already has {content!r} as a special or normalized token; numtok"
            " needs it as an ordinary added token: remove it from the source, or start from the"
            " original tokenizer"
        )
    if entry is None and content in vocabulary:  # the text would get its id without being a number
        raise TokenizerError(
            f"the source tokenizer already has {content!r} as a word of its vocabulary; rename it"
            " there"
        )


def own_tokens(
    config: dict[str, Any], tokens: Mapping[str, int], named: Collection[str]
) -> dict[str, int]:
    """Return content and id of the added tokens that are numtok's, not the source's: those in use,
    and of other representations that were saved before.

    In a text they are never tokens.
    """
    names = {NUM, f" {NUM}", END_NUM, *tokens, *named}
    return {
        content: token["id"]
        for token in config["added_tokens"]
        if not token["special"] and not token["normalized"]
        if (content := token["content"]) in names or OWN_SYMBOL.fullmatch(content)
    }
