"""A Gaussian mixture over the next number. No component is narrower than ``min_std``: one that sits
on one number of the training data would otherwise take the loss to minus infinity.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from numtok_torch.heads.base import NumberPrediction, ValueHead, moved, one_hidden_layer

LARGEST = 1e18  # of y over the smallest standard deviation: its square is still a float32
STEPS = 30  # towards the mode, from the mean of each component


class MixtureHead(ValueHead):
    """A mixture of k Gaussians over the next number, for contexts that more than one number fits:
    there a squared error gives the mean, which between two peaks is a number nobody writes
    (Berg-Kirkpatrick and Spokoyny 2020, section 3; mixture density networks, Bishop 1994). It lies,
    densities too, over y = x · scale, or with ``space="asinh"`` over y = asinh(x · scale).

    Args:
        d_model: dimension of the hidden states.
        components: k.
        hidden: width of the hidden layer; None for ``d_model``.
        scale: what numbers are multiplied with.
        space: ``"linear"`` or ``"asinh"``.
        spread: the means start evenly from -spread to spread, in the space of y; xVal's scaled
            numbers lie within ±5.
        min_std: the smallest standard deviation, in the space of y.
        point: what :meth:`predict` gives, ``"mode"`` or ``"mean"``.
        within: the confidence of a prediction is the probability that y is within ± this of it.
        layer_norm: put a LayerNorm in front; None: in a NumberModel around a pretrained backbone.

    Shape:
        - target: ``number_value``, (n,), float64; infinite ones are left out.

    Example:
        >>> import torch
        >>> from numtok_torch import MixtureHead
        >>> head, hidden = MixtureHead(d_model=8, components=3), torch.ones(2, 8)
        >>> head.predict(hidden).values.shape, head.sample(hidden).shape
        (torch.Size([2]), torch.Size([2]))
        >>> head.mixture(hidden)[1].shape  # the means
        torch.Size([2, 3])
    """

    name = "mixture"
    points = ("mode", "mean")
    logarithmic = False

    def __init__(
        self,
        d_model: int,
        components: int = 8,
        hidden: int | None = None,
        *,
        scale: float = 1.0,
        space: str = "linear",
        spread: float = 5.0,
        min_std: float = 1e-3,
        point: str = "mode",
        within: float = 0.1,
        layer_norm: bool | None = None,
    ) -> None:
        shape = {"components": components, "hidden": hidden, "scale": scale, "space": space}
        widths = {"spread": spread, "min_std": min_std, "point": point, "within": within}
        super().__init__(d_model, **shape, **widths)
        self.check(components=components, spread=spread, min_std=min_std, within=within)
        self.min_std, self.point, self.within = min_std, point, within
        self.network = one_hidden_layer(d_model, hidden, 3 * components)
        self._spread_out(components, spread)
        self.set_layer_norm(layer_norm)

    def _spread_out(self, components: int, spread: float) -> None:
        """Start with equal weights and means apart: components that are alike would stay alike."""
        last = self.network[-1]
        assert isinstance(last, nn.Linear)
        means = torch.linspace(-spread, spread, components) if components > 1 else torch.zeros(1)
        width = max(2 * spread / max(components - 1, 1), self.min_std)
        raw = width + math.log(-math.expm1(-width))  # the inverse of softplus
        with torch.no_grad():
            last.bias.copy_(torch.stack([0 * means, means, torch.full_like(means, raw)]).flatten())

    def mixture(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return (log weights, means, standard deviations) in the space of y, (..., k) each."""
        weights, means, widths = self.say(hidden).chunk(3, -1)
        return weights.log_softmax(-1), means, nn.functional.softplus(widths) + self.min_std

    def losses(self, hidden: Tensor, values: Tensor) -> Tensor:
        return -self.log_prob(hidden, values)

    def log_prob(self, hidden: Tensor, values: Tensor) -> Tensor:
        """Log density, in the space of y, of values float64 (...) given hidden states (...,
        d_model): float32 at least (...).
        """
        mixture = self.mixture(hidden)
        y = self.to_space(values, LARGEST * self.min_std).to(mixture[0].dtype)
        return log_density(y, *mixture)

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        mixture = log_weights, means, _ = self.mixture(hidden)
        y = (log_weights.exp() * means).sum(-1) if self.point == "mean" else _mode(*mixture)
        confidence = _mass(y - self.within, y + self.within, *mixture)
        bounds = self.from_space(moved(y))
        return NumberPrediction(self.from_space(y), confidence=confidence, bounds=bounds)

    @torch.no_grad()
    def sample(self, hidden: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw values, float64 (...), each from its mixture."""
        log_weights, means, stds = self.mixture(hidden)  # (..., k) each
        shape = log_weights.shape[:-1]
        rows = log_weights.exp().reshape(-1, log_weights.shape[-1])  # (rows, k)
        which = torch.multinomial(rows, 1, generator=generator).view(*shape, 1)  # (..., 1)
        drawn = torch.empty_like(which, dtype=means.dtype).normal_(generator=generator)
        y = means.gather(-1, which) + stds.gather(-1, which) * drawn  # (..., 1)
        return self.from_space(y.squeeze(-1))


def log_density(y: Tensor, log_weights: Tensor, means: Tensor, stds: Tensor) -> Tensor:
    """Return the log of Σ_k w_k N(y; μ_k, σ_k): (...) from y (...) and the mixture (..., k)."""
    z = (y.unsqueeze(-1) - means) / stds  # (..., k)
    return torch.logsumexp(
        log_weights - 0.5 * z.square() - stds.log() - 0.5 * math.log(2 * math.pi), -1
    )


def _mode(log_weights: Tensor, means: Tensor, stds: Tensor) -> Tensor:
    """Find where the density is largest, (...): from each component's mean uphill, each step to the
    mean of all, by density and precision.
    """
    # (..., 1, k) each
    log_weights, means, stds = (one.double().unsqueeze(-2) for one in (log_weights, means, stds))
    y = means.squeeze(-2)  # (..., k) places to start from
    for _ in range(STEPS):
        z = (y.unsqueeze(-1) - means) / stds  # (..., k, k)
        # (..., k, k): density over variance
        pull = (log_weights - 0.5 * z.square() - 3 * stds.log()).softmax(-1)
        y = (pull * means).sum(-1)  # (..., k)
    best = log_density(y, log_weights, means, stds).argmax(-1, keepdim=True)  # (..., 1)
    return y.gather(-1, best).squeeze(-1)  # (...)


def _mass(low: Tensor, high: Tensor, log_weights: Tensor, means: Tensor, stds: Tensor) -> Tensor:
    """Return the probability of (low, high), float32 (...)."""
    # (..., k) each
    to, start = ((edge.unsqueeze(-1).double() - means) / stds for edge in (high, low))
    each = log_weights.exp() * (torch.special.ndtr(to) - torch.special.ndtr(start))  # (..., k)
    total: Tensor = each.sum(-1).clamp(0, 1)
    return total.to(torch.float32)
