"""Losses and inputs that are not finite, found before they make a model one of NaN.

In: the losses of a step, and the streams that its layers read. Out: nothing, or a ``ModelError``
    that says what is not finite, why, and what to do.

On a CPU each step is looked at before it goes on. On an accelerator that would make the host wait
for the device, so a flag is set off to the host, and read at the next step, by when it has arrived:
the error comes one step late. Infinite *gradients* are no error: under float16 a ``GradScaler``
expects them. In a graph that ``torch.compile`` makes nothing is looked at; compile the backbone
rather than the whole model to keep this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from numtok_torch.embeddings.xval import FAR_BEYOND, WAY_OUT
from numtok_torch.model.backbone import ModelError

LOSSES = ("token_loss", "number_loss", "loss")


@dataclass
class Step:
    """What it takes to say what was wrong with a step; nothing large, so that it can be kept until
    the next.

    Attributes:
        losses: scalars, by name.
        streams: the float streams (batch, seq, ...) that the layers read, 0 where there is no
            number.
        finite: whether all of these are, bool scalar, on the host or on its way there.
        arrived: waits for that; None if there is nothing to wait for.
    """

    losses: dict[str, Tensor]
    streams: dict[str, Tensor]
    finite: Tensor
    arrived: Any = None


class FiniteCheck:
    """Looks at every step of one model. It has no state worth keeping: copies begin anew."""

    def __init__(self) -> None:
        self._step: Step | None = None

    def __reduce__(self) -> tuple[type[FiniteCheck], tuple[()]]:
        return FiniteCheck, ()

    def look(
        self,
        model: nn.Module,
        output: Mapping[str, Any],
        streams: Mapping[str, Tensor],
        reads: Sequence[str],
    ) -> None:
        """Raise for the step before, if it was not looked at yet; and for this one, on a CPU.

        Args:
            model: whose parameters may be to blame.
            output: its losses are looked at; where there are none, nothing is trained. Its logits
                may be to blame.
            streams: (batch, seq, ...), of the batch.
            reads: names of those that the layers read.

        Raises:
            ModelError: naming what is not finite.
        """
        if torch.compiler.is_compiling():
            return
        self.settle(model)
        losses = {name: output[name] for name in LOSSES if output.get(name) is not None}
        if not losses or any(loss.is_meta for loss in losses.values()):
            return
        mask = streams.get("number_mask")
        inputs = {
            name: streams[name].detach()
            for name in reads
            if name in streams and streams[name].is_floating_point()
        }
        inputs = {name: _at_numbers(stream, mask) for name, stream in inputs.items()}
        device = next(iter(losses.values())).device
        flags = [
            torch.isfinite(tensor.detach()).all().to(device)
            for tensor in (*losses.values(), *inputs.values())
        ]
        step = Step(
            {name: loss.detach() for name, loss in losses.items()}, inputs, torch.stack(flags).all()
        )
        if device.type == "cpu":
            if not bool(step.finite):
                raise ModelError(explain(model, step, output.get("logits")))
            return
        if device.type == "cuda":
            if torch.cuda.is_current_stream_capturing():
                return
            step.finite = torch.empty((), dtype=torch.bool, pin_memory=True).copy_(
                step.finite, non_blocking=True
            )
            step.arrived = torch.cuda.Event()
            # waiting for it is waiting for this forward pass, not for all that follows
            step.arrived.record()
        self._step = step

    def settle(self, model: nn.Module) -> None:
        """Raise ``ModelError`` for the last step, if it has not been looked at and was not finite."""
        step, self._step = self._step, None
        if step is None:
            return
        if step.arrived is not None:
            step.arrived.synchronize()
        if not bool(step.finite):
            raise ModelError(
                explain(model, step, None)
                + ". (This is about the step before the last: on an accelerator it is known late)"
            )


def _at_numbers(stream: Tensor, mask: Tensor | None) -> Tensor:
    """The stream (batch, seq, ...) with 0 wherever there is no number: what stands there is not
    looked at.
    """
    if mask is None:
        return stream
    return torch.where(
        mask.to(torch.bool).view(*mask.shape, *[1] * (stream.dim() - mask.dim())), stream, 0
    )


def explain(model: nn.Module, step: Step, logits: Tensor | None) -> str:
    """What is not finite, the first cause that shows, and what to do."""
    findings = [
        f"{name} is {float(loss):g}"
        for name, loss in step.losses.items()
        if not torch.isfinite(loss)
    ]
    wrong = [name for name, stream in step.streams.items() if not torch.isfinite(stream).all()]
    findings += [
        f"{name} is not finite at {int((~torch.isfinite(step.streams[name])).sum())} places"
        for name in wrong
    ]
    return f"{', '.join(findings)}: {'; '.join(_causes(model, step, wrong, logits))}"


def _causes(model: nn.Module, step: Step, wrong: list[str], logits: Tensor | None) -> list[str]:
    """What may have made the losses so, and the way out; ``wrong`` are the streams that are not
    finite.
    """
    if wrong:
        return [
            "such numbers cannot be trained on; encode the text again, numtok leaves as text what a"
            " representation cannot hold"
        ]
    causes = []
    scaled = step.streams.get("number_scaled")
    if (
        scaled is not None
        and scaled.numel()
        and (largest := float(scaled.abs().max())) > FAR_BEYOND
    ):
        causes.append(
            f"number_scaled reaches {largest:.3g}, and xVal is made for values within about 5:"
            f" {WAY_OUT}"
        )
    parameters = dict(model.named_parameters())
    if lost := [
        name for name, parameter in parameters.items() if not torch.isfinite(parameter).all()
    ]:
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
