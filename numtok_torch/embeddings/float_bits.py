"""The bits of floats in front of a model: the word vector of each number, replaced by a small network of its 32 bits.

In: word vectors, float (batch, seq, d_model), ``number_mask`` and ``number_bits``. Out: the same shape and dtype. Floating-Point Embedding, equation 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok_torch.embeddings.base import Batch, linear
from numtok_torch.embeddings.bits import as_bits
from numtok_torch.embeddings.vectors import VectorEmbedding


class FloatBitsEmbedding(VectorEmbedding):
    """Replaces the word vector of each number by a small network of its 32 bits (Floating-Point Embedding, equation 3).

    The paper's form, with r = ReLU: x1 = r(W1 b), x2 = W3 r(W2 x1), R(b) = r(x1 + x2); the last linear layer has its ReLU behind the sum. W1 is
    32 to d, the others d to d, none has a bias. So +0.0, whose bits are all 0, gives exactly the zero vector; ``bias`` or ``signed_bits`` mends that.

    Args:
        d_model: dimension of the word vectors, and of the layers.
        depth: how many linear layers, at least 1; 3 in the paper. Others have more or fewer between the first and the last; 1 is x1 alone.
        bias: whether they have a bias; one of the paper's ablations.
        residual: whether x1 is added; False, R(b) = r(x2), is the paper's other ablation.
        signed_bits: bits are -1 and 1 instead of 0 and 1.
        zero_init: e + g · R(b) instead, with a learned vector g that starts at 0. (A last layer of zeros would not do: it leaves x1, not e.)
        compact: the form of the file, for the record: the layer reads either.

    Shape:
        - number_bits: (batch, seq, 32), 0 or 1, any integer; or (batch, seq), the 32 bits as a number, int64.
    """

    name = "bits"
    streams = ("number_mask", "number_bits")

    def __init__(
        self,
        d_model: int,
        depth: int = 3,
        bias: bool = False,
        residual: bool = True,
        signed_bits: bool = False,
        zero_init: bool = False,
        compact: bool = False,
    ) -> None:
        options = {"bias": bias, "residual": residual, "signed_bits": signed_bits, "zero_init": zero_init, "compact": compact}
        super().__init__(d_model, depth=depth, **options)
        if depth < 1:
            raise RepresentationError(f"bits: depth={depth} must be at least 1")
        self.residual, self.signed_bits, self.replaces = residual, signed_bits, not zero_init
        self.layers = nn.ModuleList(nn.Linear(d_model if k else 32, d_model, bias=bias) for k in range(depth))
        self.gain = nn.Parameter(torch.zeros(d_model)) if zero_init else None

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.at_mask(inputs_embeds, batch, "number_bits")

    def embed(self, stream: Tensor) -> Tensor:
        """R of the numbers' bits, times the gain if there is one: (n,) or (n, 32) to (n, d_model)."""
        bits = as_bits(stream, 1).to(torch.float32)  # (n, 32)
        first, *others = self.layers
        x1 = torch.relu(linear(2 * bits - 1 if self.signed_bits else bits, first))  # type: ignore[arg-type]  # (n, d_model)
        vectors = self._behind_the_first(x1, others) if others else x1
        return vectors if self.gain is None else self.gain * vectors

    def _behind_the_first(self, x1: Tensor, others: Sequence[nn.Module]) -> Tensor:
        """r(x1 + x2), or r(x2), from x1: (n, d_model)."""
        *between, last = others
        hidden = x1
        for layer in between:
            hidden = torch.relu(layer(hidden))  # (n, d_model)
        x2 = last(hidden)  # (n, d_model)
        return torch.relu(x1 + x2 if self.residual else x2)
