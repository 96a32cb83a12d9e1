"""The space in which a head sees values: y = f(x · scale), with f(z) = z, or f = asinh, which is
linear around zero and logarithmic far from it, for numbers over many magnitudes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from numtok.errors import RepresentationError
from numtok_torch.heads.base import unscaled

SPACES = ("linear", "asinh")


def check_space(name: str, space: str, **positive: float) -> None:
    """RepresentationError for a space that there is not, or an option that is not positive."""
    if space not in SPACES:
        raise RepresentationError(f"{name}: space={space!r} must be one of {SPACES}")
    if not min(positive.values()) > 0:
        raise RepresentationError(f"{name}: {', '.join(positive)} must be positive")


def space_of(representation: Any, logarithmic: bool) -> dict[str, Any]:
    """The scale of xVal; where a representation has none, or goes by logarithms, asinh space from
    its smallest magnitude on; nothing if neither is said.
    """
    shown = {name: getattr(representation, name, None) for name in ("scale", "log", "low")}
    if shown["scale"] and not shown["log"]:
        return {"scale": shown["scale"]}
    if shown["log"] or logarithmic:
        return {"space": "asinh", "scale": 1 / (shown["low"] or 1.0), "spread": 20.0}
    return {}


def to_space(values: Tensor, scale: float, space: str) -> Tensor:
    """Values, float64 (...), to y, float64 (...)."""
    scaled = values.to(torch.float64) * scale
    return torch.asinh(scaled) if space == "asinh" else scaled


def from_space(y: Tensor, scale: float, space: str) -> Tensor:
    """The inverse, float64 (...); within its range."""
    wide = y.to(torch.float64)
    return unscaled(torch.sinh(wide) if space == "asinh" else wide, scale)
