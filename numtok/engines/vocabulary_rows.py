"""Rows that are added to the vocabulary of a tokenizer.json, and cuts that keep them apart from the
text around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from numtok.engines.config import Config, Model, regex_of, steps_of, vocabulary_of
from numtok.errors import TokenizerError

PREFIX_SPACE = {"type": "Metaspace", "replacement": " ", "prepend_scheme": "always", "split": False}
CUTS_AT_SPACES = ("WhitespaceSplit", "Metaspace")


def with_rows_in_text(config: Config, rows: Sequence[str]) -> Config | None:
    """Return ``config`` with single characters as rows of its vocabulary, cut from the text around
    them, where added tokens would change that text: SentencePiece puts a space at the beginning of
    what stands between two. None for other tokenizers.

    So digits stand in a text as a tokenizer writes them that cuts digits, and the text as it does
    with them.
    """
    steps = steps_of(config.get("pre_tokenizer"), "pretokenizers")
    before = steps_of(config.get("normalizer"), "normalizers")
    kinds = {step["type"] for step in steps}
    puts_space = "Metaspace" in kinds or any(one["type"] == "Prepend" for one in before)
    if not puts_space or not kinds.issubset(CUTS_AT_SPACES) or not rows:
        return None
    cut = with_splits(config, ["|".join(map(re.escape, rows))])
    return cut | {"model": Model(with_vocabulary(config, rows))}


def with_splits(source: Config, patterns: Iterable[str]) -> Config:
    """Return the source with these cuts, before its own; or after, if it puts a space before
    words.
    """
    ours = [
        {"type": "Split", "pattern": {"Regex": one}, "behavior": "Isolated", "invert": False}
        for one in patterns
    ]
    steps = [_with_groups(one) for one in steps_of(source.get("pre_tokenizer"), "pretokenizers")]
    kinds = {step["type"] for step in steps}
    if "Metaspace" in kinds:
        if not kinds.issubset(CUTS_AT_SPACES):
            raise rows_refused(f"its pre-tokenizer has more than {' and '.join(CUTS_AT_SPACES)}")
        steps = [*steps, *ours]
    elif any(step["type"] == "ByteLevel" and step.get("add_prefix_space", True) for step in steps):
        bytes_alone = {"add_prefix_space": False}
        without = [one | bytes_alone if one["type"] == "ByteLevel" else one for one in steps]
        steps = [PREFIX_SPACE, *ours, *without]
    else:
        steps = [*ours, *steps]
    return source | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}


def _with_groups(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step whose pattern would cut our groups into digits, as Qwen's, without that."""
    if (pattern := regex_of(step)) is None:
        return step
    whole = pattern.replace(r"|\p{N}|", r"|[0-9]{1,3}|\p{N}|")
    return step | {"pattern": {"Regex": whole}}


def with_vocabulary(source: Config, added: Sequence[str]) -> dict[str, Any]:
    """Return the source's model with more words in its vocabulary, after all ids that there are."""
    model = dict(source["model"])
    vocabulary = vocabulary_of(source)
    others = {token["id"]: token["content"] for token in source["added_tokens"]}
    following = 1 + max([*vocabulary.values(), *others], default=-1)
    # rows come after them, so they have to be in the vocabulary too
    beyond = {number: content for number, content in others.items() if content not in vocabulary}
    new = (beyond if added else {}) | dict(enumerate(added, following))
    if isinstance(model["vocab"], list):
        least = min((score for _, score in model["vocab"]), default=0.0)
        model["vocab"] = [*model["vocab"], *([new[number], least] for number in sorted(new))]
    else:
        model["vocab"] = model["vocab"] | {content: number for number, content in new.items()}
    return model


def rows_refused(why: str) -> TokenizerError:
    """Return the error for a tokenizer that cannot have groups of digits as rows."""
    return TokenizerError(
        f"this tokenizer cannot have groups of digits as rows, because {why}; export Digits(1), or"
        " Subword() as it is (save_pretrained saves all, for programs with numtok)"
    )
