"""Losses on numbers that are spelled out in tokens, by their value; to be added to the
cross-entropy, to which a 4 for a 5 is as wrong as a 9.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import pyarrow as pa
import torch
from torch import Tensor, nn

from numtok import Tokenizer
from numtok.errors import RepresentationError, SchemaError
from numtok.representations import SpelledOut, from_dict
from numtok.tokenizer.schema import read_metadata
from numtok_torch.data.masking import IGNORED
from numtok_torch.embeddings.base import check_known
from numtok_torch.heads.digit_tokens import DigitTokens, ids_of_runs

TINY = torch.finfo(torch.float32).tiny
REWEIGHED = 1.01  # of the largest distance: what a token that is no number costs
SHRINKS = 1.02


class NumberLoss(nn.Module, ABC):
    """Base of losses on the tokens of numbers: a mean over tokens, or over numbers.

    Example:
        >>> import torch
        >>> class ShareWrong(NumberLoss):
        ...     largest = 9
        ...
        ...     def each(self, logits, labels):
        ...         return (logits.argmax(-1) != labels).float(), labels != -100
        >>> ShareWrong()(torch.eye(10)[None, :2], torch.tensor([[0, 5]])).item()
        0.5
    """

    largest: int  # of the ids that are looked at

    @abstractmethod
    def each(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return, (batch, seq) each: the loss of what a label begins; which labels count, bool."""

    def forward(
        self, logits: Tensor, labels: Tensor, causal: bool = False, weights: Tensor | None = None
    ) -> Tensor:
        """Return the loss, float32, a scalar; 0 with a graph if the labels hold no number.

        Args:
            logits: (batch, seq, vocabulary), which may be padded beyond the tokenizer's.
            labels: (batch, seq).
            causal: whether logits at t are for the label at t + 1.
            weights: (batch, seq), float or bool, of the labels; 0 leaves names out, such as ids and
                phone numbers. A number of several digits may count as its first one does.

        Raises:
            SchemaError: if the shapes do not fit together.
        """
        if self.largest >= logits.shape[-1]:
            raise SchemaError(
                f"the model scores {logits.shape[-1]} tokens, and those of numbers go up to"
                f" {self.largest}; call numtok_torch.add_number_rows(model, tokenizer)"
            )
        if weights is not None and weights.shape != labels.shape:
            raise SchemaError(
                f"weights {tuple(weights.shape)} and labels {tuple(labels.shape)} differ; give each"
                " label one weight"
            )
        if causal:
            logits, labels = logits[:, :-1], labels[:, 1:]
            weights = None if weights is None else weights[:, 1:]
        if logits.shape[:-1] != labels.shape:
            raise SchemaError(
                f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} differ in batch or"
                " sequence"
            )
        losses, counted = self.each(logits, labels)  # (batch, seq) each
        share = (counted if weights is None else counted * weights).to(torch.float32)
        return (losses * share).sum() / share.sum().clamp(min=TINY)


