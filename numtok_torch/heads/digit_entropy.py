"""Digit entropy loss: DEL (Zheng et al. 2026, arXiv 2605.20369), as in the authors' code
(PolyU-VCLab/DEL, train-qwen-deepseek.py), which adds it to the cross-entropy times :data:`WEIGHT`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok_torch.heads.digit_tokens import DigitTokens
from numtok_torch.heads.losses import aligned
from numtok_torch.heads.value_loss import DigitLoss, among, before, behind, counted_in

WEIGHT = 0.01
SHRINKS = 1.02


class DigitEntropyLoss(DigitLoss):
    """The digit entropy loss of Zheng et al. (DEL, 2026): what the yes or no of each digit costs,
    by how likely the digit is held to be, and by its place. To be added to the cross-entropy, 0.01
    times it in the authors' code.

    With z the logits of the ten digits, p their softmax, d the digit of the label: the mean over
    digits, and over k from 0 to 9, of w p_k BCE(z_k, [k = d]). w is 2 (i + 1) for the digit of
    10^i, and 1.02^-(i + 1) for that of 10^-i.

    Args:
        tokens: of single digits, the most significant first; :meth:`from_schema` and
            :meth:`from_tokenizer` find them.

    Shape:
        - logits: (batch, seq, vocabulary); labels: (batch, seq); weights: (batch, seq); output: ().

    Raises:
        RepresentationError: for other digits.
    """

    def __init__(self, tokens: DigitTokens) -> None:
        super().__init__(tokens)
        if sorted(tokens.digits.values()) != [*map(str, range(10))] or tokens.order != "msd":
            raise RepresentationError(
                "digit entropy loss: needs a token for each digit, the most significant first;"
                " take place, digits:1, or numbers that stay text"
            )
        self._ids = sorted(tokens.digits, key=tokens.digits.__getitem__)

    def forward(
        self, logits: Tensor, labels: Tensor, causal: bool = False, weights: Tensor | None = None
    ) -> Tensor:
        """The loss, float32, a scalar; 0 with a graph if the labels hold no number.

        Args:
            logits: (batch, seq, vocabulary).
            labels: (batch, seq).
            causal: whether logits at t are for the label at t + 1.
            weights: (batch, seq), float or bool, of the labels; 0 leaves names out.
        """
        logits, labels, weights = aligned(logits, labels, causal, weights, max(self._ids))
        digit = self.digits_in(labels)  # (batch, seq)
        ids = torch.tensor(self._ids, device=labels.device)  # (10,)
        scores = logits[..., ids].to(torch.float32)  # (batch, seq, 10)
        right = (labels.unsqueeze(-1) == ids).to(torch.float32)
        cost = nn.functional.binary_cross_entropy_with_logits(scores, right, reduction="none")
        losses = (scores.softmax(-1) * cost).mean(-1) * self._places(labels, digit)  # (batch, seq)
        share = (digit if weights is None else digit * weights).to(torch.float32)
        return (losses * share).sum() / share.sum().clamp(min=torch.finfo(torch.float32).tiny)

    def _places(self, labels: Tensor, digit: Tensor) -> Tensor:
        """Float (batch, seq): the weights of the digits' places."""
        _, number = self.numbers_in(labels, digit)
        point = among(labels, self.tokens.points) & before(digit) & behind(digit)
        _, points = counted_in(number, point.long())
        fraction = digit & (points.view_as(labels) > 0)
        whole, past = counted_in(number, (digit & ~fraction).long())
        left = (whole[number.flatten()] - past).view_as(labels)  # whole digits behind this one
        _, past = counted_in(number, fraction.long())
        small = SHRINKS ** -(past.view_as(labels) + 1.0)
        return torch.where(fraction, small, 2.0 * (left + 1))
