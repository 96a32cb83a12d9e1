"""What a number model is trained on: which hidden state predicts which number, and the two losses.

**Which hidden state predicts which number.** Causal: the one before the number, so hidden state t -
1 is held to the number at t, as logits are to labels. Else: the one at the number. Where
``number_labels_mask`` is given (masked language modelling), numbers to predict are there, and their
values in ``S_labels`` for the head's stream S; otherwise they are all numbers, but not those whose
label is -100, as in a prompt. Causal models predict nothing at the beginning of a text, where there
is nothing before, or padding, or another text in the same line (a token at position 0).

**Losses** are means: over tokens with a label, over numbers to predict; 0 where there are none,
with gradients of 0 for every parameter, so that data parallel training does not wait for them.
Where a step has several batches, each gives its share of the mean over all (:class:`Step`). A
Trainer of transformers counts tokens only: ``number_loss_per="token"`` divides numbers by them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from numtok.errors import SchemaError
from numtok.representations.columns import NUMBER_MASK
from numtok_torch.data.masking import IGNORED
from numtok_torch.heads.base import NumberHead
from numtok_torch.model.backbone import ModelError
from numtok_torch.model.streams import LABELS, LABELS_MASK


@dataclass(frozen=True)
class Step:
    """What a Trainer says of the optimizer step that a batch is part of."""

    # labels in all batches of the step, as transformers counts them; None: the batch is all there
    # is
    tokens: Tensor | float | None = None
    # numbers to predict in all of them; None: not known, then a batch's mean counts by its share of
    # the tokens
    numbers: Tensor | float | None = None
    # of the labels, as ``TrainingArguments(label_smoothing_factor=...)`` means it
    smoothing: float = 0.0

    @classmethod
    def taken_from(cls, kwargs: dict[str, Any], labels: Tensor | None) -> Step:
        """Take it out of ``forward``'s arguments; ModelError if the labels are gone."""
        names = {"num_items_in_batch": None, "num_numbers_in_batch": None, "smoothing": 0.0}
        step = cls(*(kwargs.pop(name, default) for name, default in names.items()))
        if step.tokens is not None and labels is None:
            raise ModelError(
                "the labels were taken out of the batch, as transformers' Trainer does for"
                " label_smoothing_factor and compute_loss_func: the labels would not be shifted,"
                " and numbers would have no loss. Use numtok_torch.trainer.NumberTrainer for label"
                " smoothing; for a loss of your own override compute_loss"
            )
        return step

    def share(self, labels: Tensor | None, causal: bool) -> Tensor | float:
        """Of this batch in the tokens of the step."""
        if self.tokens is None or labels is None:
            return 1.0
        return _count(labels, causal) / self.tokens

    def share_of_numbers(
        self, here: int, labels: Tensor | None, causal: bool, per_token: bool
    ) -> Tensor | float:
        """What the mean over the ``here`` numbers of this batch is multiplied by: their share in the
        numbers of the step, or in its tokens; without a count of numbers, that of the tokens here.
        """
        if per_token and labels is not None:
            return here / (
                _count(labels, causal).clamp(min=1) if self.tokens is None else self.tokens
            )
        return self.share(labels, causal) if self.numbers is None else here / self.numbers


def _count(labels: Tensor, causal: bool) -> Tensor:
    """Tokens with a label, as transformers counts them."""
    return ((labels[:, 1:] if causal else labels) != IGNORED).sum()


class NumberModelOutput(dict[str, Any]):
    """A dict whose keys are attributes too; what there is none of is left out, and None as an
    attribute.

    Attributes:
        loss: what is trained on: ``token_weight`` · token_loss + ``number_weight`` · number_loss,
            scalar.
        token_loss: mean cross-entropy, scalar.
        number_loss: the head's loss, scalar.
        logits: (batch, seq, vocab).
        hidden: (batch, seq, d_hidden).
        number_predictions: float64 (batch, seq), not in training: the value that the head predicts
            for each number, at the number's own place; NaN elsewhere.
        number_references: likewise, what is right, where the batch says so.
        past_key_values: the cache, with ``use_cache=True``.
    """

    FIELDS = (
        *("loss", "token_loss", "number_loss", "logits", "hidden"),
        *("number_predictions", "number_references", "past_key_values"),
    )

    def __getattr__(self, name: str) -> Any:
        if name not in self.FIELDS:
            raise AttributeError(
                f"NumberModelOutput has no {name!r}; it has {', '.join(self.FIELDS)}"
            )
        return self.get(name)


