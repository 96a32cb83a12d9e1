"""The parts of a number model, chosen from what the data and the backbone are: the layer, the head,
rows for the number tokens, the objective and the collator; and whether they fit together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numtok
from numtok.errors import SchemaError
from numtok.representations import SingleToken
from numtok_torch.choose import embedding_from_schema, head_from_schema, representations_of
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.tokens import identity_of, numtok_of, token_id
from numtok_torch.embeddings.base import NumberLayer
from numtok_torch.model.backbone import (
    ModelError,
    add_rows,
    check_own_tokenizer,
    output_layer,
    rows_of,
    unwrapped,
    word_embedding,
)
from numtok_torch.model.number_rows import start_rows

MASKS = ("[MASK]", "<mask>")  # of BERT and RoBERTa


def chosen_layers(
    backbone: Any, schema: Any, embedding: Mapping[str, Any], head: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return the embedding and the head for data of this schema, each None where the numbers are
    tokens that need none. The options are those of ``embedding_from_schema``, with ``nonzero``
    unless it is given, and ``head_from_schema``.
    """
    inner = unwrapped(backbone)
    shown = representations_of(schema)
    width = word_embedding(inner).weight.shape[1]
    hidden = getattr(getattr(inner, "config", None), "hidden_size", None) or width
    layer = None
    if any(one.columns() for one in shown):
        layer = embedding_from_schema(schema, width, **{"nonzero": True, **embedding})
    elif embedding:
        raise SchemaError(
            f"embedding={dict(embedding)} is for a layer, and the numbers of this data are tokens"
            " alone, which need none"
        )
    if head or isinstance(shown[0], SingleToken):
        return layer, head_from_schema(schema, hidden, **head)
    return layer, None


def chosen_collator(model: Any, schema: Any, tokenizer: Any) -> NumberCollator:
    """Return the collator for a model and the data of this schema: with labels of the next tokens
    for a causal model, of masked ones for another, and those of the rows for a classifier.
    """
    if model.decodes:
        raise ModelError(
            f"{type(model.transformer).__name__} has an encoder and a decoder, whose rows are pairs;"
            " make NumberModel(...) and Seq2SeqNumberCollator yourself"
        )
    padding = getattr(getattr(model.transformer, "config", None), "pad_token_id", None)
    options: dict[str, Any] = {"objective": "causal" if model.causal else "masked"}
    if model.task is not None or output_layer(model.transformer) is None:
        options["objective"] = None
    if model.task == "texts" and model.causal:
        options["padding_side"] = "left"  # by its last token it classifies a text
    if options["objective"] == "masked":
        options["mask_token_id"] = _mask_token(tokenizer)
    return NumberCollator.from_schema(schema, pad_token_id=padding or 0, **options)


def _mask_token(tokenizer: Any) -> int:
    """Return the id of the token that hides another."""
    name = getattr(tokenizer, "mask_token", None)
    inner = getattr(tokenizer, "numtok", tokenizer)  # of a numtok.hf.NumberTokenizer
    if name is None and isinstance(inner, numtok.Tokenizer):
        contents = {entry["content"] for entry in inner.config["added_tokens"]}
        name = next((mask for mask in MASKS if mask in contents), None)
    if name is None:
        raise ModelError(
            "the tokenizer has no mask token; give the Trainer a NumberCollator(...,"
            " objective='masked', mask_token_id=...)"
        )
    return token_id(tokenizer, name)


def check_learns(model: Any) -> None:
    """Refuse a number model in which nothing can learn, with the options that help."""
    if any(one.requires_grad for one in model.parameters()):
        return
    raise ModelError(
        "nothing in this model can learn: the backbone is frozen, and neither embedding nor head has"
        " weights; take embedding_from_schema(..., projection='linear'), a head that has weights,"
        " such as head_from_schema(..., layer_norm=True), or freeze_backbone='trunk', which trains"
        " the word head"
    )


def make_room(backbone: Any, tokenizer: Any, vocab_size: int | None) -> None:
    """Add rows for all tokens of the tokenizer, or for so many."""
    if tokenizer is None or isinstance(tokenizer, Mapping):
        add_rows(backbone, vocab_size or 0)
        return
    numtok_tokenizer, rows = numtok_of(tokenizer), rows_of(backbone)
    add_rows(backbone, max(vocab_size or 0, numtok_tokenizer.vocab_size), started=False)
    start_rows(backbone, numtok_tokenizer, rows)


def identity_for(tokenizer: Any, *layers: NumberLayer | None) -> dict[str, Any] | None:
    """Return the identity of the tokenizer given, or of the one that the layers were made for.
    ModelError if they differ.
    """
    of_tokenizer = None if tokenizer is None else identity_of(tokenizer)
    for layer in layers:
        made_for = None if layer is None else layer.tokenizer_identity
        if of_tokenizer is not None and made_for is not None:
            what = f"{type(layer).__name__} was made for the data of"
            check_own_tokenizer(made_for, of_tokenizer, what)
        of_tokenizer = of_tokenizer or (None if made_for is None else dict(made_for))
    return of_tokenizer
