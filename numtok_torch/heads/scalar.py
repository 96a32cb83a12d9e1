"""The head that predicts a number as one real value."""

from __future__ import annotations

import torch
from torch import Tensor

from numtok.errors import RepresentationError
from numtok_torch.heads.base import (
    NumberHead,
    NumberPrediction,
    mean,
    moved,
    one_hidden_layer,
    run,
    unscaled,
)


class ScalarHead(NumberHead):
    """One scaled value from one hidden layer, trained with the squared error (xVal: Golkar et al.
    2023, section 2).

    Args:
        d_model: dimension of the hidden states.
        hidden: width of the hidden layer; None for ``d_model``.
        scale, log: those of the representation, which predictions are brought back from.

    Shape:
        - target: ``number_scaled``, (n,), float.
    """

    name = "scalar"
    target = "number_scaled"

    def __init__(
        self, d_model: int, hidden: int | None = None, scale: float = 1.0, log: bool = False
    ) -> None:
        super().__init__(d_model, hidden=hidden, scale=scale, log=log)
        if not scale > 0:
            raise RepresentationError(f"scalar: scale={scale} must be positive")
        self.scale, self.log = scale, log
        self.network = one_hidden_layer(d_model, hidden, 1)

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        scaled = run(self.network, self.checked(hidden, target)).squeeze(-1)  # (n,)
        return mean((scaled - target.to(scaled.dtype)).square())

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        scaled = run(self.network, self.checked(hidden)).squeeze(-1)  # (...)
        return NumberPrediction(
            unscaled(scaled, self.scale, self.log),
            bounds=unscaled(moved(scaled), self.scale, self.log),
        )