def predictable(like: Tensor, streams: Mapping[str, Tensor], causal: bool) -> Tensor:
    """Which tokens some hidden state predicts, bool (batch, seq); see the module."""
    predicted = torch.ones(like.shape[:2], dtype=torch.bool, device=like.device)  # (batch, seq)
    if not causal:
        return predicted
    predicted[:, 0] = False
    if (shown := streams.get("attention_mask")) is not None and shown.shape == predicted.shape:
        predicted[:, 1:] &= shown[:, :-1] != 0
    if (places := streams.get("position_ids")) is not None and places.shape == predicted.shape:
        predicted &= places != 0
    return predicted


def token_loss(logits: Tensor, labels: Tensor, causal: bool, step: Step = Step()) -> Tensor:
    """Mean cross-entropy in float32, scalar, of logits (batch, seq, vocab) and labels (batch, seq);
    0 if no token has a label.
    """
    if causal:
        logits, labels = logits[:, :-1], labels[:, 1:]  # (batch, seq - 1, ...)
    total = nn.functional.cross_entropy(
        logits.float().flatten(0, -2),
        labels.flatten(),
        ignore_index=IGNORED,
        reduction="sum",
        label_smoothing=step.smoothing,
    )
    count = (labels != IGNORED).sum() if step.tokens is None else torch.as_tensor(step.tokens)
    return total / count.to(total.device).clamp(min=1)


def check_logits(backbone: nn.Module, labels: Tensor, logits: Tensor | None) -> Tensor:
    """The logits, if there are any, one row for each label."""
    if logits is None:
        raise ModelError(
            f"{type(backbone).__name__} has no logits, so labels cannot be used; wrap the class"
            " with a language modelling head (...ForCausalLM, ...ForMaskedLM), or train on numbers"
            " only with token_weight=0"
        )
    if logits.shape[:-1] != labels.shape:
        raise ModelError(
            f"labels have the shape {tuple(labels.shape)}, logits {tuple(logits.shape)}; labels are"
            " one per token"
        )
    return logits


def numbers_to_predict(streams: Mapping[str, Tensor], causal: bool) -> Tensor | None:
    """Where they are, bool (batch, seq); None if nothing is said of numbers."""
    where = streams.get(LABELS_MASK)
    if where is None and (where := streams.get(NUMBER_MASK.name)) is not None:
        labels = streams.get("labels")
        if labels is not None and labels.shape == where.shape:
            where = where & (labels != IGNORED)
    return None if where is None else where.to(torch.bool) & predictable(where, streams, causal)


def number_targets(head: NumberHead, streams: Mapping[str, Tensor]) -> Tensor | None:
    """The head's stream as it was before masking, (batch, seq, ...); None if a batch without labels
    lacks it.
    """
    masked = LABELS_MASK in streams
    name = f"{head.target}{LABELS}" if masked else head.target
    target = streams.get(name)
    if target is None and (masked or "labels" in streams):
        raise SchemaError(
            f"the batch has no {name}, which {type(head).__name__} is trained on; it has"
            f" {', '.join(sorted(streams))}. Encode the text with a representation that has it, or"
            " take another head"
        )
    return target


def placed(where: Tensor, values: Tensor) -> Tensor:
    """Values (n,) at the n places of ``where``, bool (batch, seq), NaN elsewhere: float64."""
    empty = torch.full(where.shape, torch.nan, dtype=torch.float64, device=where.device)
    return empty.masked_scatter(where, values.to(torch.float64))
