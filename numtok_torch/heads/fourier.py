"""The density of the next number as a Fourier series, smooth and of any shape."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok_torch.heads.base import NumberPrediction, ValueHead, mean, moved

FLOOR = 1e-5  # of the density; the authors add it to the probability of each bin
GRID = 2048  # places at which the mode is looked for
HALVINGS = 50  # of the interval that a quantile lies in


class FourierHead(ValueHead):
    """The density of the next number as a Fourier series, smooth and of any shape (Gillman et al.
    2024, arXiv 2410.22269), in the continuous form of the authors' code (fourier_head_mle.py of
    nate-gillman/fourier-head): a linear map gives complex numbers a_0 … a_N, c_k = Σ_j a_(j+k) a_j*
    are the coefficients, and p(y) = 1/2 + Re Σ_k c_k / c_0 exp(iπky) over y from -1 to 1. That is
    |Σ_j a_j exp(iπjy)|² / 2c_0, as which it is computed, and never negative.

    It lies over y = x · scale, or with ``space="asinh"`` over y = asinh(x · scale), from -spread to
    spread. Numbers beyond count as its ends.

    Args:
        d_model: dimension of the hidden states.
        frequencies: N; more of them make sharper peaks.
        scale: what numbers are multiplied with.
        space: ``"linear"`` or ``"asinh"``.
        spread: where the density ends, in the space of y; xVal's scaled numbers lie within ±5.
        gamma: of the authors' penalty for what is not smooth, γ · 2 · Σ_k 2π²k² |c_k|².
        point: what :meth:`predict` gives, ``"mode"``, ``"mean"`` or ``"median"``.
        within: the confidence of a prediction is the probability that y is within ± this of it.
        coverage: the probability of the interval, in the middle of the density.
        layer_norm: put a LayerNorm in front; None: in a NumberModel around a pretrained backbone.

    Shape:
        - target: ``number_value``, (n,), float64; infinite ones are left out.

    Example:
        >>> import torch
        >>> from numtok_torch import FourierHead
        >>> head, hidden = FourierHead(d_model=8, spread=5.0), torch.ones(2, 8)
        >>> prediction = head.predict(hidden)
        >>> prediction.values.abs().le(5).all().item(), prediction.interval.shape
        (True, torch.Size([2, 2]))
    """

    name = "fourier"
    points = ("mode", "mean", "median")

    def __init__(
        self,
        d_model: int,
        frequencies: int = 16,
        *,
        scale: float = 1.0,
        space: str = "linear",
        spread: float = 5.0,
        gamma: float = 0.0,
        point: str = "mode",
        within: float = 0.1,
        coverage: float = 0.9,
        layer_norm: bool | None = None,
    ) -> None:
        sizes = {"scale": scale, "spread": spread, "within": within, "coverage": coverage}
        options = {"frequencies": frequencies, "space": space, "gamma": gamma, "point": point}
        super().__init__(d_model, **options, **sizes)
        self.check(frequencies=frequencies, **sizes)
        if not coverage < 1 or not 0 <= gamma < math.inf:
            raise RepresentationError(
                f"{self.name} needs coverage={coverage} below 1, gamma={gamma} finite and not"
                " negative"
            )
        self.spread, self.gamma = spread, gamma
        self.point, self.within, self.coverage = point, within, coverage
        self.network = nn.Linear(d_model, 2 * (frequencies + 1))
        with torch.no_grad():  # as the authors do
            self.network.weight.div_(100)
            self.network.bias.div_(100)
        self.set_layer_norm(layer_norm)

    def losses(self, hidden: Tensor, values: Tensor) -> Tensor:
        return -self.log_prob(hidden, values)

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        loss = super().loss(hidden, target)
        if self.gamma:
            real, imaginary = coefficients(self.say(hidden))  # (n, N + 1) each
            order = torch.arange(real.shape[-1], dtype=real.dtype, device=real.device)
            rough = 2 * (math.pi * order) ** 2 * (real.square() + imaginary.square())
            loss = loss + self.gamma * 2 * mean(rough.sum(-1))
        return loss

    def log_prob(self, hidden: Tensor, values: Tensor) -> Tensor:
        """Return the log density, in the space of y, of values, float64 (...), given hidden states
        (..., d_model): float32 at least (...).
        """
        amplitudes = self.say(hidden)  # (..., 2 (N + 1))
        y = self.to_space(values) / self.spread
        at = density(amplitudes, y.clamp(-1, 1).to(amplitudes.dtype).unsqueeze(-1)).squeeze(
            -1
        )  # (...)
        return ((at + FLOOR) / (1 + 2 * FLOOR)).log() - math.log(self.spread)

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        amplitudes = self.say(hidden).double()  # (..., 2 (N + 1))
        y = self._point(amplitudes)  # (...), from -1 to 1
        near = torch.stack([y - self.within / self.spread, y + self.within / self.spread], -1)
        mass = cumulative(amplitudes, near.clamp(-1, 1)).diff(dim=-1).squeeze(-1)  # (...)
        tail = y.new_tensor([(1 - self.coverage) / 2, (1 + self.coverage) / 2])
        ends = quantile(amplitudes, tail.expand(*y.shape, 2))  # (..., 2)
        bounds = None if self.point == "mode" else self._back(moved(y * self.spread) / self.spread)
        confidence = mass.clamp(0, 1).to(torch.float32)
        return NumberPrediction(self._back(y), {}, confidence, bounds, self._back(ends))

    @torch.no_grad()
    def sample(self, hidden: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw values, float64 (...), each from its density."""
        amplitudes = self.say(hidden).double()
        share = torch.empty_like(amplitudes[..., :1]).uniform_(generator=generator)  # (..., 1)
        return self._back(quantile(amplitudes, share).squeeze(-1))

    def _point(self, amplitudes: Tensor) -> Tensor:
        """Return the point of each density, (...), from -1 to 1."""
        if self.point == "median":
            return quantile(amplitudes, torch.full_like(amplitudes[..., :1], 0.5)).squeeze(-1)
        if self.point == "mode":
            grid = torch.linspace(-1, 1, GRID, dtype=amplitudes.dtype, device=amplitudes.device)
            return grid[density(amplitudes, grid.expand(*amplitudes.shape[:-1], GRID)).argmax(-1)]
        real, imaginary = coefficients(amplitudes)  # (..., N + 1) each
        order = torch.arange(1, real.shape[-1], dtype=amplitudes.dtype, device=amplitudes.device)
        terms = 2 * imaginary[..., 1:] * (1 - 2 * (order % 2)) / (math.pi * order)
        return (terms / real[..., :1]).sum(-1)

    def _back(self, y: Tensor) -> Tensor:
        """Convert places from -1 to 1 to values, float64 (...)."""
        return self.from_space(y * self.spread)


