"""Losses and inputs that are not finite, found before they make a model one of NaN.

Each step is checked before it goes on; on an accelerator the host waits for the losses, as a
Trainer does for its log. Infinite *gradients* are no error: under float16 a ``GradScaler`` expects
them. In a graph that ``torch.compile`` makes nothing is checked; compile the backbone rather than
the whole model to keep this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from numtok.representations.columns import NUMBER_MASK
from numtok_torch.embeddings.base import readable
from numtok_torch.embeddings.xval import FAR_BEYOND, WAY_OUT
from numtok_torch.model.backbone import ModelError

LOSSES = ("token_loss", "number_loss", "loss")


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
    """What may have made the losses so, and the way out; ``wrong``: one of the inputs is."""
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
