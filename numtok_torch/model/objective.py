"""Objective of a number model: the streams that it takes, which hidden state predicts which
number, and the two losses.

**Streams** are all that the representations declare, so that a new one needs no edit. A Trainer
drops the columns of a data set that the signature of ``forward`` does not name, before the collator
sees them. So the signature names every stream, and ``number_index``, without which the collator
cannot tell whose the values in the rows of a file are. It names no ``S_labels``: the Trainer would
ask for all of them when it evaluates.

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

**Losses that are not finite** are errors, before they make a model one of NaN. On an accelerator the
host waits for the losses, as a Trainer does for its log. Infinite *gradients* are no error: under
float16 a ``GradScaler`` expects them. In a graph that ``torch.compile`` makes nothing is checked;
compile the backbone rather than the whole model to keep this.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from numtok.errors import SchemaError
from numtok.representations import streams as declared_streams
from numtok.representations.columns import NUMBER_INDEX, NUMBER_MASK, NUMBER_VALUE, SEQ_LENGTHS
from numtok_torch.data.masking import IGNORED
from numtok_torch.embeddings.base import readable
from numtok_torch.embeddings.xval import FAR_BEYOND, WAY_OUT
from numtok_torch.heads.base import NumberHead
from numtok_torch.model.backbone import ModelError

LABELS, LABELS_MASK = "_labels", "number_labels_mask"
# which the collator needs
_OF_FILES = {NUMBER_INDEX.name: "number", SEQ_LENGTHS.name: "piece of a document"}
LOSSES = ("token_loss", "number_loss", "loss")


def name_streams(forward: Callable[..., Any]) -> None:
    """Name the streams there are by now in the signature of ``forward``."""
    *parameters, rest = inspect.signature(inspect.unwrap(forward)).parameters.values()
    kind = inspect.Parameter.KEYWORD_ONLY
    named = [
        inspect.Parameter(name, kind, default=None, annotation="Tensor | None")
        for name in (NUMBER_MASK.name, *declared_streams(), *_OF_FILES)
    ]
    parameters = [
        parameter for parameter in parameters if parameter.kind is not kind
    ]  # named before
    forward.__signature__ = inspect.Signature([*parameters, *named, rest])  # type: ignore[attr-defined]  # what inspect looks for


def pop_streams(kwargs: dict[str, Any]) -> dict[str, Tensor | None]:
    """Take the streams, and the labels of streams, out of the arguments. ModelError for rows of a
    file that nobody made a batch of.
    """
    for name, counted in _OF_FILES.items():
        if kwargs.pop(name, None) is not None:
            raise ModelError(
                f"{name} is a column of a file, which has one value per {counted}; batch its rows"
                " with NumberCollator"
            )
    stream_names = {NUMBER_MASK.name, LABELS_MASK, *declared_streams()}
    taken = [name for name in kwargs if name in stream_names or name.endswith(LABELS)]
    return {name: kwargs.pop(name) for name in taken}


def fills() -> dict[str, float]:
    """Return the filler of each stream, which stands where the stream has no value."""
    declared = {name: forms[0].fill for name, forms in declared_streams().items()}
    return {NUMBER_MASK.name: NUMBER_MASK.fill, **declared}


def filled(stream: Tensor, fill: float) -> Tensor:
    """Return one column of the filler, (batch, 1, ...), like the stream (batch, seq, ...)."""
    return stream.new_full((len(stream), 1, *stream.shape[2:]), fill)


def shifted(stream: Tensor, fill: float) -> Tensor:
    """Shift a stream (batch, seq, ...) one place to the right, with the filler in front."""
    return torch.cat([filled(stream, fill), stream], 1)[:, : stream.shape[1]]


@dataclass(frozen=True)
class Step:
    """Counts that a Trainer gives for the optimizer step that a batch is part of."""

    # labels in all batches of the step, as transformers counts them, 1 at least; None: the batch is
    # all there is
    tokens: Tensor | None = None
    # numbers to predict in all of them; None: not known, then a batch's mean counts by its share of
    # the tokens
    numbers: Tensor | float | None = None
    # of the labels, as ``TrainingArguments(label_smoothing_factor=...)`` means it
    smoothing: float = 0.0

    @classmethod
    def taken_from(cls, kwargs: dict[str, Any], labels: Tensor | None) -> Step:
        """Take it out of ``forward``'s arguments; ModelError if the labels are gone."""
        tokens, numbers = (
            kwargs.pop("num_items_in_batch", None),
            kwargs.pop("num_numbers_in_batch", None),
        )
        if tokens is not None:
            tokens = torch.as_tensor(tokens).clamp(min=1)
        step = cls(tokens, numbers, kwargs.pop("smoothing", 0.0))
        if step.tokens is not None and labels is None:
            raise ModelError(
                "the labels were taken out of the batch, as transformers' Trainer does for"
                " label_smoothing_factor and compute_loss_func: the labels would not be shifted,"
                " and numbers would have no loss. Use numtok_torch.trainer.NumberTrainer for label"
                " smoothing; for a loss of your own override compute_loss"
            )
        return step

    def share(self, labels: Tensor | None, causal: bool) -> Tensor | float:
        """Return the share of this batch in the tokens of the step."""
        if self.tokens is None or labels is None:
            return 1.0
        return _count(labels, causal) / self.tokens

    def share_of_numbers(
        self, here: Tensor, labels: Tensor | None, causal: bool, per_token: bool
    ) -> Tensor | float:
        """Return the factor of the mean over the ``here`` numbers of this batch: their share in the
        numbers of the step, or in its tokens; without a count of numbers, that of the tokens here.
        """
        if per_token and labels is not None:
            return here / (
                _count(labels, causal).clamp(min=1) if self.tokens is None else self.tokens
            )
        return self.share(labels, causal) if self.numbers is None else here / self.numbers


