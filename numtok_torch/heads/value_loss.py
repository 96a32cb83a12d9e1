"""Number value loss: for whole numbers of several tokens, how far the number that was predicted is
from the right one, relative to it. ``"symmetric"`` is ``NumberLevelLoss`` of ``ntloss``, the package
of Zausinger et al. (2025).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import pyarrow as pa
import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok_torch.heads.digit_tokens import DigitTokens
from numtok_torch.heads.losses import aligned

KINDS = ("symmetric", "relative")


class DigitLoss(nn.Module):
    """What losses on digits have in common: which tokens are digits, and of which number.

    Args:
        tokens: which tokens are digits, and how numbers are made of them; :meth:`from_schema` and
            :meth:`from_tokenizer` find them.
    """

    def __init__(self, tokens: DigitTokens) -> None:
        super().__init__()
        if not tokens.digits:
            raise RepresentationError("a loss on digits: needs tokens that are digits")
        self.tokens = tokens

    @classmethod
    def from_schema(cls, schema: pa.Schema, **options: Any) -> Self:
        """For a file that numtok wrote with numbers spelled out in digits: ``place``, ``digits:N``,
        ``p10``. SchemaError for any other data.
        """
        return cls(DigitTokens.from_schema(schema), **options)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, **options: Any) -> Self:
        """For a tokenizer, numtok's or of transformers; where numbers stay text, they are runs of
        tokens of one digit. SchemaError if it has no such tokens.
        """
        return cls(DigitTokens.from_tokenizer(tokenizer), **options)

    def digits_in(self, labels: Tensor) -> Tensor:
        """Bool (batch, seq): which labels are digits of numbers."""
        digit = among(labels, self.tokens.digits)
        if self.tokens.opens:
            digit = digit & _within(
                among(labels, self.tokens.opens), among(labels, self.tokens.closes)
            )
        return digit

    def numbers_in(self, labels: Tensor, digit: Tensor) -> tuple[Tensor, Tensor]:
        """(where numbers begin, bool; the number that the last beginning belongs to, int64),
        (batch, seq) each. An exponent is no number.
        """
        joint = among(labels, self.tokens.joints)
        runs = digit | (joint & before(digit) & behind(digit))
        power = among(labels, self.tokens.powers) & before(digit | joint)
        signed = before(among(labels, self.tokens.signs)) & before(before(power))
        exponent = before(power) | signed
        first = runs & ~before(runs)
        # -1 in front of the first, where nothing is added up
        number = first.flatten().cumsum(0).view_as(labels) - 1
        return first & ~exponent, number.clamp(min=0)


class NumberValueLoss(DigitLoss):
    """How far the expected value of each number is from the right one, relative to it, as a mean
    over numbers. To be added to the cross-entropy.

    A number is a run of digits in the labels, with the points and separators among them. ŷ is the
    sum of the expected digits at their places: at each token, the mean of the values of all digits,
    by the softmax over them alone; so a wrong digit costs by its place. y is the number of the
    labels; sign and power of ten are left out, as they are tokens of their own.

    ``"symmetric"`` is |ŷ - y| / (ŷ + y), 0 to 1; without a gradient where y is 0, so that digits
    need another loss. ``"relative"`` is |ŷ - y| / max(y, u), where u is one in the last place as
    written; large where a number begins with zeros.

    Args:
        tokens: which tokens are digits, and how numbers are made of them; :meth:`from_schema` and
            :meth:`from_tokenizer` find them.
        kind: ``"symmetric"`` or ``"relative"``.

    Shape:
        - logits: (batch, seq, vocabulary); labels: (batch, seq); weights: (batch, seq); output: ().
    """

    def __init__(self, tokens: DigitTokens, kind: str = "symmetric") -> None:
        super().__init__(tokens)
        if kind not in KINDS:
            raise RepresentationError(
                f"number value loss: kind={kind!r} is unknown; use one of"
                f" {', '.join(map(repr, KINDS))}"
            )
        self.kind = kind
        self._groups = [dict(sorted(group.items())) for group in tokens.groups()]

    def forward(
        self, logits: Tensor, labels: Tensor, causal: bool = False, weights: Tensor | None = None
    ) -> Tensor:
        """The loss, float32, a scalar; 0 with a graph if the labels hold no number.

        Args:
            logits: (batch, seq, vocabulary).
            labels: (batch, seq).
            causal: whether logits at t are for the label at t + 1.
            weights: (batch, seq), float or bool, of the labels: a number counts as its first digit
                does. 0 leaves names out, such as ids and phone numbers.
        """
        logits, labels, weights = aligned(logits, labels, causal, weights, max(self.tokens.digits))
        digit = self.digits_in(labels)  # (batch, seq)
        begins, number = self.numbers_in(labels, digit)  # (batch, seq) each
        # (batch * seq,), of each number
        loss = self._losses(*self._values(logits, labels, digit), digit, number)
        counted = (begins if weights is None else begins * weights).to(torch.float32)
        total = counted.sum().clamp(min=torch.finfo(torch.float32).tiny)
        return (loss[number] * counted).sum() / total

    def _values(
        self, logits: Tensor, labels: Tensor, digit: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(expected value, that of the label, its digits), (batch, seq) each; 0 elsewhere."""
        expected, value = (torch.zeros(labels.shape, device=logits.device) for _ in range(2))
        width = torch.zeros_like(labels)
        for group in self._groups:
            ids = torch.tensor([*group], device=labels.device)  # (tokens,), ascending
            values = torch.tensor([*group.values()], device=logits.device)  # (tokens,)
            chosen = digit & torch.isin(labels, ids)
            mean = (logits[..., ids].to(torch.float32).softmax(-1) * values).sum(-1)  # (batch, seq)
            right = values[torch.searchsorted(ids, torch.where(chosen, labels, ids[0]))]
            expected = torch.where(chosen, mean, expected)
            value = torch.where(chosen, right, value)
            width = torch.where(chosen, len(self.tokens.digits[next(iter(group))]), width)
        return expected, value, width

    def _losses(
        self, expected: Tensor, value: Tensor, width: Tensor, digit: Tensor, number: Tensor
    ) -> Tensor:
        """The loss of each number, float32 (batch * seq,), from the values of its tokens; on the
        scale on which the number is below 1.
        """
        total, past = counted_in(number, width)  # (numbers,), digits; (batch * seq,)
        left = past - width.flatten() - total[number.flatten()]
        power = -past if self.tokens.order == "msd" else left
        place = torch.where(digit, torch.pow(10.0, power.view_as(width)), 0)  # (batch, seq)
        unit, tiny = torch.pow(10.0, -total), torch.finfo(torch.float32).tiny  # (numbers,)
        y, predicted = (counted_in(number, one * place)[0] for one in (value, expected))
        compared = predicted + y if self.kind == "symmetric" else torch.maximum(y, unit)
        return (predicted - y).abs() / compared.clamp(min=tiny)