class NumberTokenLoss(NumberLoss):
    """The number token loss of Zausinger et al. (Regress, Don't Guess, 2025): how far each predicted
    digit is from the right one.

    With p the softmax over the number tokens alone, v their values, and y the value of the label:
    ``"was"`` is the Wasserstein-1 distance Σ p_j |v_j - y|, ``"mse"`` is (Σ p_j v_j - y)². Digits
    are compared with digits, mantissas with mantissas, exponents with exponents. The result is the
    mean over the number tokens.

    Args:
        groups: the number tokens that are compared with one another, id to value.
        kind: ``"was"`` or ``"mse"``.
        reweigh: as the authors' package does by default, unlike the paper: weigh each loss by the
            probability of all number tokens of its group; the rest of the probability costs 1.01
            times the largest loss there is, so that words are worse than any number.

    Example:
        >>> import torch
        >>> from numtok_torch import NumberTokenLoss
        >>> loss, right = NumberTokenLoss.from_digits(range(10)), torch.tensor([[5]])
        >>> sure = 1000 * torch.eye(10)  # logits of a model that is sure of each digit
        >>> [loss(sure[digit].view(1, 1, 10), right).item() for digit in (5, 4, 9)]
        [0.0, 1.0, 4.0]
    """

    def __init__(
        self, groups: Sequence[Mapping[int, float]], kind: str = "was", reweigh: bool = False
    ) -> None:
        super().__init__()
        check_known("number token loss", "kind", kind, "was", "mse")
        if not groups or any(len(group) < 2 for group in groups):
            raise RepresentationError(
                "number token loss: needs at least one group of at least two number tokens"
            )
        ids = [int(token_id) for group in groups for token_id in group]
        if len({*ids}) < len(ids):
            raise RepresentationError("number token loss: a token is in two groups")
        self.kind, self.reweigh, self.largest = kind, reweigh, max(ids)
        self._groups = [
            {int(token_id): float(value) for token_id, value in sorted(group.items())}
            for group in groups
        ]

    @classmethod
    def from_digits(cls, digit_ids: Sequence[int], **options: Any) -> NumberTokenLoss:
        """Make the loss for digits one by one: the ids of the tokens ``0`` to ``9``."""
        return cls([dict(zip(digit_ids, map(float, range(10)), strict=True))], **options)

    @classmethod
    def from_schema(cls, schema: pa.Schema, **options: Any) -> NumberTokenLoss:
        """Make the loss for a file that numtok wrote with numbers spelled out. The values of FP15
        span all decades: the largest outweigh the others.

        Raises:
            SchemaError: for any other data.
        """
        metadata = read_metadata(schema)
        representation = from_dict(metadata["numbers"][0])
        if not isinstance(representation, SpelledOut) or not representation.symbol_values:
            return cls(DigitTokens.from_schema(schema).groups(), **options)
        plain, spaced = (ids_of_runs(metadata["symbols"][form]) for form in ("plain", "spaced"))
        values, first = representation.symbol_values, representation.first_symbols
        pairs = [
            *zip(plain, values, strict=True),
            *zip(spaced, values[first.start : first.stop] if spaced else [], strict=True),
        ]
        groups: dict[str, dict[int, float]] = {}
        for token, group_and_value in pairs:
            if group_and_value is not None:
                group, value = group_and_value
                groups.setdefault(group, {})[token] = value
        return cls([group for group in groups.values() if len(group) > 1], **options)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, **options: Any) -> NumberTokenLoss:
        """Make the loss for a ``numtok.Tokenizer`` or a transformers tokenizer; where numbers stay
        text, for the digits of the vocabulary, one by one.

        Raises:
            SchemaError: if it has no tokens of numbers that have values.
        """
        inner = getattr(tokenizer, "numtok", tokenizer)
        if isinstance(inner, Tokenizer) and not inner.representations[0].stays_text:
            return cls.from_schema(inner.batch_schema(), **options)
        return cls(DigitTokens.from_tokenizer(tokenizer).groups(), **options)

    def groups(self) -> list[dict[int, float]]:
        """Return id to value, for each group."""
        return [dict(group) for group in self._groups]

    def each(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(labels.shape, device=logits.device)
        counted = torch.zeros_like(labels, dtype=torch.bool)
        for group in self._groups:
            ids, values, chosen, right = looked_up(group, labels)
            losses = self._losses(logits, ids, values, right)  # (batch, seq)
            total, counted = torch.where(chosen, losses, total), counted | chosen
        return total, counted

    def _losses(self, logits: Tensor, ids: Tensor, values: Tensor, right: Tensor) -> Tensor:
        """Return the losses (batch, seq) of a group, with the values of the labels (batch, seq)."""
        near = logits[..., ids].to(torch.float32)  # (batch, seq, tokens)
        p = near.softmax(-1)
        if self.kind == "was":
            losses = (p * (values - right.unsqueeze(-1)).abs()).sum(-1)
        else:
            losses = ((p * values).sum(-1) - right).square()
        if self.reweigh:
            largest = (values.max() - values.min()) ** (1 if self.kind == "was" else 2)
            share = (near.logsumexp(-1) - logits.to(torch.float32).logsumexp(-1)).exp()
            losses = losses * share + REWEIGHED * largest * (1 - share)
        return losses


class DigitLoss(NumberLoss):
    """Base of losses on digits, that knows which tokens are digits, and of which number."""

    def __init__(self, tokens: DigitTokens) -> None:
        super().__init__()
        if not tokens.digits:
            raise RepresentationError("a loss on digits: needs tokens that are digits")
        self.tokens, self.largest = tokens, max(tokens.digits)

    @classmethod
    def from_schema(cls, schema: pa.Schema, **options: Any) -> Self:
        """Make the loss for a file that numtok wrote with numbers spelled out in digits: ``place``,
        ``digits:N``, ``p10``. SchemaError for any other data.
        """
        return cls(DigitTokens.from_schema(schema), **options)

    @classmethod
    def from_tokenizer(cls, tokenizer: Any, **options: Any) -> Self:
        """Make the loss for a tokenizer, numtok's or of transformers; where numbers stay text, they
        are runs of tokens of one digit. SchemaError if it has no such tokens.
        """
        return cls(DigitTokens.from_tokenizer(tokenizer), **options)

    def digits_in(self, labels: Tensor) -> Tensor:
        """Return bool (batch, seq): which labels are digits of numbers."""
        digit = among(labels, self.tokens.digits)
        if not self.tokens.opens:
            return digit
        places = torch.arange(labels.shape[1], device=labels.device)  # (seq,)
        opened, closed = (  # (batch, seq) each: where the last bracket is
            torch.where(among(labels, ids), places, -1).cummax(1).values
            for ids in (self.tokens.opens, self.tokens.closes)
        )
        return digit & (opened > closed)

    def numbers_in(self, labels: Tensor, digit: Tensor) -> tuple[Tensor, Tensor]:
        """Return (where numbers begin, bool; the number that the last beginning belongs to, int64),
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
    """Distance of the expected value of each number from the right one, relative to it, as a mean
    over numbers.

    A number is a run of digits in the labels, with the points and separators among them. ŷ is the
    sum of the expected digits at their places: at each token, the mean of the values of all digits,
    by the softmax over them alone; so a wrong digit costs by its place. y is the number of the
    labels; sign and power of ten are left out, as they are tokens of their own.

    ``"symmetric"`` is |ŷ - y| / (ŷ + y), 0 to 1, ``NumberLevelLoss`` of ``ntloss``, the package of
    Zausinger et al. (2025); without a gradient where y is 0, so that digits need another loss.
    ``"relative"`` is |ŷ - y| / max(y, u), where u is one in the last place as written; large where
    a number begins with zeros.

    Args:
        tokens: which tokens are digits, and how numbers are made of them; :meth:`from_schema` and
            :meth:`from_tokenizer` find them.
        kind: ``"symmetric"`` or ``"relative"``.

    Example:
        >>> import numtok, torch
        >>> from numtok_torch import NumberValueLoss
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="digits:1")
        >>> loss = NumberValueLoss.from_tokenizer(tokenizer)
        >>> ids = [tokenizer.encode(text).input_ids.tolist() for text in ("24", "25")]
        >>> right, wrong = torch.tensor(ids)[:, None]  # (1, seq) each
        >>> logits = 1000.0 * torch.nn.functional.one_hot(wrong, tokenizer.vocab_size)
        >>> round(loss(logits, right).item(), 4)  # |25 - 24| / (25 + 24)
        0.0204
    """

    def __init__(self, tokens: DigitTokens, kind: str = "symmetric") -> None:
        super().__init__(tokens)
        check_known("number value loss", "kind", kind, "symmetric", "relative")
        self.kind = kind
        self._groups = [dict(sorted(group.items())) for group in tokens.groups()]

    def each(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        digit = self.digits_in(labels)  # (batch, seq)
        begins, number = self.numbers_in(labels, digit)  # (batch, seq) each
        expected, value = (torch.zeros(labels.shape, device=logits.device) for _ in range(2))
        width = torch.zeros_like(labels)
        for group in self._groups:
            ids, values, chosen, right = looked_up(group, labels)
            chosen = chosen & digit
            mean = (logits[..., ids].to(torch.float32).softmax(-1) * values).sum(-1)  # (batch, seq)
            expected = torch.where(chosen, mean, expected)
            value = torch.where(chosen, right, value)
            width = torch.where(chosen, len(self.tokens.digits[next(iter(group))]), width)
        # of each number, on the scale on which it is below 1
        total, past = counted_in(number, width)  # (numbers,), digits; (batch * seq,)
        left = past - width.flatten() - total[number.flatten()]
        power = -past if self.tokens.order == "msd" else left
        place = torch.where(digit, torch.pow(10.0, power.view_as(width)), 0)  # (batch, seq)
        y, predicted = (counted_in(number, one * place)[0] for one in (value, expected))
        unit = torch.pow(10.0, -total)  # (numbers,)
        compared = predicted + y if self.kind == "symmetric" else torch.maximum(y, unit)
        losses = (predicted - y).abs() / compared.clamp(min=TINY)  # (numbers,)
        return losses[number], begins


class DigitEntropyLoss(DigitLoss):
    """The digit entropy loss of Zheng et al. (DEL, 2026, arXiv 2605.20369), as in the authors' code
    (PolyU-VCLab/DEL, train-qwen-deepseek.py): what the yes or no of each digit costs, by how likely
    the digit is held to be, and by its place. They add 0.01 times it to the cross-entropy.

    With z the logits of the ten digits, p their softmax, d the digit of the label: the mean over
    digits, and over k from 0 to 9, of w p_k BCE(z_k, [k = d]). w is 2 (i + 1) for the digit of
    10^i, and 1.02^-(i + 1) for that of 10^-i.

    Args:
        tokens: of single digits, the most significant first; :meth:`from_schema` and
            :meth:`from_tokenizer` find them.

    Raises:
        RepresentationError: for other digits.

    Example:
        >>> import numtok, torch
        >>> from numtok_torch import DigitEntropyLoss
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="digits:1")
        >>> labels = torch.tensor([tokenizer.encode("24").input_ids.tolist()])
        >>> logits = torch.zeros(*labels.shape, tokenizer.vocab_size)
        >>> round(DigitEntropyLoss.from_tokenizer(tokenizer)(logits, labels).item(), 4)
        0.2079
    """

    def __init__(self, tokens: DigitTokens) -> None:
        super().__init__(tokens)
        if sorted(tokens.digits.values()) != [*map(str, range(10))] or tokens.order != "msd":
            raise RepresentationError(
                "digit entropy loss: needs a token for each digit, the most significant first;"
                " take place, digits:1, or numbers that stay text"
            )
        self._ids = sorted(tokens.digits, key=tokens.digits.__getitem__)

    def each(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        digit = self.digits_in(labels)  # (batch, seq)
        ids = torch.tensor(self._ids, device=labels.device)  # (10,)
        scores = logits[..., ids].to(torch.float32)  # (batch, seq, 10)
        right = (labels.unsqueeze(-1) == ids).to(torch.float32)
        cost = nn.functional.binary_cross_entropy_with_logits(scores, right, reduction="none")
        return (scores.softmax(-1) * cost).mean(-1) * self._places(labels, digit), digit

    def _places(self, labels: Tensor, digit: Tensor) -> Tensor:
        """Return float (batch, seq): the weights of the digits' places."""
        begins, number = self.numbers_in(labels, digit)
        point = among(labels, self.tokens.points)
        # without brackets, what stands before .5 may be the end of a sentence
        leading = begins & before(point) & bool(self.tokens.opens)
        _, points = counted_in(number, (leading | (point & before(digit) & behind(digit))).long())
        fraction = digit & (points.view_as(labels) > 0)
        whole, past = counted_in(number, (digit & ~fraction).long())
        left = (whole[number.flatten()] - past).view_as(labels)  # whole digits behind this one
        _, past = counted_in(number, fraction.long())
        small = SHRINKS ** -(past.view_as(labels) + 1.0)
        return torch.where(fraction, small, 2.0 * (left + 1))


