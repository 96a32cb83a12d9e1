"""The bits of floats in front of a model: added to the word vector of each number, or in its place
as a small network makes them; and bits, words and values of floats, on the device.

Words, int64 (...), are the bits as one integer: 0 to 2**32 - 1 for a float32, any, read with a
sign, for a float64. Bits, uint8 (..., width), are sign, exponent, fraction, most significant first.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError, SchemaError
from numtok.representations import FloatBits
from numtok_torch.embeddings.base import (
    FeatureEmbedding,
    check_known,
    linear,
    readable,
    root_mean_square,
)


class FloatBitsEmbedding(FeatureEmbedding):
    """Shows each number by its bits: b, those of a float32 or float64.

    ``combine="replace"``, Floating-Point Embedding, equation 3: the word vector becomes a small
    network of the bits. With r = ReLU: x1 = r(W1 b), x2 = W3 r(W2 x1), R(b) = r(x1 + x2); the last
    linear layer has its ReLU after the sum. W1 is 32 to d, the others d to d, none has a bias. So
    +0.0, whose bits are all 0, gives exactly the zero vector; ``bias`` or ``signed_bits`` mends
    that.

    ``combine="add"``, BitTokens (Kreitner et al. 2025): e + (2 b - 1), bits as -1 and 1 with zeros
    after, or e + W (2 b - 1), without a bias; the authors' code names them "sum" and
    "weighted_sum". ``combine="zero_pad"``, as the settings of their training runs have it: in place
    of the word vector (2 b - 1) √(d / n) with zeros after, for n bits, whose mean square is 1.

    Args:
        d_model: dimension of the word vectors, and of the layers.
        depth: of the network, how many linear layers, at least 1; 3 in the paper. Others have more
            or fewer between the first and the last; 1 is x1 alone.
        bias: whether they have a bias; one of the paper's ablations.
        residual: whether x1 is added; False, R(b) = r(x2), is the paper's other ablation.
        signed_bits: bits are -1 and 1 instead of 0 and 1, as those that are added always are.
        zero_init: what changes nothing at first. Of the network, e + g · R(b) instead, with a
            learned vector g that starts at 0: a last layer of zeros would leave x1, not e. Of bits
            that are added, a linear map that starts from zeros.
        compact: the form of the file, for the record: the layer reads either.
        width: of the floats, 32 or 64.
        reciprocal: whether the 64 bits of 1/x stand after those of x; from the compact form they
            are made here.
        combine: ``"replace"``, ``"add"`` or ``"zero_pad"``; None for ``"replace"`` where width is
            32 and ``"add"`` where it is 64.
        projection: of bits that are added: ``"pad"``, zeros after them, or ``"linear"``, a linear
            map without bias; None: ``"linear"`` with ``zero_init``, else ``"pad"``.
        amplitude: of the bits that are added, or of the start of a linear map or of the network;
            None: as long as the word vectors (``match_norm``).

    Shape:
        - number_bits: (batch, seq, width), or with ``reciprocal`` twice as many, 0 or 1, any
          integer; or (batch, seq), the bits of x as a number, int64.

    Example:
        >>> import torch
        >>> from numtok_torch import FloatBitsEmbedding
        >>> mask, bits_of_one = torch.tensor([[1]]), torch.tensor([[0x3F800000]])
        >>> numbers = {"number_mask": mask, "number_bits": bits_of_one}
        >>> layer = FloatBitsEmbedding(d_model=32, combine="add")
        >>> layer(torch.zeros(1, 1, 32), numbers)[0, 0, :9].tolist()  # sign and exponent
        [-1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    name = "bits"
    streams = ("number_bits",)

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
        projection: str | None = None,
        amplitude: float | None = None,
    ) -> None:
        combine = combine or ("replace" if width == 32 else "add")
        network = {"depth": depth, "bias": bias, "residual": residual, "signed_bits": signed_bits}
        form = {"compact": compact, "width": width, "reciprocal": reciprocal}
        start = {"zero_init": zero_init, "amplitude": amplitude}
        super().__init__(
            d_model, **network, **start, **form, combine=combine, projection=projection
        )
        FloatBits(width=width, reciprocal=reciprocal)  # which says what is wrong
        if depth < 1:
            raise RepresentationError(f"bits: depth={depth} must be at least 1")
        check_known("bits", "combine", combine, "replace", "add", "zero_pad")
        if combine == "zero_pad" and (projection not in (None, "pad") or zero_init):
            raise RepresentationError(
                "bits: zero_pad puts the bits themselves in place of the word vector; leave"
                " projection and zero_init out, or take combine='add'"
            )
        if combine != "replace" and (depth, bias, residual) != (3, False, True):
            raise RepresentationError(
                "bits: depth, bias and residual are those of the network; leave them out, or take"
                " combine='replace'"
            )
        self.combine, self.residual = combine, residual
        self.signed_bits = signed_bits or combine != "replace"
        self._form, size = (width, reciprocal), width * (1 + reciprocal)
        if combine != "replace":
            self.make_projection(size, math.sqrt(d_model if combine == "zero_pad" else size))
            return
        self.layers = nn.ModuleList(
            nn.Linear(d_model if k else size, d_model, bias=bias) for k in range(depth)
        )
        self.gain = nn.Parameter(torch.zeros(d_model)) if zero_init else None
        self.set_amplitude(amplitude)

    @property
    def may_be_zero(self) -> bool:
        starts = self._options
        return not (self.signed_bits or starts["bias"] or starts["zero_init"])

    def started(self) -> list[Tensor]:
        if self.combine != "replace":
            return super().started()
        biases = [p for name, p in self.layers.named_parameters() if name.endswith("bias")]
        first: Any = self.layers[0]
        return [first.weight, *biases]  # what R is proportional to

    def size(self) -> float:
        if self.combine != "replace":
            return super().size()
        device = next(self.layers.parameters()).device
        values = torch.logspace(-4, 6, 201, device=device, dtype=torch.float64)
        of_values = values.float().view(torch.int32).to(torch.int64)
        words = of_values if self._form[0] == 32 else values.view(torch.int64)
        with torch.no_grad():
            return root_mean_square(self._network(self._bits(words)))

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        bits = self._bits(rows)  # (n, bits)
        if self.combine == "add":
            return words + self.project(bits)
        if self.combine == "zero_pad":
            return self.project(math.sqrt(self.d_model / bits.shape[-1]) * bits)
        vectors = self._network(bits)  # (n, d_model)
        return vectors if self.gain is None else words + self.gain * vectors

    def _bits(self, rows: Tensor) -> Tensor:
        """Return float32 (n, bits): 0 and 1, or -1 and 1."""
        bits = as_bits(rows, *self._form).to(torch.float32)
        return 2 * bits - 1 if self.signed_bits else bits

    def _network(self, bits: Tensor) -> Tensor:
        """Return R of the numbers' bits: (n, bits) to (n, d_model)."""
        first, *others = self.layers
        x1 = torch.relu(linear(bits, first))  # type: ignore[arg-type]  # (n, d_model)
        if not others:
            return x1
        hidden = x1
        for layer in others[:-1]:
            hidden = torch.relu(layer(hidden))  # (n, d_model)
        x2 = others[-1](hidden)  # (n, d_model)
        return torch.relu(x1 + x2 if self.residual else x2)


