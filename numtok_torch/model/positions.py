"""Where the tokens of a row are for a backbone, and which of them see each other.

In: a backbone, and masks or positions, (batch, seq). Out: ``position_ids``, int64 (batch, seq), and
masks that keep packed texts apart.

A transformer that is given vectors cannot see which tokens are padding. So where its ``forward``
takes ``position_ids`` and none are given, they are those that the stock model takes for ids padded
on the right, and on the left those that the row would have without its padding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from numtok_torch.model.backbone import ModelError, is_causal, is_pretrained, parameters_of


def positions(backbone: Any, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor | None:
    """``position_ids``, int64 (batch, seq); None where the backbone does well by itself.

    See the module.
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
    """Of RoBERTa and its kin, which count the tokens that are not padding, from ``padding_idx + 1``
    on; else None.
    """
    embeddings = getattr(getattr(backbone, "base_model", None), "embeddings", None)
    position: int | None = getattr(
        getattr(embeddings, "position_embeddings", None), "padding_idx", None
    )
    return position


def counted_from_zero(backbone: Any, position_ids: Tensor) -> Tensor:
    """Positions that were given, (batch, seq), as the backbone counts: if 0 is among them, where it
    begins with another.
    """
    padding = _padding_position(backbone)
    return (
        position_ids
        if padding is None
        else position_ids + (padding + 1) * (position_ids == 0).any()
    )


def mask_apart(
    backbone: Any, causal: bool, vectors: Tensor, position_ids: Tensor | None
) -> Tensor | None:
    """A mask, (batch, 1, seq, seq) of 0 and the smallest number, that keeps packed texts apart, for
    vectors (batch, seq, d) without padding mask.

    A text begins where a position does not follow from the one before. None where there is nothing
    to do: causal models of transformers tell packed texts by ``position_ids`` themselves, others do
    not.

    Raises:
        ModelError: if the backbone has no place for ``position_ids``.
    """
    if position_ids is None:
        return None
    names = parameters_of(backbone)
    if not {"position_ids", "kwargs"} & names:
        raise ModelError(
            f"{type(backbone).__name__}.forward takes no position_ids, by which packed rows and the"
            " documents of a block are kept apart; let them see each other, with"
            " NumberCollator(pack_attention_mask=True) or NumberDataset(separate=False), or do not"
            " pack"
        )
    if (
        causal
        or not is_pretrained(backbone)
        or (is_causal(backbone) and getattr(backbone.config, "is_causal", True))
    ):
        return None
    first = position_ids[:, :1] - 1  # (batch, 1)
    # (batch, seq), the text that each token belongs to
    text = (position_ids.diff(dim=1, prepend=first) != 1).cumsum(1)
    apart = text[:, None, :, None] != text[:, None, None, :]  # (batch, 1, seq, seq)
    return torch.zeros_like(apart, dtype=vectors.dtype).masked_fill(
        apart, torch.finfo(vectors.dtype).min
    )


def room(backbone: Any) -> int | None:
    """The rows of a learned table of positions, the most tokens that the backbone takes; None if it
    has no such table.

    Some tables (OPT, BART) begin with rows that are no positions.
    """
    tables = ("wpe", "position_embeddings", "embed_positions")
    parts = [
        part
        for name, part in backbone.named_modules()
        if isinstance(part, nn.Embedding) and name.split(".")[-1] in tables
    ]
    sizes = [part.num_embeddings - int(getattr(part, "offset", 0)) for part in parts]
    return min(sizes) if sizes else None