class CrossEntropyWith:
    """The cross-entropy of a stock causal model, plus weighted other losses, for
    ``Trainer(..., compute_loss_func=CrossEntropyWith([loss]))``.

    The cross-entropy is the mean over all tokens of a step, whatever the batches that it is made
    of; the other losses are means of each batch, which counts by its share of the tokens. A
    ``NumberModel`` has to see the labels itself: derive from the Trainer for it.

    Args:
        losses: such as ``NumberTokenLoss.from_tokenizer(tokenizer)``.
        weights: of each; one number for all.

    Example:
        >>> import torch
        >>> from numtok_torch import CrossEntropyWith, NumberTokenLoss
        >>> loss = CrossEntropyWith([NumberTokenLoss.from_digits(range(10))], weights=0.3)
        >>> outputs, labels = {"logits": torch.zeros(1, 2, 10)}, torch.tensor([[3, 0]])
        >>> round(loss(outputs, labels).item(), 4)  # ln 10 + 0.3 · 4.5
        3.6526
    """

    def __init__(self, losses: Sequence[nn.Module], weights: float | Sequence[float] = 0.3) -> None:
        weight_list = [weights] * len(losses) if isinstance(weights, int | float) else list(weights)
        if not losses or len(weight_list) != len(losses):
            raise RepresentationError(
                f"{len(losses)} losses and {len(weight_list)} weights: give at least one loss, and a"
                " weight for each"
            )
        self.losses, self.weights = list(losses), weight_list

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """Return the loss, float32, a scalar.

        Args:
            outputs: of the model, with ``logits``, (batch, seq, vocabulary).
            labels: (batch, seq); -100 for tokens without a loss.
            num_items_in_batch: tokens with a loss in all batches of the step; None for one batch.
        """
        logits, shifted = outputs["logits"], labels[:, 1:].to(outputs["logits"].device)
        scores = logits[:, :-1].flatten(0, 1).to(torch.float32)  # (batch * (seq - 1), vocabulary)
        total = nn.functional.cross_entropy(scores, shifted.flatten(), reduction="sum")
        here = (shifted != IGNORED).sum()
        count = torch.as_tensor(here if num_items_in_batch is None else num_items_in_batch)
        count = count.to(here.device).clamp(min=1)  # of a batch without labels the loss is 0
        added = sum(
            weight * loss(logits, labels.to(logits.device), causal=True)
            for loss, weight in zip(self.losses, self.weights, strict=True)
        )
        loss: Tensor = total / count + added * (here / count)
        return loss


