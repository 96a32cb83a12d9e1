"""A tokenizer.json that gives numbers without numtok: their groups of digits are rows of the
vocabulary, added after the ids that there are, and its own pre-tokenizer cuts them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from numtok.engines.cuts import regex_of
from numtok.engines.hf_tokenizers import complete_library, load
from numtok.engines.interface import Config, steps_of
from numtok.engines.number_tokens import vocabulary_of
from numtok.engines.tokenizer_json import Model, numbered, tokenizer_errors
from numtok.errors import TokenizerError
from numtok.representations.plain import PlainForm

PREFIX_SPACE = {"type": "Metaspace", "replacement": " ", "prepend_scheme": "always", "split": False}
CUTS_AT_SPACES = ("WhitespaceSplit", "Metaspace")


def with_rows_in_text(config: Config, rows: Sequence[str]) -> Config | None:
    """``config`` with single characters as rows of its vocabulary, cut from the text around them,
    where added tokens would change that text: SentencePiece puts a space at the beginning of what
    stands between two. None for other tokenizers.

    So digits stand in a text as a tokenizer writes them that cuts digits, and the text as it does
    with them.
    """
    steps = steps_of(config.get("pre_tokenizer"), "pretokenizers")
    before = steps_of(config.get("normalizer"), "normalizers")
    kinds = {step["type"] for step in steps}
    puts_space = "Metaspace" in kinds or any(one["type"] == "Prepend" for one in before)
    if not puts_space or not kinds.issubset(CUTS_AT_SPACES) or not rows:
        return None
    cut = _with_splits(config, ["|".join(map(re.escape, rows))])
    return cut | {"model": Model(_with_vocabulary(config, rows))}


class Plain(NamedTuple):
    """A tokenizer.json as a dict, and the rows that its source lacked."""

    config: Config
    added: tuple[str, ...]


def plain_config(config: Config, own: Collection[str], form: PlainForm) -> Plain:
    """``config`` without numtok's ``own`` tokens, with numbers in this form. TokenizerError if the
    source's model or pre-tokenizer lets no groups of digits be rows.
    """
    kept = [token for token in config["added_tokens"] if token["content"] not in own]
    source = config | {"added_tokens": kept, "truncation": None, "padding": None}
    if numbered(source, "the tokenizer")["added_tokens"] != kept:
        raise TokenizerError(
            "the source has tokens that were added after numtok's own, whose ids would change"
            " without them; export a tokenizer that is made from the original source"
        )
    if not form.rows:
        return Plain(source, ())
    complete_library("writing a tokenizer.json with groups of digits")
    known = {*vocabulary_of(source), *(token["content"] for token in kept)}
    added = tuple(row for row in form.rows if row not in known)
    rows = [row for row in form.rows if row not in {token["content"] for token in kept}]
    made = _with_splits(source, form.splits) | {"model": _with_rows(source, rows, added)}
    _check(made, form.rows)
    return Plain(made, added)


# Pre-tokenizers
# ----------------------------------------------------------------------------------------------


def _with_splits(source: Config, patterns: Iterable[str]) -> Config:
    """The source with these cuts, before its own; or after, if it puts a space before pieces."""
    ours = [
        {"type": "Split", "pattern": {"Regex": one}, "behavior": "Isolated", "invert": False}
        for one in patterns
    ]
    steps = [_with_groups(one) for one in steps_of(source.get("pre_tokenizer"), "pretokenizers")]
    kinds = {step["type"] for step in steps}
    if "Metaspace" in kinds:
        if not kinds.issubset(CUTS_AT_SPACES):
            raise _refused(f"its pre-tokenizer has more than {' and '.join(CUTS_AT_SPACES)}")
        steps = [*steps, *ours]
    elif any(step["type"] == "ByteLevel" and step.get("add_prefix_space", True) for step in steps):
        bytes_alone = {"add_prefix_space": False}
        without = [one | bytes_alone if one["type"] == "ByteLevel" else one for one in steps]
        steps = [PREFIX_SPACE, *ours, *without]
    else:
        steps = [*ours, *steps]
    return source | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}


def _with_groups(step: dict[str, Any]) -> dict[str, Any]:
    """A pattern that would cut our groups into digits, as Qwen's, without that."""
    if (pattern := regex_of(step)) is None:
        return step
    whole = pattern.replace(r"|\p{N}|", r"|[0-9]{1,3}|\p{N}|")
    return step | {"pattern": {"Regex": whole}}


# Vocabularies
# ----------------------------------------------------------------------------------------------


def _with_rows(source: Config, rows: Sequence[str], added: Sequence[str]) -> Model:
    """The source's model with every row as one token of its own; ids stay."""
    model = _with_vocabulary(source, added)
    if isinstance(model["vocab"], list):
        return _likelier(model, rows)
    return _merged(model, rows) if model.get("type", "BPE") == "BPE" else Model(model)


def _with_vocabulary(source: Config, added: Sequence[str]) -> dict[str, Any]:
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


def _merged(model: dict[str, Any], rows: Sequence[str]) -> Model:
    """BPE with merges, the last of all, that make each row of what the others make of it."""
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise _refused("its BPE marks where words begin or end")
    as_text = any(isinstance(pair, str) for pair in model["merges"])
    for width in sorted(set(map(len, rows))):
        wide = [row for row in rows if len(row) == width]
        pairs = [pieces for pieces in _pieces(model, wide) if len(pieces) == 2]
        merges = [" ".join(pair) if as_text else pair for pair in pairs]
        model["merges"] = [*model["merges"], *merges]
    return Model(model)


def _likelier(model: dict[str, Any], rows: Sequence[str]) -> Model:
    """A Unigram model in which a group is likelier than its digits, which are below 0: no other
    piece of text has digits, so nothing else changes.
    """
    groups = {row for row in rows if len(row) > 1}
    model["vocab"] = [[one, 0.0 if one in groups else score] for one, score in model["vocab"]]
    return Model(model)


def _pieces(model: dict[str, Any], texts: Sequence[str]) -> list[list[str]]:
    """The tokens of texts by the model alone."""
    alone = {"version": "1.0", "added_tokens": [], "model": model}
    with tokenizer_errors("the vocabulary cannot be given rows for digits"):
        bare = load(alone)
        return [one.tokens for one in bare.encode_batch(list(texts), add_special_tokens=False)]


def _check(config: Config, rows: Sequence[str]) -> None:
    """Every row is one token, after the space that some tokenizers begin with."""
    with tokenizer_errors("the exported tokenizer.json does not load"):
        made = load(config)
        ids = [one.ids for one in made.encode_batch(list(rows), add_special_tokens=False)]
        begin = made.encode("0", add_special_tokens=False).ids[:-1]
    for row, found in zip(rows, ids, strict=True):
        if found != [*begin, made.token_to_id(row)]:
            raise _refused(f"it cuts {row!r} by itself")


def _refused(why: str) -> TokenizerError:
    return TokenizerError(
        f"this tokenizer cannot have groups of digits as rows, because {why}; export Digits(1), or"
        " Subword() as it is (save_pretrained saves all, for programs with numtok)"
    )
