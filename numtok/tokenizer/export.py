"""A tokenizer.json that gives numbers without numtok: their groups of digits are rows of the
vocabulary, added after the ids that there are, and its own pre-tokenizer cuts them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from numtok.engines.config import Config, Model, tokenizer_errors, vocabulary_of
from numtok.engines.hf_tokenizers import complete_library, load
from numtok.engines.vocabulary_rows import rows_refused, with_splits, with_vocabulary
from numtok.errors import TokenizerError
from numtok.representations.base import PlainForm
from numtok.tokenizer.tokenizer_json import numbered


def plain_config(
    config: Config, own_tokens: Collection[str], form: PlainForm
) -> tuple[Config, tuple[str, ...]]:
    """Return (``config`` without numtok's ``own_tokens``, with numbers in this form; the rows that it
    lacked). TokenizerError if the source's model or pre-tokenizer lets no groups of digits be rows.
    """
    kept = [token for token in config["added_tokens"] if token["content"] not in own_tokens]
    source = config | {"added_tokens": kept, "truncation": None, "padding": None}
    if numbered(source, "the tokenizer")["added_tokens"] != kept:
        raise TokenizerError(
            "the source has tokens that were added after numtok's own, whose ids would change"
            " without them; export a tokenizer that is made from the original source"
        )
    if not form.rows:
        return source, ()
    complete_library("writing a tokenizer.json with groups of digits")
    vocabulary = {*vocabulary_of(source), *(token["content"] for token in kept)}
    added = tuple(row for row in form.rows if row not in vocabulary)
    rows = [row for row in form.rows if row not in {token["content"] for token in kept}]
    exported = with_splits(source, form.splits) | {"model": _with_rows(source, rows, added)}
    _check(exported, form.rows)
    return exported, added


def _with_rows(source: Config, rows: Sequence[str], added: Sequence[str]) -> Model:
    """Return the source's model with every row as one token of its own; ids stay."""
    model = with_vocabulary(source, added)
    if isinstance(model["vocab"], list):
        return _likelier(model, rows)
    return _merged(model, rows) if model.get("type", "BPE") == "BPE" else Model(model)


def _merged(model: dict[str, Any], rows: Sequence[str]) -> Model:
    """Return BPE with further merges, the last of all, that make each row of what the others make
    of it.
    """
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise rows_refused("its BPE marks where words begin or end")
    as_text = any(isinstance(pair, str) for pair in model["merges"])
    for width in sorted(set(map(len, rows))):
        wide = [row for row in rows if len(row) == width]
        pairs = [tokens for tokens in _tokens(model, wide) if len(tokens) == 2]
        merges = [" ".join(pair) if as_text else pair for pair in pairs]
        model["merges"] = [*model["merges"], *merges]
    return Model(model)


def _likelier(model: dict[str, Any], rows: Sequence[str]) -> Model:
    """Return a Unigram model in which a group (score 0) is likelier than its digits (below 0). Every
    digit is cut off the text beside it, so nothing else changes.
    """
    groups = {row for row in rows if len(row) > 1}
    model["vocab"] = [[one, 0.0 if one in groups else score] for one, score in model["vocab"]]
    return Model(model)


def _tokens(model: dict[str, Any], texts: Sequence[str]) -> list[list[str]]:
    """Return the tokens of texts by the model alone."""
    alone = {"version": "1.0", "added_tokens": [], "model": model}
    with tokenizer_errors("the vocabulary cannot be given rows for digits"):
        bare = load(alone)
        return [one.tokens for one in bare.encode_batch(list(texts), add_special_tokens=False)]


def _check(config: Config, rows: Sequence[str]) -> None:
    """Check that every row is one token, after the space that some tokenizers begin with."""
    with tokenizer_errors("the exported tokenizer.json does not load"):
        loaded = load(config)
        ids = [one.ids for one in loaded.encode_batch(list(rows), add_special_tokens=False)]
        begin = loaded.encode("0", add_special_tokens=False).ids[:-1]
    for row, row_ids in zip(rows, ids, strict=True):
        if row_ids != [*begin, loaded.token_to_id(row)]:
            raise rows_refused(f"it cuts {row!r} by itself")