def looked_up(group: Mapping[int, float], labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return for a group in ascending order (ids and values, (tokens,) each; which labels (batch,
    seq) are among them; and their values, (batch, seq), that of the first one elsewhere).
    """
    ids = torch.tensor([*group], device=labels.device)
    values = torch.tensor([*group.values()], device=labels.device)
    chosen = torch.isin(labels, ids)
    return ids, values, chosen, values[torch.searchsorted(ids, torch.where(chosen, labels, ids[0]))]


def counted_in(number: Tensor, of: Tensor) -> tuple[Tensor, Tensor]:
    """Return (the sum for each number, and at each token the sum up to it), (batch * seq,) each."""
    total = torch.zeros(of.numel(), dtype=of.dtype, device=of.device).scatter_add(
        0, number.flatten(), of.flatten()
    )
    return total, of.flatten().cumsum(0) - (total.cumsum(0) - total)[number.flatten()]


def among(labels: Tensor, ids: Iterable[int]) -> Tensor:
    """Return bool (batch, seq): which labels are among the ids."""
    return torch.isin(labels, torch.tensor([*ids], dtype=labels.dtype, device=labels.device))


def before(mask: Tensor) -> Tensor:
    """Shift a mask (batch, seq) one place to the right: what it says of the place before."""
    return nn.functional.pad(mask[:, :-1], (1, 0))


def behind(mask: Tensor) -> Tensor:
    """Shift a mask (batch, seq) one place to the left: what it says of the place behind."""
    return nn.functional.pad(mask[:, 1:], (0, 1))
