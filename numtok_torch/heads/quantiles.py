"""Quantiles of the next number, for intervals and a point that is right half of the time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok_torch.heads.base import NumberPrediction, ValueHead, moved

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LARGEST = 1e18  # of y: its sum over a batch is still a float32


class QuantileHead(ValueHead):
    """Quantiles of the next number, trained with the pinball loss: of u = y - q it is τ u if u >=
    0, else (τ - 1) u (Koenker and Bassett 1978). Linear heads on one hidden state, after Vedula et al.
    2025 (arXiv 2506.06657, as arXiv 2604.20216 describes it). The number that is predicted is the
    median, and its interval reaches from the first quantile to the last. Quantiles are put in order
    when they are read, which never raises the loss (Chernozhukov et al. 2010).

    Args:
        d_model: dimension of the hidden states.
        quantiles: shares between 0 and 1, rising. From 0.05 to 0.95, nine numbers of ten should be
            in the interval.
        scale: numbers are multiplied by it.
        space: the loss is taken of x · scale, ``"linear"``, or of asinh(x · scale), ``"asinh"``;
            the quantiles are the same numbers in either.
        layer_norm: put a LayerNorm in front; None: in a NumberModel around a pretrained backbone.

    Shape:
        - target: ``number_value``, (n,), float64; infinite ones are left out.

    Example:
        >>> import torch
        >>> from numtok_torch import QuantileHead
        >>> head, hidden = QuantileHead(d_model=8), torch.ones(2, 8)
        >>> head.quantiles(hidden).shape, head.predict(hidden).interval.shape
        (torch.Size([2, 5]), torch.Size([2, 2]))
    """

    name = "quantiles"

    def __init__(
        self,
        d_model: int,
        quantiles: Sequence[float] = QUANTILES,
        scale: float = 1.0,
        space: str = "linear",
        layer_norm: bool | None = None,
    ) -> None:
        shares = tuple(quantiles)
        super().__init__(d_model, quantiles=shares, scale=scale, space=space)
        self.check()
        steps = zip((0.0, *shares), (*shares, 1.0), strict=True)
        if not shares or not all(low < high for low, high in steps):
            raise RepresentationError(
                f"{self.name}: quantiles={shares} must be shares between 0 and 1, each larger than"
                " the one before"
            )
        self.shares = shares
        self.network = nn.Linear(d_model, len(shares))
        self.set_layer_norm(layer_norm)

    def losses(self, hidden: Tensor, values: Tensor) -> Tensor:
        estimates = self.say(hidden)  # (n, k)
        y = self.to_space(values, LARGEST).to(estimates.dtype)  # (n,)
        off, shares = y.unsqueeze(-1) - estimates, self._shares(estimates)  # (n, k), (k,)
        return torch.maximum(shares * off, (shares - 1) * off).mean(-1)

    @torch.no_grad()
    def quantiles(self, hidden: Tensor) -> Tensor:
        """Return the quantiles, float64 (..., k), rising."""
        return self.from_space(self._ordered(hidden))

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        ordered = self._ordered(hidden)  # (..., k)
        middle = self._at(ordered, ordered.new_full(ordered.shape[:-1], 0.5))  # (...)
        ends = self.from_space(ordered[..., [0, -1]])  # (..., 2)
        bounds = self.from_space(moved(middle))
        return NumberPrediction(self.from_space(middle), bounds=bounds, interval=ends)

    @torch.no_grad()
    def sample(self, hidden: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Draw values, float64 (...), evenly between neighbouring quantiles; none beyond the first
        and the last.
        """
        ordered = self._ordered(hidden)
        drawn = torch.empty_like(ordered[..., 0]).uniform_(generator=generator)
        return self.from_space(self._at(ordered, drawn))

    def _ordered(self, hidden: Tensor) -> Tensor:
        """Return the quantiles in order, float64 (..., k), in the space of y."""
        return self.say(hidden).double().sort(-1).values

    def _at(self, ordered: Tensor, share: Tensor) -> Tensor:
        """Interpolate ``ordered`` quantiles (..., k) linearly at ``share`` (...); the first and the
        last hold beyond them.
        """
        shares = self._shares(ordered)  # (k,)
        last = len(self.shares) - 1
        above = torch.searchsorted(shares, share.contiguous()).clamp(1, max(last, 1))  # (...)
        above, below = above.clamp(max=last), (above - 1).clamp(max=last)
        step = (shares[above] - shares[below]).clamp(min=torch.finfo(shares.dtype).tiny)
        part = ((share - shares[below]) / step).clamp(0, 1)
        # (...) each
        low, high = (ordered.gather(-1, one.unsqueeze(-1)).squeeze(-1) for one in (below, above))
        return torch.lerp(low, high, part)

    def _shares(self, like: Tensor) -> Tensor:
        """Return the shares (k,), made anew each time, so that nothing can round them."""
        return torch.tensor(self.shares, dtype=like.dtype, device=like.device)
