"""Heads that predict the value of a number, whatever represents it, in a space that they see it in:
y = f(x · scale), with f(z) = z, or f = asinh, which is linear around zero and logarithmic far from
it, for numbers over many magnitudes.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from numtok.errors import RepresentationError
from numtok.representations.registry import layer_of
from numtok_torch.embeddings.base import option_names
from numtok_torch.heads.base import NumberHead, unscaled

SPACES = ("linear", "asinh")


class ValueHead(NumberHead):
    """A head whose target is ``number_value``, (n,), float64, of which infinite ones are left out.

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
        """RepresentationError for an unknown space or point, or an option that is not positive."""
        self.scale, self.space = self._options["scale"], self._options["space"]
        if self.space not in SPACES:
            raise RepresentationError(f"{self.name}: space={self.space!r} must be one of {SPACES}")
        if (point := self._options.get("point")) not in (None, *self.points):
            raise RepresentationError(f"{self.name}: point={point!r} must be one of {self.points}")
        positive |= {"scale": self.scale}
        if not min(positive.values()) > 0:
            raise RepresentationError(f"{self.name}: {', '.join(positive)} must be positive")

    @classmethod
    def options_for(cls, representation: Any) -> dict[str, Any]:
        """The scale of xVal; where a representation has none, or goes by logarithms, asinh space
        from its smallest magnitude on; nothing if neither is said.
        """
        shown = {name: getattr(representation, name, None) for name in ("scale", "log", "low")}
        found: dict[str, Any] = {}
        if shown["scale"] and not shown["log"]:
            found = {"scale": shown["scale"]}
        elif shown["log"] or cls.logarithmic or layer_of(representation.name, "head") is cls:
            found = {"space": "asinh", "scale": 1 / (shown["low"] or 1.0), "spread": 20.0}
        return {name: one for name, one in found.items() if name in option_names(cls)}

    @abstractmethod
    def losses(self, hidden: Tensor, values: Tensor) -> Tensor:
        """Of n finite values, float64 (n,): (n,)."""

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        self.checked(hidden, target)
        finite = torch.isfinite(target)  # (n,)
        losses = self.losses(hidden, torch.where(finite, target, 0))  # (n,)
        return torch.where(finite, losses, 0).sum() / finite.sum().clamp(min=1)

    def to_space(self, values: Tensor, largest: float = torch.inf) -> Tensor:
        """Values, float64 (...), to y, float64 (...), at most ``largest`` away from 0."""
        scaled = values.to(torch.float64) * self.scale
        return (torch.asinh(scaled) if self.space == "asinh" else scaled).clamp(-largest, largest)

    def from_space(self, y: Tensor) -> Tensor:
        """The inverse, float64 (...); within its range."""
        wide = y.to(torch.float64)
        return unscaled(torch.sinh(wide) if self.space == "asinh" else wide, self.scale)
