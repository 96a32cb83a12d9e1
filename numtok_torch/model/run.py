"""The pass through a backbone: word vectors in, hidden states and logits out; where the tokens of a
row are for it, and which of them see each other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from numtok_torch.embeddings.base import readable
from numtok_torch.model.backbone import (
    ModelError,
    classification,
    has_decoder,
    is_causal,
    is_pretrained,
    output_layer,
    parameters_of,
    size_of_words,
)


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode for a while, without gradients."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True


def run_backbone(
    backbone: Any,
    causal: bool,
    input_ids: Tensor,
    vectors: Tensor,
    inputs: dict[str, Any],
    decoding: bool,
) -> tuple[Any, Tensor, Tensor | None]:
    """Return the backbone's own output (None for a plain module), hidden states (batch, seq,
    d_hidden), of a decoder if there is one, and logits (batch, seq, vocab) if it has any; for
    ``input_ids`` (batch, seq) with the word ``vectors`` (batch, seq, d). ``decoding``: both are
    those of the decoder, which is all that runs.
    """
    inputs = _placed(backbone, causal, input_ids, vectors, inputs)
    if not is_pretrained(backbone):
        hidden: Tensor = backbone(inputs_embeds=vectors, **inputs)
        layer = output_layer(backbone)
        return None, hidden, None if layer is None else layer(hidden)
    if classification(backbone) == "texts" and is_causal(backbone):
        _check_padding(backbone, input_ids, inputs.get("attention_mask"))
    inputs["decoder_inputs_embeds" if decoding else "inputs_embeds"] = vectors
    output = backbone(**{**inputs, "output_hidden_states": True, "return_dict": True})
    return output, _last_hidden_state(backbone, output), getattr(output, "logits", None)


def _last_hidden_state(backbone: Any, output: Any) -> Tensor:
    last: Tensor | None = getattr(output, "last_hidden_state", None)
    if last is not None:
        return last
    states = getattr(output, "decoder_hidden_states" if has_decoder(backbone) else "hidden_states")
    if not states:
        raise ModelError(
            f"{type(backbone).__name__} gives no hidden states with output_hidden_states=True, from"
            " which numbers are read; take another model"
        )
    hidden: Tensor = states[-1]
    return hidden


def _check_padding(backbone: Any, input_ids: Tensor, attention_mask: Tensor | None) -> None:
    """Raise ModelError if a row ends with padding: a causal classifier that is given vectors
    classifies by the last position.
    """
    name, padding = type(backbone).__name__, backbone.config.pad_token_id
    if padding is None and len(input_ids) > 1:
        raise ModelError(
            f"{name} finds the end of a text by its padding, and has no pad_token_id; set"
            " backbone.config.pad_token_id to the collator's"
        )
    if padding is None or not readable(input_ids):
        return
    ends = input_ids[:, -1] == padding  # (batch,)
    if attention_mask is not None:  # the end of a text may have the same id
        ends = ends & (attention_mask[:, -1] == 0)
    if bool(ends.any()):
        raise ModelError(
            f"{name} classifies a text by its last token, and here that is padding; pad on the"
            " left, with NumberCollator(..., padding_side='left')"
        )


def _placed(
    backbone: Any, causal: bool, input_ids: Tensor, vectors: Tensor, inputs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments with masks and positions, where the backbone takes them, and without
    None.
    """
    inputs, taken = dict(inputs), parameters_of(backbone)
    if inputs.get("attention_mask") is None:
        position_ids = inputs.get("position_ids")
        inputs["attention_mask"] = mask_apart(backbone, causal, vectors, position_ids)
    if (position_ids := inputs.get("position_ids")) is not None:
        if (padding := _padding_position(backbone)) is not None:  # it counts from there on
            inputs["position_ids"] = position_ids + (padding + 1) * (position_ids == 0).any()
    elif "position_ids" in taken:
        inputs["position_ids"] = positions(backbone, input_ids, inputs.get("attention_mask"))
    if "use_cache" in taken or {"past_key_values", "kwargs"} <= taken:  # as of GraniteMoe
        inputs.setdefault("use_cache", False)  # a cache costs memory in training
    return {name: value for name, value in inputs.items() if value is not None}


