"""The head that predicts a number as one real value."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from numtok.errors import RepresentationError
from numtok.representations.columns import NUMBER_VALUE
from numtok_torch.heads.base import (
    NumberHead,
    NumberPrediction,
    mean,
    moved,
    one_hidden_layer,
    scaled,
    unscaled,
)

SCALED = "number_scaled"


class ScalarHead(NumberHead):
    """Predicts one scaled value from one hidden layer, trained with the squared error (xVal: Golkar
    et al. 2023, section 2).

    Args:
        d_model: dimension of the hidden states.
        hidden: width of the hidden layer; None for ``d_model``.
        scale, log: those of the representation, which predictions are brought back from.
        target: the stream it learns from, ``"number_scaled"`` of xVal or ``"number_value"`` of any
            representation, which it scales in xVal's way itself.
        layer_norm: put a LayerNorm in front; None: in a NumberModel around a pretrained backbone.

    Shape:
        - target: (n,), float; infinite numbers are left out of ``number_value``.

    Example:
        >>> import torch
        >>> from numtok_torch import ScalarHead
        >>> head, hidden = ScalarHead(d_model=8, scale=0.1), torch.ones(2, 8)
        >>> head.loss(hidden, torch.tensor([0.5, 1.2])).shape
        torch.Size([])
        >>> head.predict(hidden).values.shape
        torch.Size([2])
    """

    name = "scalar"
    target = NUMBER_VALUE.name  # which all data have; that of one head is what it was made with

    def __init__(
        self,
        d_model: int,
        hidden: int | None = None,
        scale: float = 1.0,
        log: bool = False,
        target: str = SCALED,
        layer_norm: bool | None = None,
    ) -> None:
        super().__init__(d_model, hidden=hidden, scale=scale, log=log, target=target)
        if not 0 < scale < math.inf:
            raise RepresentationError(f"scalar: scale={scale} must be positive and finite")
        if target not in (SCALED, NUMBER_VALUE.name):
            raise RepresentationError(
                f"scalar: target={target!r} must be {SCALED!r} or {NUMBER_VALUE.name!r}"
            )
        self.scale, self.log, self.target = scale, log, target
        self.network = one_hidden_layer(d_model, hidden, 1)
        self.set_layer_norm(layer_norm)

    @classmethod
    def options_for(cls, representation: Any) -> dict[str, Any]:
        """Return the scale of xVal; from others, that the head scales itself."""
        if SCALED in representation.columns():
            return super().options_for(representation)
        return {"target": NUMBER_VALUE.name}

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        said = self.say(hidden, target).squeeze(-1)  # (n,)
        if self.target == SCALED:
            return mean((said - target.to(said.dtype)).square())
        finite = torch.isfinite(target)  # (n,)
        right = scaled(torch.where(finite, target, 0), self.scale, self.log).to(said.dtype)
        return ((said - right).square() * finite).sum() / finite.sum().clamp(min=1)

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        said = self.say(hidden).squeeze(-1)  # (...)
        return NumberPrediction(
            unscaled(said, self.scale, self.log),
            bounds=unscaled(moved(said), self.scale, self.log),
        )
