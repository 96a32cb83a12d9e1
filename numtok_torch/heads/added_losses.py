"""Cross-entropy with losses on numbers beside it, as transformers' Trainer takes a loss:
``Trainer(..., compute_loss_func=CrossEntropyWith([loss]))``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError

IGNORED = -100


class CrossEntropyWith:
    """The cross-entropy of a stock causal model, and to it so much of other losses. A vocabulary
    that is padded, beyond the tokens of the tokenizer, is none of their business.

    The cross-entropy is the mean over all tokens of a step, whatever the batches that it is made
    of; the other losses are means of each batch, which counts by its share of the tokens. A
    ``NumberModel`` has to see the labels itself: derive from the Trainer for it.

    Args:
        losses: such as ``NumberTokenLoss.from_tokenizer(tokenizer)``.
        weights: of each; one number for all.
    """

    def __init__(self, losses: Sequence[nn.Module], weights: float | Sequence[float] = 0.3) -> None:
        given = [weights] * len(losses) if isinstance(weights, int | float) else list(weights)
        if not losses or len(given) != len(losses):
            raise RepresentationError(
                f"{len(losses)} losses and {len(given)} weights: give at least one loss, and a"
                " weight for each"
            )
        self.losses, self.weights = list(losses), given

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """The loss, float32, a scalar.

        Args:
            outputs: of the model, with ``logits``, (batch, seq, vocabulary).
            labels: (batch, seq); -100 for tokens without a loss.
            num_items_in_batch: tokens with a loss in all batches of the step; None for one batch.
        """
        logits, shifted = outputs["logits"], labels[:, 1:].to(outputs["logits"].device)
        scores = logits[:, :-1].flatten(0, 1).to(torch.float32)  # (batch * (seq - 1), vocabulary)
        total = nn.functional.cross_entropy(scores, shifted.flatten(), reduction="sum")
        here = (shifted != IGNORED).sum()
        count = here if num_items_in_batch is None else num_items_in_batch
        added = sum(
            weight * loss(logits, labels.to(logits.device), causal=True)
            for loss, weight in zip(self.losses, self.weights, strict=True)
        )
        loss: Tensor = total / count + added * (here / count)
        return loss
