"""Bins of magnitudes in front of a model: a vector for each bin, added to the word vector of each
number.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from numtok.representations import ExponentBins
from numtok_torch.embeddings.base import NumberEmbedding, root_mean_square


class ExponentBinsEmbedding(NumberEmbedding):
    """Adds a vector for the bin of each number's magnitude to its word vector.

    Args:
        d_model: dimension of the word vectors.
        n, low, high: those of the representation ``ExponentBins``.
        zero_init: start from zeros; else from a normal distribution of standard deviation 0.02.
        amplitude: of the start; None: as long as the word vectors (``scale_to``).

    Shape:
        - number_bin: (batch, seq), 0 to n, any integer.
    """

    name = "exponent_bins"
    streams = ("number_bin",)

    def __init__(
        self,
        d_model: int,
        n: int = 200,
        low: float = 1e-4,
        high: float = 1e6,
        zero_init: bool = False,
        amplitude: float | None = None,
    ) -> None:
        super().__init__(d_model, n=n, low=low, high=high, zero_init=zero_init, amplitude=amplitude)
        ExponentBins(n, low, high)  # which refuses what it cannot be
        self.vectors = nn.Embedding(n + 1, d_model)
        nn.init.normal_(self.vectors.weight, std=0.0 if zero_init else 0.02)
        self.set_amplitude(amplitude)

    def _started(self) -> list[Tensor]:
        return [self.vectors.weight]

    def _size(self) -> float:
        return root_mean_square(self.vectors.weight)

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        bins: Tensor = self.vectors(rows.to(torch.int64))
        return words + bins