def bits_of_words(words: Tensor, width: int = 32) -> Tensor:
    """Convert any integer (...) to uint8 (..., width)."""
    shifts = torch.arange(width - 1, -1, -1, device=words.device)  # (width,)
    return ((words.to(torch.int64).unsqueeze(-1) >> shifts) & 1).to(torch.uint8)  # (..., width)


def words_of_bits(bits: Tensor) -> Tensor:
    """Convert bits, uint8 (..., width), to words, int64 (...)."""
    shifts = torch.arange(bits.shape[-1] - 1, -1, -1, device=bits.device)  # (width,)
    return (bits.to(torch.int64) << shifts).sum(-1)  # (...)


def values_of_words(words: Tensor, width: int = 32) -> Tensor:
    """Convert int64 (...) to the float32, or float64, (...) of these bits, NaN payloads too."""
    if width == 64:
        return words.contiguous().view(torch.float64)
    # int32 has the same bits, read with a sign
    signed = torch.where(words >= 2**31, words - 2**32, words)
    return signed.to(torch.int32).contiguous().view(torch.float32)


def as_bits(stream: Tensor, width: int = 32, reciprocal: bool = False) -> Tensor:
    """Return ``number_bits`` of n numbers in either form, (n,) or (n, width), as uint8 (n, width);
    with ``reciprocal``, (n, 128), those of 1/x after.
    """
    size = width * (1 + reciprocal)
    if stream.dim() == 1:
        # where to look at them does not wait for a device
        wide = width == 32 and stream.element_size() > 4
        looks = wide and stream.device.type == "cpu" and readable(stream)
        if looks and (stream.to(torch.int64) >> 32).any():
            raise SchemaError(
                "number_bits holds words of more than 32 bits, as bits:64 writes them; make the"
                " layer, or the head, with width=64"
            )
        bits = bits_of_words(stream, width)
        if not reciprocal:
            return bits
        # divided once: of ±0, and of what is too small, ±infinity
        inverse = values_of_words(stream, 64).reciprocal().view(torch.int64)
        return torch.cat([bits, bits_of_words(inverse, width)], -1)
    if stream.dim() != 2 or stream.shape[-1] != size:
        raise SchemaError(
            f"number_bits has the shape {tuple(stream.shape)}: expected one axis (compact) or one"
            f" more, of {size} bits"
        )
    return stream
