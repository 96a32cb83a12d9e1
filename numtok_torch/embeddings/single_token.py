"""Embedding layers for numbers that are one token each.

In: word vectors, float (batch, seq, d_model), ``number_mask`` and one stream, as numtok's representation of the same name gives it. Out: the same
shape and dtype, with the vector of each number multiplied, replaced or added to; see ``embeddings`` for the table and ``embedding_base`` for what
all of them hold to.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError, SchemaError
from numtok.representations import ExponentBins, FloatBits, FoNE, LogFourier, XVal
from numtok_torch.embeddings.base import Batch, NumberEmbedding, encoded, linear, project, projection_layer
from numtok_torch.embeddings.bits import as_bits
from numtok_torch.embeddings.fourier import features_of_digits, features_per_number

FAR_BEYOND = 1e3  # |number_scaled| at which xVal's layer warns
LOOKS = 100  # batches that it looks at
WAY_OUT = (
    "training on it ends in infinite losses. Encode the text with a fitted scale (numtok encode finds one unless --scale is given; XVal.fit in"
    " Python), or take the logarithm (--numbers xval:log, XVal(log=True))"
)


class XValEmbedding(NumberEmbedding):
    """Multiplies the word vector of each number by its scaled value (xVal: Golkar et al. 2023, section 2).

    Args:
        d_model: dimension of the word vectors.
        scale, clip, log: those of the representation, for :meth:`streams_of`.
        zero_init: e · (1 + g (x - 1)) instead, with a learned vector g that starts at 0; g = 1 is the paper's form.

    Shape:
        - number_scaled: (batch, seq), float.
    """

    name = "xval"
    streams = ("number_mask", "number_scaled")

    def __init__(self, d_model: int, scale: float = 1.0, clip: float | None = None, zero_init: bool = False, log: bool = False) -> None:
        super().__init__(d_model, scale=scale, clip=clip, zero_init=zero_init, log=log)
        self._representation = XVal(scale, clip, log, overflow="clip")
        self.gain = nn.Parameter(torch.zeros(d_model)) if zero_init else None
        self._looks_left = LOOKS

    def _factor(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        """What each vector is multiplied with, in float32 at least: values do not fit into float16. (batch, seq, 1 or d_model)."""
        mask = self.read(inputs_embeds, batch, "number_mask").to(torch.bool)  # (batch, seq)
        scaled = self.read(inputs_embeds, batch, "number_scaled")  # (batch, seq)
        self._look(mask, scaled)
        wide = torch.promote_types(inputs_embeds.dtype, torch.float32)
        factor = torch.where(mask, scaled.to(wide), 1).unsqueeze(-1)  # (batch, seq, 1)
        return factor if self.gain is None else 1 + self.gain.to(wide) * (factor - 1)  # (batch, seq, d_model)

    def _look(self, mask: Tensor, scaled: Tensor) -> None:
        """Warn, once, of values far beyond the ±5 that xVal is made for. Only the first batches, as each look waits for the device."""
        if torch.compiler.is_compiling() or not self._looks_left or scaled.is_meta:
            return
        if scaled.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        self._looks_left -= 1
        largest = float(torch.where(mask, scaled, 0).abs().amax()) if scaled.numel() else 0.0
        if largest > FAR_BEYOND:
            self._looks_left = 0
            warnings.warn(f"number_scaled reaches {largest:.3g}, and xVal is made for values within about 5: {WAY_OUT}", stacklevel=4)

    def change(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        return (inputs_embeds * (self._factor(inputs_embeds, batch) - 1)).to(inputs_embeds.dtype)

    def forward(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        return (inputs_embeds * self._factor(inputs_embeds, batch)).to(inputs_embeds.dtype)

    def streams_of(self, values: Tensor) -> dict[str, Tensor]:
        return encoded(self._representation, values)


class FloatBitsEmbedding(NumberEmbedding):
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
        compact: the form that :meth:`streams_of` gives; the layer reads either.

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
        self._representation = FloatBits(compact, overflow="clip")
        self.residual, self.signed_bits = residual, signed_bits
        self.layers = nn.ModuleList(nn.Linear(d_model if k else 32, d_model, bias=bias) for k in range(depth))
        self.gain = nn.Parameter(torch.zeros(d_model)) if zero_init else None

    def embed(self, stream: Tensor) -> Tensor:
        """R of the numbers' bits: (n,) or (n, 32) to (n, d_model)."""
        bits = as_bits(stream, 1).to(torch.float32)  # (n, 32)
        first, *others = self.layers
        x1 = torch.relu(linear(2 * bits - 1 if self.signed_bits else bits, first))  # type: ignore[arg-type]  # (n, d_model)
        if not others:
            return x1
        *between, last = others
        inner = x1
        for layer in between:
            inner = torch.relu(layer(inner))  # (n, d_model)
        x2 = last(inner)  # (n, d_model)
        return torch.relu(x1 + x2 if self.residual else x2)

    def _vectors(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        return self.at_numbers(inputs_embeds, batch, self.read(inputs_embeds, batch, "number_bits"), self.embed)  # (batch, seq, d_model)

    def change(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        vectors = self._vectors(inputs_embeds, batch)
        if self.gain is not None:
            return (self.gain * vectors).to(inputs_embeds.dtype)
        return torch.where(batch["number_mask"].to(torch.bool).unsqueeze(-1), vectors - inputs_embeds, 0)

    def forward(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        if self.gain is not None:
            return super().forward(inputs_embeds, batch)
        vectors = self._vectors(inputs_embeds, batch)
        return torch.where(batch["number_mask"].to(torch.bool).unsqueeze(-1), vectors, inputs_embeds)

    def streams_of(self, values: Tensor) -> dict[str, Tensor]:
        return encoded(self._representation, values)


class FoNEEmbedding(NumberEmbedding):
    """Adds the Fourier features of each number to its word vector (FoNE: Zhou et al. 2025, algorithm 1).

    From compact digits the features are computed here, in float32, on the device; see ``fourier``.

    Args:
        d_model: dimension of the word vectors.
        int_digits, frac_digits, bases, chunk: those of the representation; with ``chunk``, the features of all chunks stand side by side.
        projection: ``"pad"``, zeros behind the features, or ``"linear"``, a linear map without bias.
        zero_init: start the linear map from zeros.
        compact: the form that :meth:`streams_of` gives, digits or features; the layer reads either.

    Shape:
        - number_digits: (batch, seq, digits), or (batch, seq, chunks, chunk), any integer, least significant first;
        - or number_fourier: (batch, seq, f, 2), or (batch, seq, chunks, f, 2), float.
    """

    name = "fone"
    streams = ("number_mask", "number_digits", "number_fourier")

    def __init__(
        self,
        d_model: int,
        int_digits: int,
        frac_digits: int,
        bases: Sequence[int] = (10,),
        chunk: int | None = None,
        projection: str = "pad",
        zero_init: bool = False,
        compact: bool = True,
    ) -> None:
        fone = FoNE(int_digits, frac_digits, tuple(bases), compact, "clip", chunk)
        options = {"int_digits": int_digits, "frac_digits": frac_digits, "bases": fone.bases, "chunk": chunk, "compact": compact}
        super().__init__(d_model, **options, projection=projection, zero_init=zero_init)
        self._representation = fone
        self._width = features_per_number(fone.n_digits, fone.bases, chunk)
        self.projection = projection_layer(self.name, self._width, d_model, projection, zero_init)

    def embed(self, stream: Tensor) -> Tensor:
        """Digits (n, ...) or features (n, ..., 2) to (n, d_model)."""
        fone = self._representation
        if stream.is_floating_point():
            features = stream.flatten(1)  # (n, width)
        else:
            digits = stream.flatten(1)[:, : fone.n_digits] if stream.dim() == 3 else stream  # (n, digits): chunks are filled up with zeros
            if digits.dim() != 2 or digits.shape[1] != fone.n_digits:
                raise SchemaError(f"number_digits has the shape {tuple(stream.shape)}, the layer was made for {fone.n_digits} digits")
            features = features_of_digits(digits, fone.bases, fone.chunk).flatten(1)  # (n, width)
        if features.shape[1] != self._width:
            raise SchemaError(f"number_fourier holds {features.shape[1]} features per number, the layer was made for {self._width}")
        return project(features, self.projection, self.d_model)

    def change(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        stream = self.read(inputs_embeds, batch, "number_digits", "number_fourier")  # (batch, seq, ...)
        return self.at_numbers(inputs_embeds, batch, stream, self.embed)

    def streams_of(self, values: Tensor) -> dict[str, Tensor]:
        """Of the magnitudes: FoNE does not carry the sign."""
        found = encoded(self._representation, values)
        if "number_digits" in found:
            found["number_digits"] = found["number_digits"].flatten(1)[:, : self._representation.n_digits]  # (n, digits)
        return found


class ExponentEmbedding(NumberEmbedding):
    """Adds a vector for the bin of each number's magnitude to its word vector.

    Args:
        d_model: dimension of the word vectors.
        n, low, high: those of the representation ``ExponentBins``.
        zero_init: start from zeros; else from a normal distribution of standard deviation 0.02.

    Shape:
        - number_bin: (batch, seq), 0 to n, any integer.
    """

    name = "bins"
    streams = ("number_mask", "number_bin")

    def __init__(self, d_model: int, n: int = 200, low: float = 1e-4, high: float = 1e6, zero_init: bool = False) -> None:
        super().__init__(d_model, n=n, low=low, high=high, zero_init=zero_init)
        self._representation = ExponentBins(n, low, high, overflow="clip")
        self.vectors = nn.Embedding(n + 1, d_model)
        nn.init.normal_(self.vectors.weight, std=0.0 if zero_init else 0.02)

    def change(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        stream = self.read(inputs_embeds, batch, "number_bin").to(torch.int64)  # (batch, seq)
        return self.at_numbers(inputs_embeds, batch, stream, self.vectors)

    def streams_of(self, values: Tensor) -> dict[str, Tensor]:
        return encoded(self._representation, values)


class LogFourierEmbedding(NumberEmbedding):
    """Adds a linear map, without bias, of the sign, the zero flag and the Fourier features of each number's logarithm.

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
        self._representation = LogFourier(n_frequencies, overflow="clip")
        self.projection = nn.Linear(2 * (n_frequencies + 1), d_model, bias=False)
        if zero_init:
            nn.init.zeros_(self.projection.weight)

    def embed(self, stream: Tensor) -> Tensor:
        """Features (n, k + 1, 2) to (n, d_model)."""
        features = stream.flatten(1)  # (n, 2 (k + 1))
        if features.shape[1] != self.projection.in_features:
            expected = self.projection.in_features // 2
            raise SchemaError(f"number_log_fourier has the shape {tuple(stream.shape)}, the layer was made for (n, {expected}, 2)")
        return linear(features, self.projection)

    def change(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        return self.at_numbers(inputs_embeds, batch, self.read(inputs_embeds, batch, "number_log_fourier"), self.embed)

    def streams_of(self, values: Tensor) -> dict[str, Tensor]:
        return encoded(self._representation, values)