def positions(backbone: Any, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor | None:
    """Return ``position_ids``, int64 (batch, seq), as a transformer that is given vectors cannot
    see which tokens are padding: those that the stock model takes for ids padded on the right, and
    on the left those that the row would have without. None where the backbone does well by itself.
    """
    padding = _padding_position(backbone)
    if padding is not None:
        shown = input_ids != padding  # (batch, seq)
        if attention_mask is not None and attention_mask.shape == shown.shape:
            shown = shown & (attention_mask != 0)
        counted: Tensor = shown.cumsum(1) * shown + padding  # (batch, seq)
        return counted
    if attention_mask is None or attention_mask.dim() != 2:
        return None
    # (all,), those in the cache included
    places = torch.arange(attention_mask.shape[1], device=attention_mask.device)
    # (batch, 1), padding on the left
    leading = (attention_mask.cumsum(1) == 0).sum(1, keepdim=True)
    return (places - leading).clamp(min=0)[:, -input_ids.shape[1] :]  # (batch, seq)


def _padding_position(backbone: Any) -> int | None:
    """Return ``padding_idx`` of RoBERTa and its kin, who count positions from it; else None."""
    embeddings = getattr(getattr(backbone, "base_model", None), "embeddings", None)
    position: int | None = getattr(
        getattr(embeddings, "position_embeddings", None), "padding_idx", None
    )
    return position


def mask_apart(
    backbone: Any, causal: bool, vectors: Tensor, position_ids: Tensor | None
) -> Tensor | None:
    """Return a mask, (batch, 1, seq, seq) of 0 and the smallest number, that keeps packed texts
    apart, for vectors (batch, seq, d) without padding mask. A text begins where a position does not
    follow.

    None where there is nothing to do: causal models of transformers tell packed texts by
    ``position_ids`` themselves, if they can (:func:`keeps_apart`), others do not.
    """
    if position_ids is None:
        return None
    if causal or not is_pretrained(backbone):
        return None
    if is_causal(backbone) and getattr(backbone.config, "is_causal", True):
        return None
    if "sliding_attention" in (getattr(backbone.config, "layer_types", None) or ()):
        return None  # transformers takes a mask as it is, so that its layers would have no window
    first = position_ids[:, :1] - 1  # (batch, 1)
    # (batch, seq), the text that each token belongs to
    text = (position_ids.diff(dim=1, prepend=first) != 1).cumsum(1)
    apart = text[:, None, :, None] != text[:, None, None, :]  # (batch, 1, seq, seq)
    least = torch.finfo(vectors.dtype).min
    return torch.zeros_like(apart, dtype=vectors.dtype).masked_fill(apart, least)


def check_apart(
    backbone: Any, causal: bool, vectors: Tensor, inputs: Mapping[str, Any], keeps: bool | None
) -> bool | None:
    """Refuse packed rows of word ``vectors``, with their masks in ``inputs``, in which one text
    would see another. Return whether the backbone keeps texts apart; None if that is not known
    yet.
    """
    if inputs.get("attention_mask") is not None:
        return keeps
    if keeps is None:  # all processes find out at once, whichever of them has packed rows
        keeps = keeps_apart(backbone, causal, vectors)
    if not keeps and bool((inputs["position_ids"].diff() != 1).any()):
        raise ModelError(
            f"{type(backbone).__name__} does not keep the documents of packed rows and blocks"
            " apart: each would see those in front of it. Let them see each other, with"
            " NumberCollator(pack_attention_mask=True) or NumberDataset(separate=False), or do not"
            " pack"
        )
    return keeps


def keeps_apart(backbone: Any, causal: bool, vectors: Tensor) -> bool:
    """Whether a text in a row is computed as if no other was packed in front of it. ``vectors``
    (batch, seq, d_model) show the device, dtype and width of word vectors.

    Signatures and configs do not say, so a row is computed twice, with another text in front.
    Recurrent and convolutional layers mix the texts, and some attention masks ignore positions.
    """
    if has_decoder(backbone) or not {"position_ids", "kwargs"} & parameters_of(backbone):
        return False
    d, size = vectors.shape[-1], size_of_words(backbone) or 1.0  # with numbers they may be huge
    drawn = size * torch.arange(3 * d, device=vectors.device).float().sin().view(3, 1, d)
    before, other, text = drawn.to(vectors.dtype)  # (1, d) each
    pair = [torch.cat([one.expand(7, d), text]) for one in (before, other)]
    rows = torch.stack(pair)  # (2, 8, d)
    places = torch.arange(8, device=vectors.device).remainder(7).expand(2, 8)  # 0 to 6, then 0
    inputs, ids = {"position_ids": places}, torch.zeros_like(places)
    try:
        with evaluating(backbone):
            _, hidden, _ = run_backbone(backbone, causal, ids, rows, inputs, False)
    except torch.OutOfMemoryError:  # says nothing of the backbone
        raise
    except (RuntimeError, AssertionError):  # of masks whose shape the backbone does not know
        return False
    finally:
        torch.clear_autocast_cache()  # its copies of weights, made without gradients
    one, two = hidden[:, -1].float()  # (d_hidden,) each
    noise = max(1e-4, torch.finfo(hidden.dtype).eps / 4)  # of mixtures of experts
    return bool((one - two).norm() <= noise * one.norm())


def check_positions(backbone: Any, places: int, width: int, inputs: Mapping[str, Any]) -> None:
    """Refuse rows of ``width`` tokens, with their masks in ``inputs``, of which more than
    ``places`` need a position in a learned table.
    """
    longest, padding = width, _padding_position(backbone)
    if (positions := inputs.get("position_ids")) is not None:  # begin anew in packed rows
        longest = int(positions.max()) + 1
        if padding is not None and int(positions.min()) > 0:
            longest -= padding + 1
    elif (
        (mask := inputs.get("attention_mask")) is not None
        and mask.dim() == 2
        and not has_decoder(backbone)
    ):
        shown = mask if padding is not None else mask.cumsum(1)  # else padding behind has places
        longest = int((shown != 0).sum(1).max())
    if longest > places:
        raise ModelError(
            f"a row of the batch has {longest} tokens, but {type(backbone).__name__} has {places}"
            f" positions; make shorter rows: NumberDataset(..., block_size={places}), or"
            f" NumberCollator(..., max_length={places})"
        )


def room(backbone: Any, decoder: bool = False) -> int | None:
    """Return how many positions a learned table has, of an encoder with a decoder that of the one
    or the other; None if there is no table.
    """
    if has_decoder(backbone):
        backbone = backbone.get_decoder() if decoder else backbone.get_encoder()
    tables = ("wpe", "position_embeddings", "embed_positions")
    parts = [
        part
        for name, part in backbone.named_modules()
        if isinstance(part, nn.Embedding) and name.split(".")[-1] in tables
    ]
    # some (OPT, BART, RoBERTa) begin with rows that are no positions
    sizes = [
        part.num_embeddings
        - int(getattr(part, "offset", 0))
        - (0 if part.padding_idx is None else part.padding_idx + 1)
        for part in parts
    ]
    return min(sizes) if sizes else None