def counted_in(number: Tensor, of: Tensor) -> tuple[Tensor, Tensor]:
    """(the sum for each number, and at each token the sum up to it), (batch * seq,) each."""
    total = torch.zeros(of.numel(), dtype=of.dtype, device=of.device).scatter_add(
        0, number.flatten(), of.flatten()
    )
    return total, of.flatten().cumsum(0) - (total.cumsum(0) - total)[number.flatten()]


def among(labels: Tensor, ids: Iterable[int]) -> Tensor:
    """Bool (batch, seq): which labels are among the ids."""
    return torch.isin(labels, torch.tensor([*ids], dtype=labels.dtype, device=labels.device))


def before(mask: Tensor) -> Tensor:
    """At each place of (batch, seq), what the mask says of the place before."""
    return nn.functional.pad(mask[:, :-1], (1, 0))


def behind(mask: Tensor) -> Tensor:
    """The same of the place behind."""
    return nn.functional.pad(mask[:, 1:], (0, 1))


def _within(opens: Tensor, closes: Tensor) -> Tensor:
    """Bool (batch, seq): between brackets."""
    places = torch.arange(opens.shape[1], device=opens.device)  # (seq,)
    # (batch, seq) each
    opened, closed = (torch.where(mask, places, -1).cummax(1).values for mask in (opens, closes))
    return opened > closed