def _count(labels: Tensor, causal: bool) -> Tensor:
    """Count tokens with a label as transformers does."""
    return ((labels[:, 1:] if causal else labels) != IGNORED).sum()


class NumberModelOutput(dict[str, Any]):
    """A dict whose keys are attributes too. A field without a value is not among the keys, and None
    as an attribute.

    Attributes:
        loss: what is trained on: ``token_weight`` · token_loss + ``number_weight`` · number_loss,
            scalar.
        token_loss: mean cross-entropy, scalar.
        number_loss: the head's loss, scalar.
        logits: (batch, seq, vocab).
        hidden: (batch, seq, d_hidden).
        number_predictions: float64 (batch, seq), not in training: the value that the head predicts
            for each number, at the number's own place; NaN elsewhere.
        number_references: float64 (batch, seq), the true values, if the batch has them.
        past_key_values: the cache, with ``use_cache=True``.

    Example:
        >>> import torch
        >>> output = NumberModelOutput(loss=torch.tensor(2.5))
        >>> output["loss"], output.loss, output.logits
        (tensor(2.5000), tensor(2.5000), None)
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
    """Return which tokens some hidden state predicts, bool (batch, seq); see the module."""
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
    """Return the mean cross-entropy in float32, scalar, of logits (batch, seq, vocab) and labels
    (batch, seq); 0 if no token has a label.
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
    count = (labels != IGNORED).sum() if step.tokens is None else step.tokens
    return total / count.to(total.device).clamp(min=1)


def weighted_sum(losses: Iterable[tuple[float, Tensor | None]]) -> Tensor | None:
    """Return the sum of (weight, loss), float32, a scalar; None if there is no loss."""
    weighted = [(weight * loss).float() for weight, loss in losses if loss is not None]
    return torch.stack(weighted).sum() if weighted else None


def check_logits(backbone: nn.Module, labels: Tensor, logits: Tensor | None) -> Tensor:
    """Return the logits if there are any, with a row for each label."""
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
    """Return where the numbers to predict are, bool (batch, seq); None if the batch says nothing of
    numbers.
    """
    where = streams.get(LABELS_MASK)
    if where is None and (where := streams.get(NUMBER_MASK.name)) is not None:
        labels = streams.get("labels")
        if labels is not None and labels.shape == where.shape:
            where = where & (labels != IGNORED)
    return None if where is None else where.to(torch.bool) & predictable(where, streams, causal)


