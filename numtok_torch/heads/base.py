"""Base classes of the heads: hidden states in, a loss or numbers on their own scale out.

Heads compute in their own dtype, outside autocast, as a value that is rounded to bfloat16 has three
digits; losses are float32 at least.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError, SchemaError
from numtok.representations.registry import layer_of
from numtok_torch.embeddings.base import NumberLayer, option_names

# by which float32 computations of the same, a cached and an uncached one, may differ: relative,
# absolute below 1
NOISE = 128 * 2.0**-23
SPACES = ("linear", "asinh")
LOW, HIGH = 1e-4, 1e8  # magnitudes in asinh space, where a representation names none


@dataclass(frozen=True)
class NumberPrediction:
    """Predictions that a head reads from hidden states (..., d_model).

    Attributes:
        values: float64 (...), on the number's own scale; finite, unless the hidden states are not.
        streams: exact streams (..., ·) where the head predicts them, such as ``number_digits``,
            which a float64 may not hold.
        confidence: float (...), 0 to 1, or None; what it means is said by the head.
        bounds: float64 (..., 2), lower and upper, between which float noise may move a value; None
            for what is chosen among few, or drawn.
        interval: float64 (..., 2), lower and upper, between which the head expects the number, with
            the probability that it says; or None.

    Example:
        >>> import torch
        >>> from numtok_torch import FoNEHead
        >>> hidden = torch.tensor([-0.31, 0.95, 0.81, 0.59])
        >>> prediction = FoNEHead(d_model=4, int_digits=2, frac_digits=0).predict(hidden)
        >>> prediction.values.item(), prediction.streams["number_digits"].tolist()
        (13.0, [3, 1])
    """

    values: Tensor
    streams: dict[str, Tensor] = field(default_factory=dict)
    confidence: Tensor | None = None
    bounds: Tensor | None = None
    interval: Tensor | None = None


class NumberHead(NumberLayer, ABC):
    """Predicts one number from one hidden state.

    Attributes:
        name: in :meth:`config`.
        target: the name of the stream that :meth:`loss` wants.

    Shape:
        - hidden: (n, d_model) for the loss, (..., d_model) for predictions.

    Example:
        >>> import torch
        >>> from numtok_torch import NumberHead, NumberPrediction
        >>> class SumHead(NumberHead):
        ...     name, target = "sum", "number_value"
        ...
        ...     def loss(self, hidden, target):
        ...         return (hidden.sum(-1) - target).abs().mean()
        ...
        ...     def predict(self, hidden):
        ...         return NumberPrediction(hidden.sum(-1).double())
        >>> SumHead(d_model=4).predict(torch.ones(2, 4)).values.tolist()
        [4.0, 4.0]
    """

    target: str
    network: Any
    norm: nn.LayerNorm | None

    def __init__(self, d_model: int, **options: Any) -> None:
        super().__init__(d_model, **options)
        self.norm = None

    def set_layer_norm(self, layer_norm: bool | None) -> None:
        """Put a LayerNorm in front, or none; None leaves it to :meth:`fit_to`."""
        self._options["layer_norm"] = layer_norm
        like = next(self.parameters(), torch.empty(0))  # the head may be on its device already
        self.norm = nn.LayerNorm(self.d_model).to(like) if layer_norm else None

    def fit_to(self, pretrained: bool) -> None:
        """Put a LayerNorm in front, where the option leaves it open, behind a pretrained backbone,
        whose hidden states may be large. NumberModel calls it.
        """
        if self._options.get("layer_norm", False) is None:
            self.set_layer_norm(pretrained)

    def normed(self, hidden: Tensor) -> Tensor:
        """Return hidden states (..., d_model) behind the LayerNorm, if there is one."""
        return hidden if self.norm is None else run(self.norm, hidden)

    def say(self, hidden: Tensor, target: Tensor | None = None) -> Tensor:
        """Check hidden states (..., d_model), and run the LayerNorm and ``network`` on them: (...,
        out), float32 at least.
        """
        return run(self.network, self.normed(self.checked(hidden, target)))

    @abstractmethod
    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss over n numbers, a scalar; of none 0, with a graph."""

    @abstractmethod
    def predict(self, hidden: Tensor) -> NumberPrediction:
        """Return the most fitting numbers, without a graph."""

    def checked(self, hidden: Tensor, target: Tensor | None = None) -> Tensor:
        """Return ``hidden`` (..., d_model) if its shape is that, and goes with the target."""
        if hidden.shape[-1] != self.d_model:
            raise SchemaError(
                f"{type(self).__name__} was made for d_model={self.d_model}, the hidden states have"
                f" {hidden.shape[-1]}"
            )
        if target is not None and (hidden.dim() != 2 or target.shape[:1] != hidden.shape[:1]):
            raise SchemaError(
                f"hidden states {tuple(hidden.shape)} and {self.target} {tuple(target.shape)} must"
                " both have one row for each number"
            )
        return hidden


