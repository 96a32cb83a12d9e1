"""The head that predicts a number bit by bit, as a float32 or a float64."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok.representations import FloatBits
from numtok.representations.float_bits import FIELDS
from numtok_torch.embeddings.float_bits import as_bits, values_of_words, words_of_bits
from numtok_torch.heads.base import NumberHead, NumberPrediction, mean, one_hidden_layer


class BitsHead(NumberHead):
    """A logit for each bit of the float; decodes to the most probable pattern that is a finite
    number.

    Where all exponent bits come out as 1, which is infinite or NaN, the least sure of them is
    turned into 0: of all finite patterns that is the most probable.

    The loss is the binary cross-entropy, its mean over the bits, each with its weight. The weights
    rise, or fall, in a line from the sign to the last bit of the fraction, and their mean is 1: 1 +
    width · slope · k / (width - 1) for bit k, or for a negative slope the same from the other end,
    over their mean. (After the code of BitTokens, Kreitner et al. 2025, where the slope is 0 unless
    it is asked for.)

    Args:
        d_model: dimension of the hidden states.
        hidden: width of a hidden layer; None for none.
        width: of the float, 32 or 64.
        reciprocal: whether dense targets have the bits of 1/x after those of x; they are an input,
            and not predicted.
        slope: of the weights; 0 for the plain mean. With 1, the last of 64 bits weighs 65 times as
            much as the sign; with -1 the sign so much more.
        layer_norm: put a LayerNorm in front; None: in a NumberModel around a pretrained backbone.

    Shape:
        - target: ``number_bits``, (n, width), with ``reciprocal`` (n, 128), or compact (n,), any
          integer.

    Example:
        >>> import torch
        >>> from numtok_torch import BitsHead
        >>> prediction = BitsHead(d_model=8).predict(torch.ones(2, 8))
        >>> prediction.values.shape, prediction.streams["number_bits"].shape
        (torch.Size([2]), torch.Size([2, 32]))
    """

    name = "bits"
    target = "number_bits"

    def __init__(
        self,
        d_model: int,
        hidden: int | None = None,
        width: int = 32,
        reciprocal: bool = False,
        slope: float = 0.0,
        layer_norm: bool | None = None,
    ) -> None:
        super().__init__(d_model, hidden=hidden, width=width, reciprocal=reciprocal, slope=slope)
        FloatBits(width=width, reciprocal=reciprocal)  # which says what is wrong
        if not abs(slope) <= 1e6:
            raise RepresentationError(f"bits: slope={slope} must be a number from -1e6 to 1e6")
        self.width, self.slope, self._exponent = width, slope, slice(1, 1 + FIELDS[width][1])
        self._reciprocal = reciprocal
        plain = hidden is None
        self.network = (
            nn.Linear(d_model, width) if plain else one_hidden_layer(d_model, hidden, width)
        )
        self.set_layer_norm(layer_norm)

    def bit_logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the bits, float32 (..., width), sign first."""
        return self.say(hidden)

    def bit_weights(self, like: Tensor) -> Tensor:
        """Return the weight of each bit in the loss, (width,), like ``like``; made anew each time,
        so that nothing can round it.
        """
        rise = self.width * abs(self.slope)
        first, last = (1.0, 1.0 + rise) if self.slope >= 0 else (1.0 + rise, 1.0)
        line = torch.linspace(first, last, self.width, dtype=like.dtype, device=like.device)
        return line / (1.0 + rise / 2)  # (width,)

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        self.checked(hidden, target)
        logits = self.bit_logits(hidden)  # (n, width)
        reciprocal = self._reciprocal and target.dim() == 2  # which is no target
        bits = as_bits(target, self.width, reciprocal)[:, : self.width].to(logits.dtype)
        losses = nn.functional.binary_cross_entropy_with_logits(logits, bits, reduction="none")
        return mean((losses if self.slope == 0 else losses * self.bit_weights(losses)).mean(-1))

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        logits = self.bit_logits(hidden)  # (..., width)
        exponent = logits[..., self._exponent]  # (..., exponent bits)
        weakest = nn.functional.one_hot(exponent.argmin(-1), exponent.shape[-1]).to(torch.bool)
        turned = (exponent > 0).all(-1, keepdim=True) & weakest  # (..., exponent bits)
        bits = logits > 0  # (..., width)
        bits[..., self._exponent] &= ~turned
        sure = nn.functional.logsigmoid(torch.where(bits, logits, -logits)).sum(-1).exp()  # (...)
        stream = bits.to(torch.uint8)  # (..., width)
        values = values_of_words(words_of_bits(stream), self.width).double()
        return NumberPrediction(values, {"number_bits": stream}, sure)
