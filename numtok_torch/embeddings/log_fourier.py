"""Fourier features of logarithms in front of a model: a linear map of them, added to the word
vector of each number.
"""

from __future__ import annotations

import math

from torch import Tensor

from numtok.errors import SchemaError
from numtok.representations import LogFourier
from numtok_torch.embeddings.base import FeatureEmbedding


class LogFourierEmbedding(FeatureEmbedding):
    """Adds a linear map, without bias, of the sign, the zero flag and the Fourier features of each
    number's logarithm.

    Args:
        d_model: dimension of the word vectors.
        n_frequencies: that of the representation, k.
        zero_init: start the linear map from zeros.
        amplitude: of its start; None: as long as the word vectors (``match_norm``).

    Shape:
        - number_log_fourier: (batch, seq, k + 1, 2), float.

    Example:
        >>> import torch
        >>> from numtok_torch import LogFourierEmbedding
        >>> mask, features = torch.tensor([[0, 1]]), torch.ones(1, 2, 9, 2)
        >>> numbers = {"number_mask": mask, "number_log_fourier": features}
        >>> LogFourierEmbedding(d_model=4)(torch.zeros(1, 2, 4), numbers).any(-1).tolist()
        [[False, True]]
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
        self._width = 2 * (n_frequencies + 1)
        # a sign of ±1, and a cosine and a sine for each frequency
        self.make_projection(self._width, math.sqrt(n_frequencies + 1))

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        features = rows.flatten(1)  # (n, 2 (k + 1))
        if features.shape[1] != self._width:
            raise SchemaError(
                f"number_log_fourier has the shape {tuple(rows.shape)}, the layer was made for"
                f" (n, {self._width // 2}, 2)"
            )
        return words + self.project(features)
