"""The bits of floats in front of a model: added to the word vector of each number, or in its place
as a small network makes them.

In: word vectors, float (batch, seq, d_model), ``number_mask`` and ``number_bits``. Out: the same
    shape and dtype. The network is that of Floating-Point Embedding, equation 3; the sum that of
    BitTokens (Kreitner et al. 2025), after the authors' code.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok.representations import FloatBits
from numtok_torch.embeddings.base import Batch, linear, project, projection_layer
from numtok_torch.embeddings.bits import as_bits
from numtok_torch.embeddings.vectors import VectorEmbedding


class FloatBitsEmbedding(VectorEmbedding):
    """Shows each number by its bits: b, those of a float32 or float64.

    ``combine="replace"``, Floating-Point Embedding, equation 3: the word vector becomes a small
    network of the bits. With r = ReLU: x1 = r(W1 b), x2 = W3 r(W2 x1), R(b) = r(x1 + x2); the last
    linear layer has its ReLU behind the sum. W1 is 32 to d, the others d to d, none has a bias. So
    +0.0, whose bits are all 0, gives exactly the zero vector; ``bias`` or ``signed_bits`` mends
    that.

    ``combine="add"``, BitTokens (Kreitner et al. 2025): e + (2 b - 1), bits as -1 and 1 with zeros
    behind, or e + W (2 b - 1), without a bias; the authors' code names them "sum" and
    "weighted_sum".

    Args:
        d_model: dimension of the word vectors, and of the layers.
        depth: of the network, how many linear layers, at least 1; 3 in the paper. Others have more
            or fewer between the first and the last; 1 is x1 alone.
        bias: whether they have a bias; one of the paper's ablations.
        residual: whether x1 is added; False, R(b) = r(x2), is the paper's other ablation.
        signed_bits: bits are -1 and 1 instead of 0 and 1, as those that are added always are.
        zero_init: what changes nothing at first. Of the network, e + g · R(b) instead, with a
            learned vector g that starts at 0. (A last layer of zeros would
            not do: it leaves x1, not e.) Of bits that are added, a linear map that starts from
                zeros.
        compact: the form of the file, for the record: the layer reads either.
        width: of the floats, 32 or 64.
        reciprocal: whether the 64 bits of 1/x stand behind those of x; from the compact form they
            are made here.
        combine: ``"replace"`` or ``"add"``; None for the published form of this width,
            ``"replace"`` for 32 and ``"add"`` for 64.
        projection: of bits that are added: ``"pad"``, zeros behind them, or ``"linear"``, a linear
            map without bias. The network has its own first layer.

    Shape:
        - number_bits: (batch, seq, width), or with ``reciprocal`` twice as many, 0 or 1, any
          integer; or (batch, seq), the bits of x as a number, int64.
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
        *,
        width: int = 32,
        reciprocal: bool = False,
        combine: str | None = None,
        projection: str = "pad",
    ) -> None:
        combine = combine or ("replace" if width == 32 else "add")
        network = {"depth": depth, "bias": bias, "residual": residual, "signed_bits": signed_bits}
        form = {"compact": compact, "width": width, "reciprocal": reciprocal}
        super().__init__(
            d_model, **network, zero_init=zero_init, **form, combine=combine, projection=projection
        )
        FloatBits(width=width, reciprocal=reciprocal)  # which says what is wrong
        if depth < 1:
            raise RepresentationError(f"bits: depth={depth} must be at least 1")
        if combine not in ("replace", "add"):
            raise RepresentationError(
                f"bits: combine={combine!r} is unknown; use 'replace' or 'add'"
            )
        if combine == "add" and (depth, bias, residual) != (3, False, True):
            raise RepresentationError(
                "bits: depth, bias and residual are those of the network; leave them out, or take"
                " combine='replace'"
            )
        self.residual, self.signed_bits, self.replaces = (
            residual,
            signed_bits or combine == "add",
            combine == "replace" and not zero_init,
        )
        self._form, size = (width, reciprocal), width * (1 + reciprocal)
        if combine == "add":
            self.projection = projection_layer(self.name, size, d_model, projection, zero_init)
        else:
            self.layers = nn.ModuleList(
                nn.Linear(d_model if k else size, d_model, bias=bias) for k in range(depth)
            )
            self.gain = nn.Parameter(torch.zeros(d_model)) if zero_init else None
        self.combine = combine

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.at_mask(inputs_embeds, batch, "number_bits")

    def embed(self, stream: Tensor) -> Tensor:
        """What is put in the place of the word vectors, or added to them: (n,) or (n, bits) to (n,
        d_model).
        """
        bits = as_bits(stream, 1, *self._form).to(torch.float32)  # (n, bits)
        bits = 2 * bits - 1 if self.signed_bits else bits
        return (
            project(bits, self.projection, self.d_model)
            if self.combine == "add"
            else self._network(bits)
        )

    def _network(self, bits: Tensor) -> Tensor:
        """R of the numbers' bits, times the gain if there is one: (n, bits) to (n, d_model)."""
        first, *others = self.layers
        x1 = torch.relu(linear(bits, first))  # type: ignore[arg-type]  # (n, d_model)
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
