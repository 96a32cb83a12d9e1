"""Bins of magnitudes in front of a model: a vector for each bin, added to the word vector of each
number.

In: word vectors, float (batch, seq, d_model), ``number_mask`` and ``number_bin``, (batch, seq).
    Out: the same shape and dtype.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from numtok.representations import ExponentBins
from numtok_torch.embeddings.base import Batch
from numtok_torch.embeddings.vectors import VectorEmbedding


class ExponentBinsEmbedding(VectorEmbedding):
    """Adds a vector for the bin of each number's magnitude to its word vector.

    Args:
        d_model: dimension of the word vectors.
        n, low, high: those of the representation ``ExponentBins``.
        zero_init: start from zeros; else from a normal distribution of standard deviation 0.02.

    Shape:
        - number_bin: (batch, seq), 0 to n, any integer.
    """

    name = "exponent_bins"
    streams = ("number_mask", "number_bin")

    def __init__(
        self,
        d_model: int,
        n: int = 200,
        low: float = 1e-4,
        high: float = 1e6,
        zero_init: bool = False,
    ) -> None:
        super().__init__(d_model, n=n, low=low, high=high, zero_init=zero_init)
        ExponentBins(n, low, high)  # which refuses what it cannot be
        self.vectors = nn.Embedding(n + 1, d_model)
        nn.init.normal_(self.vectors.weight, std=0.0 if zero_init else 0.02)

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.at_mask(inputs_embeds, batch, "number_bin")

    def embed(self, stream: Tensor) -> Tensor:
        """Bins (n,) to (n, d_model)."""
        vectors: Tensor = self.vectors(stream.to(torch.int64))
        return vectors


ExponentEmbedding = ExponentBinsEmbedding  # its former name
