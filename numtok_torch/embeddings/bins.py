"""Bins in front of a model: a vector for each, added to the word vector of each number."""

from __future__ import annotations

import torch
from torch import Tensor

from numtok.representations import ExponentBins, QuantileBins
from numtok_torch.embeddings.base import TableEmbedding


class ExponentBinsEmbedding(TableEmbedding):
    """Adds a vector for the bin of each number's magnitude to its word vector.

    Args:
        d_model: dimension of the word vectors.
        n, low, high: those of the representation ``ExponentBins``.
        zero_init: start from zeros; else from a normal distribution of standard deviation 0.02.
        amplitude: of the start; None: as long as the word vectors (``match_norm``).

    Shape:
        - number_bin: (batch, seq), 0 to n, any integer.

    Example:
        >>> import torch
        >>> from numtok_torch import ExponentBinsEmbedding
        >>> mask, bins = torch.tensor([[0, 1]]), torch.tensor([[0, 101]])
        >>> numbers = {"number_mask": mask, "number_bin": bins}
        >>> ExponentBinsEmbedding(d_model=4)(torch.zeros(1, 2, 4), numbers).any(-1).tolist()
        [[False, True]]
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
        self.make_table(n + 1)


class QuantileBinsEmbedding(TableEmbedding):
    """Adds the vector of each number's bin to its word vector; with ``soft`` (1 - t) v_k + t
    v_(k+1) for a number at t of the way from edge k to the next, which is a linear map of the
    piecewise linear encoding (Gorishniy et al. 2022, equation 1 and section 3.2).

    Args:
        d_model: dimension of the word vectors.
        n, soft: those of the representation ``QuantileBins``.
        zero_init, amplitude: as :class:`ExponentBinsEmbedding` has them.

    Shape:
        - number_quantile_bin: (batch, seq), 0 to n - 1, any integer;
        - number_quantile, with ``soft``: (batch, seq), 0 to n, float.

    Example:
        >>> import torch
        >>> from numtok_torch import QuantileBinsEmbedding
        >>> mask, bins = torch.tensor([[0, 1]]), torch.tensor([[0, 63]])
        >>> numbers = {"number_mask": mask, "number_quantile_bin": bins}
        >>> QuantileBinsEmbedding(d_model=4, n=64)(torch.zeros(1, 2, 4), numbers).any(-1).tolist()
        [[False, True]]
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
        self.make_table(n + soft)

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        if not rows.is_floating_point():
            return super().embed(words, rows)
        low = rows.to(torch.int64).clamp(0, self.n - 1)  # (n,)
        part = (rows - low).to(self.vectors.weight.dtype).unsqueeze(-1)  # (n, 1)
        return words + torch.lerp(self.vectors(low), self.vectors(low + 1), part)
