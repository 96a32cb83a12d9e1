"""Quantile bins in front of a model: a vector for each bin, or one between those of two edges,
added to the word vector of each number.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from numtok.representations import QuantileBins
from numtok_torch.embeddings.base import NumberEmbedding, root_mean_square


class QuantileBinsEmbedding(NumberEmbedding):
    """Adds the vector of each number's bin to its word vector; with ``soft`` (1 - t) v_k + t
    v_(k+1) for a number at t of the way from edge k to the next.

    The latter is a linear map of the piecewise linear encoding, with v_0 for its bias: the vector
    that multiplies bin k there is v_(k+1) - v_k (Gorishniy et al. 2022, equation 1 and section
    3.2).

    Args:
        d_model: dimension of the word vectors.
        n, soft: those of the representation ``QuantileBins``.
        zero_init: start from zeros; else from a normal distribution of standard deviation 0.02.
        amplitude: of the start; None: as long as the word vectors (``scale_to``).

    Shape:
        - number_quantile_bin: (batch, seq), 0 to n - 1, any integer;
        - number_quantile, with ``soft``: (batch, seq), 0 to n, float.
    """

    name = "quantile_bins"
    streams = ("number_quantile_bin",)

    def __init__(
        self,
        d_model: int,
        n: int = 64,
        soft: bool = False,
        zero_init: bool = False,
        amplitude: float | None = None,
    ) -> None:
        super().__init__(d_model, n=n, soft=soft, zero_init=zero_init, amplitude=amplitude)
        QuantileBins(n)  # which refuses what it cannot be
        self.n = n
        self.streams = ("number_quantile",) if soft else ("number_quantile_bin",)
        self.vectors = nn.Embedding(n + soft, d_model)
        nn.init.normal_(self.vectors.weight, std=0.0 if zero_init else 0.02)
        self.set_amplitude(amplitude)

    def _started(self) -> list[Tensor]:
        return [self.vectors.weight]

    def _size(self) -> float:
        return root_mean_square(self.vectors.weight)

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        if not rows.is_floating_point():
            bins: Tensor = self.vectors(rows.to(torch.int64))  # (n, d_model)
            return words + bins
        low = rows.to(torch.int64).clamp(0, self.n - 1)  # (n,)
        part = (rows - low).to(self.vectors.weight.dtype).unsqueeze(-1)  # (n, 1)
        return words + torch.lerp(self.vectors(low), self.vectors(low + 1), part)