def density(amplitudes: Tensor, y: Tensor) -> Tensor:
    """Return |Σ_j a_j exp(iπjy)|² / 2 Σ|a|² at places (..., m), of a (..., 2 (N + 1)): (..., m)."""
    size = amplitudes.norm(dim=-1, keepdim=True).clamp(min=torch.finfo(amplitudes.dtype).tiny)
    real, imaginary = (amplitudes / size).unsqueeze(-2).chunk(2, -1)  # (..., 1, N + 1)
    turns = math.pi * y.unsqueeze(-1) * torch.arange(real.shape[-1], device=y.device)
    cos, sin = turns.cos(), turns.sin()  # (..., m, N + 1)
    along = (real * cos - imaginary * sin).sum(-1)  # (..., m)
    across = (real * sin + imaginary * cos).sum(-1)
    squared: Tensor = along.square() + across.square()
    return squared / 2


def coefficients(amplitudes: Tensor) -> tuple[Tensor, Tensor]:
    """Return real and imaginary parts of c_0 … c_N, (..., N + 1) each, of a (..., 2 (N + 1))."""
    real, imaginary = amplitudes.chunk(2, -1)
    count = real.shape[-1]
    shifted = [(real[..., k:], imaginary[..., k:], count - k) for k in range(count)]
    straight = [(a * real[..., :m] + b * imaginary[..., :m]).sum(-1) for a, b, m in shifted]
    crossed = [(b * real[..., :m] - a * imaginary[..., :m]).sum(-1) for a, b, m in shifted]
    return torch.stack(straight, -1), torch.stack(crossed, -1)


def cumulative(amplitudes: Tensor, y: Tensor) -> Tensor:
    """Return the probability of what is below places (..., m), of a (..., 2 (N + 1)): (..., m)."""
    real, imaginary = (one.unsqueeze(-2) for one in coefficients(amplitudes))  # (..., 1, N + 1)
    order = torch.arange(1, real.shape[-1], dtype=y.dtype, device=y.device)  # (N,)
    turns = math.pi * y.unsqueeze(-1) * order  # (..., m, N)
    ends = 1 - 2 * (order % 2)  # cos(πk)
    terms = real[..., 1:] * turns.sin() + imaginary[..., 1:] * (turns.cos() - ends)
    return (y + 1) / 2 + (terms / (math.pi * order * real[..., :1])).sum(-1)


def quantile(amplitudes: Tensor, share: Tensor) -> Tensor:
    """Return the places below which the density has these shares, both (..., m), by halving."""
    low, high = -torch.ones_like(share), torch.ones_like(share)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = cumulative(amplitudes, middle) < share
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return (low + high) / 2
