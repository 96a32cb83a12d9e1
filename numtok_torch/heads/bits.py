"""The head that predicts a number bit by bit, as a float32.

In: hidden states, float (n, d_model), and ``number_bits``, (n, 32) or compact (n,). Out: the mean cross-entropy of the bits; or bits, and their value.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from numtok_torch.embeddings.bits import as_bits, values_of_words, words_of_bits
from numtok_torch.heads.base import NumberHead, NumberPrediction, mean, one_hidden_layer, run


class BitsHead(NumberHead):
    """32 logits, one for each bit of the float32; decodes to the most probable pattern that is a finite number.

    Where all eight exponent bits come out as 1, which is infinite or NaN, the least sure of them is turned into 0: of all finite patterns that
    is the most probable.

    Args:
        d_model: dimension of the hidden states.
        hidden: width of a hidden layer; None for none.

    Shape:
        - target: ``number_bits``, (n, 32), or compact (n,), any integer.
    """

    name = "bits"
    target = "number_bits"

    def __init__(self, d_model: int, hidden: int | None = None) -> None:
        super().__init__(d_model, hidden=hidden)
        self.network = nn.Linear(d_model, 32) if hidden is None else one_hidden_layer(d_model, hidden, 32)

    def bit_logits(self, hidden: Tensor) -> Tensor:
        """(..., d_model) to float32 (..., 32), sign first."""
        return run(self.network, self.checked(hidden))

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        self.checked(hidden, target)
        logits = self.bit_logits(hidden)  # (n, 32)
        bits = as_bits(target, 1).to(logits.dtype)  # (n, 32)
        return mean(nn.functional.binary_cross_entropy_with_logits(logits, bits, reduction="none").mean(-1))

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        logits = self.bit_logits(hidden)  # (..., 32)
        exponent = logits[..., 1:9]  # (..., 8)
        weakest = nn.functional.one_hot(exponent.argmin(-1), 8).to(torch.bool)  # (..., 8)
        turned = (exponent > 0).all(-1, keepdim=True) & weakest  # (..., 8)
        bits = logits > 0  # (..., 32)
        bits[..., 1:9] &= ~turned
        probability = nn.functional.logsigmoid(torch.where(bits, logits, -logits)).sum(-1).exp()  # (...)
        stream = bits.to(torch.uint8)  # (..., 32)
        return NumberPrediction(values_of_words(words_of_bits(stream)).double(), {"number_bits": stream}, probability)
