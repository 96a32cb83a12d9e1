"""Fourier features of logarithms in front of a model: a linear map of them, added to the word
vector of each number.

In: word vectors, float (batch, seq, d_model), ``number_mask`` and ``number_log_fourier``. Out: the
    same shape and dtype.
"""

from __future__ import annotations

from torch import Tensor, nn

from numtok.errors import SchemaError
from numtok.representations import LogFourier
from numtok_torch.embeddings.base import Batch, linear
from numtok_torch.embeddings.vectors import VectorEmbedding


class LogFourierEmbedding(VectorEmbedding):
    """Adds a linear map, without bias, of the sign, the zero flag and the Fourier features of each
    number's logarithm.

    Args:
        d_model: dimension of the word vectors.
        n_frequencies: that of the representation, k.
        zero_init: start the linear map from zeros.

    Shape:
        - number_log_fourier: (batch, seq, k + 1, 2), float.
    """

    name = "logfourier"
    streams = ("number_mask", "number_log_fourier")

    def __init__(self, d_model: int, n_frequencies: int = 8, zero_init: bool = False) -> None:
        super().__init__(d_model, n_frequencies=n_frequencies, zero_init=zero_init)
        LogFourier(n_frequencies)  # which refuses what it cannot be
        self.projection = nn.Linear(2 * (n_frequencies + 1), d_model, bias=False)
        if zero_init:
            nn.init.zeros_(self.projection.weight)

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.at_mask(inputs_embeds, batch, "number_log_fourier")

    def embed(self, stream: Tensor) -> Tensor:
        """Features (n, k + 1, 2) to (n, d_model)."""
        features = stream.flatten(1)  # (n, 2 (k + 1))
        if features.shape[1] != self.projection.in_features:
            expected = self.projection.in_features // 2
            raise SchemaError(
                f"number_log_fourier has the shape {tuple(stream.shape)}, the layer was made for"
                f" (n, {expected}, 2)"
            )
        return linear(features, self.projection)
