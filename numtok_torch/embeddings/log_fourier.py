"""Fourier features of logarithms in front of a model: a linear map of them, added to the word
vector of each number.
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from numtok.errors import SchemaError
from numtok.representations import LogFourier
from numtok_torch.embeddings.base import NumberEmbedding, linear, projected_size


class LogFourierEmbedding(NumberEmbedding):
    """Adds a linear map, without bias, of the sign, the zero flag and the Fourier features of each
    number's logarithm.

    Args:
        d_model: dimension of the word vectors.
        n_frequencies: that of the representation, k.
        zero_init: start the linear map from zeros.
        amplitude: of its start; None: as long as the word vectors (``scale_to``).

    Shape:
        - number_log_fourier: (batch, seq, k + 1, 2), float.
    """

    name = "logfourier"
    streams = ("number_log_fourier",)

    def __init__(
        self,
        d_model: int,
        n_frequencies: int = 8,
        zero_init: bool = False,
        amplitude: float | None = None,
    ) -> None:
        super().__init__(
            d_model, n_frequencies=n_frequencies, zero_init=zero_init, amplitude=amplitude
        )
        LogFourier(n_frequencies)  # which refuses what it cannot be
        self.projection = nn.Linear(2 * (n_frequencies + 1), d_model, bias=False)
        if zero_init:
            nn.init.zeros_(self.projection.weight)
        self.set_amplitude(amplitude)

    def _started(self) -> list[Tensor]:
        return [self.projection.weight]

    def _size(self) -> float:
        # a sign of ±1, and a cosine and a sine for each frequency
        features = math.sqrt(self.projection.in_features / 2)
        return projected_size(features, self.projection, self.d_model)

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        features = rows.flatten(1)  # (n, 2 (k + 1))
        if features.shape[1] != self.projection.in_features:
            raise SchemaError(
                f"number_log_fourier has the shape {tuple(rows.shape)}, the layer was made for"
                f" (n, {self.projection.in_features // 2}, 2)"
            )
        return words + linear(features, self.projection)