def number_targets(head: NumberHead, streams: Mapping[str, Tensor]) -> Tensor | None:
    """Return the head's stream as it was before masking, (batch, seq, ...); None if a batch without
    labels lacks it.
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


def count_targets(
    head: NumberHead | None, streams: Mapping[str, Tensor], where: Tensor | None
) -> Tensor:
    """Count the numbers at ``where``, bool (batch, seq), that the head's mean is of: int64, a scalar.
    Values that are infinite or NaN are left out of it.
    """
    if head is None or where is None:
        return torch.tensor(0)
    target = number_targets(head, streams) if head.target == NUMBER_VALUE.name else None
    return (where if target is None else where & torch.isfinite(target)).sum()


def placed(where: Tensor, values: Tensor) -> Tensor:
    """Put values (n,) at the n places of ``where``, bool (batch, seq), NaN elsewhere: float64."""
    empty = torch.full(where.shape, torch.nan, dtype=torch.float64, device=where.device)
    return empty.masked_scatter(where, values.to(torch.float64))


def check_finite(
    model: nn.Module, output: Mapping[str, Any], streams: Mapping[str, Tensor], reads: Sequence[str]
) -> None:
    """Refuse an output with a loss that is not finite, or a number that is not in a stream that the
    layers read: ModelError names the first cause that shows, and what to do. Without a loss nothing
    is checked.
    """
    losses = {name: output[name].detach() for name in LOSSES if output.get(name) is not None}
    if not losses or not all(readable(one) for one in losses.values()):
        return
    inputs = {name: streams[name].detach() for name in reads if name in streams}
    inputs = {name: stream for name, stream in inputs.items() if stream.is_floating_point()}
    if (mask := streams.get(NUMBER_MASK.name)) is not None:
        inputs = {name: one[mask.to(torch.bool)] for name, one in inputs.items()}  # (numbers, ...)
    device = next(iter(losses.values())).device
    each = [torch.isfinite(one).all().to(device) for one in (*losses.values(), *inputs.values())]
    if bool(torch.stack(each).all()):
        return
    findings = [f"{name} is {float(one):g}" for name, one in losses.items() if not one.isfinite()]
    wrong = {name: n for name, one in inputs.items() if (n := int((~one.isfinite()).sum()))}
    findings += [f"{name} is not finite at {n} places" for name, n in wrong.items()]
    causes = _causes(model, inputs, bool(wrong), output.get("logits"))
    raise ModelError(f"{', '.join(findings)}: {'; '.join(causes)}")


def _causes(
    model: nn.Module, inputs: Mapping[str, Tensor], wrong: bool, logits: Tensor | None
) -> list[str]:
    """Name what may have made the losses so, and the way out; ``wrong``: one of the inputs is."""
    if wrong:
        return [
            "such numbers cannot be trained on; encode the text again, numtok leaves as text what a"
            " representation cannot hold"
        ]
    causes, scaled = [], inputs.get("number_scaled", torch.zeros(0))
    if scaled.numel() and (largest := float(scaled.abs().max())) > FAR_BEYOND:
        causes.append(
            f"number_scaled reaches {largest:.3g}, and xVal is made for values within about 5:"
            f" {WAY_OUT}"
        )
    parameters = dict(model.named_parameters())
    if lost := [name for name, one in parameters.items() if not torch.isfinite(one).all()]:
        causes.append(
            f"{len(lost)} of {len(parameters)} parameters are not finite, {lost[0]} for one, so an"
            " earlier step went wrong: go back to a checkpoint, and train with a lower learning"
            " rate, clipped gradients, or bfloat16 in place of float16"
        )
    elif not causes and logits is not None and not torch.isfinite(logits).all():
        causes.append(
            "the logits are not finite although all parameters are: the backbone overflows in"
            f" {logits.dtype}; train it in a wider one"
        )
    return causes or [
        "the targets are too far from what the model predicts: scale them, or lower the learning"
        " rate"
    ]