class ValueHead(NumberHead):
    """Predicts the value of a number, whatever represents it: y = x · scale, or for numbers over
    many magnitudes y = asinh(x · scale), linear around zero and logarithmic far from it. Its target
    is ``number_value``, (n,), float64, of which infinite ones are left out.

    Attributes:
        scale: what numbers are multiplied with.
        space: ``"linear"`` or ``"asinh"``.
        points: what ``point`` may be, if there is that option.
        logarithmic: whether it takes asinh space for a representation that says no scale.
    """

    target = "number_value"
    scale: float
    space: str
    points: tuple[str, ...] = ()
    logarithmic = True

    def check(self, **positive: float) -> None:
        """Refuse an unknown space or point, and an option that is not positive and finite."""
        self.scale, self.space = self._options["scale"], self._options["space"]
        if self.space not in SPACES:
            raise RepresentationError(f"{self.name}: space={self.space!r} must be one of {SPACES}")
        if (point := self._options.get("point")) not in (None, *self.points):
            raise RepresentationError(f"{self.name}: point={point!r} must be one of {self.points}")
        positive |= {"scale": self.scale}
        wrong = [f"{name}={one}" for name, one in positive.items() if not 0 < one < math.inf]
        if wrong:
            raise RepresentationError(f"{self.name}: {', '.join(wrong)} must be positive, finite")

    @classmethod
    def options_for(cls, representation: Any) -> dict[str, Any]:
        """Return the scale of xVal; where a representation has none, or goes by logarithms, asinh
        space, logarithmic from its smallest magnitude on, which ends at its largest, or from 1e-4
        to 1e8; nothing if neither is said. The edges of quantile bins say both.
        """
        names = "scale", "log", "low", "high"
        shown = {name: getattr(representation, name, None) for name in names}
        options: dict[str, Any] = {}
        if shown["scale"] and not shown["log"]:
            options = {"scale": shown["scale"]}
        elif shown["log"] or cls.logarithmic or layer_of(representation.name, "head") is cls:
            low, high = shown["low"] or LOW, shown["high"] or HIGH
            scale, ratio = (min(one, sys.float_info.max) for one in (1 / low, high / low))
            options = {"space": "asinh", "scale": scale, "spread": math.asinh(ratio)}
        return {name: one for name, one in options.items() if name in option_names(cls)}

    @abstractmethod
    def losses(self, hidden: Tensor, values: Tensor) -> Tensor:
        """Return the losses (n,) of n finite values, float64 (n,)."""

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        self.checked(hidden, target)
        finite = torch.isfinite(target)  # (n,)
        losses = self.losses(hidden, torch.where(finite, target, 0))  # (n,)
        return torch.where(finite, losses, 0).sum() / finite.sum().clamp(min=1)

    def to_space(self, values: Tensor, largest: float = torch.inf) -> Tensor:
        """Convert values, float64 (...), to y, float64 (...), at most ``largest`` away from 0."""
        limit = torch.finfo(torch.float64).max
        scaled = (values.to(torch.float64) * self.scale).clamp(-limit, limit)
        return (torch.asinh(scaled) if self.space == "asinh" else scaled).clamp(-largest, largest)

    def from_space(self, y: Tensor) -> Tensor:
        """Convert y to values, float64 (...), within their range."""
        wide = y.to(torch.float64)
        return unscaled(torch.sinh(wide) if self.space == "asinh" else wide, self.scale)


def run(network: nn.Module, hidden: Tensor) -> Tensor:
    """Return ``network`` of (..., d_model) outside autocast; (..., out), float32 at least."""
    parameter = next(network.parameters())
    with torch.autocast(hidden.device.type, enabled=False):
        output: Tensor = network(hidden.to(parameter.dtype))
    return output.to(torch.promote_types(output.dtype, torch.float32))


def moved(y: Tensor) -> Tensor:
    """Return predictions, float (...), less and more :data:`NOISE`: float64 (..., 2)."""
    wide = y.to(torch.float64)
    noise = NOISE * wide.abs().clamp(min=1)  # (...)
    return torch.stack([wide - noise, wide + noise], -1)


def mean(losses: Tensor) -> Tensor:
    """Return the mean of (n,), and 0 for n = 0."""
    return losses.sum() / max(len(losses), 1)


def one_hidden_layer(d_model: int, hidden: int | None, out: int) -> nn.Sequential:
    """Make a linear map, GELU, and a linear map; None: a hidden layer as wide as the model."""
    width = d_model if hidden is None else hidden
    return nn.Sequential(nn.Linear(d_model, width), nn.GELU(), nn.Linear(width, out))


def scaled(values: Tensor, scale: float, log: bool = False) -> Tensor:
    """Convert float64 (...) to xVal's scale, with ``log`` its logarithm: float64 (...)."""
    wide = values.to(torch.float64)
    if log:
        wide = torch.copysign(torch.log1p(wide.abs()) / math.log(10), wide)
    return wide * scale


def unscaled(values: Tensor, scale: float, log: bool = False) -> Tensor:
    """Divide any float (...) by the scale: float64 (...), at most the largest that is finite; with
    ``log``, the inverse of xVal's logarithm.
    """
    limit = torch.finfo(torch.float64).max
    plain = values.to(torch.float64) / scale
    if log:
        plain = torch.copysign(torch.expm1(plain.abs() * math.log(10)), plain)
    return plain.clamp(-limit, limit)
