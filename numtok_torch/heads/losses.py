"""Number token loss: for numbers that are spelled out in tokens, the distance in value between what
was predicted and what is right, added to the cross-entropy, to which a 4 for a 5 is as wrong as a 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from numtok import Tokenizer
from numtok.errors import RepresentationError, SchemaError
from numtok.representations import SpelledOut, from_dict
from numtok.tokenizer.schema import read_metadata
from numtok_torch.heads.digit_tokens import DigitTokens, ids_of_runs

KINDS = ("was", "mse")
REWEIGHED = 1.01  # of the largest distance: what a token that is no number costs


class NumberTokenLoss(nn.Module):
    """The number token loss of Zausinger et al. (Regress, Don't Guess, 2025), to be added to the
    cross-entropy: how far each digit that is predicted is from the right one.

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

    Shape:
        - logits: (batch, seq, vocabulary); labels: (batch, seq); weights: (batch, seq); output: ().
    """

    def __init__(
        self, groups: Sequence[Mapping[int, float]], kind: str = "was", reweigh: bool = False
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise RepresentationError(
                f"number token loss: kind={kind!r} is unknown; use one of"
                f" {', '.join(map(repr, KINDS))}"
            )
        if not groups or any(len(group) < 2 for group in groups):
            raise RepresentationError(
                "number token loss: needs at least one group of at least two number tokens"
            )
        if len({token_id for group in groups for token_id in group}) < sum(map(len, groups)):
            raise RepresentationError("number token loss: a token is in two groups")
        self.kind, self.reweigh = kind, reweigh
        self._groups = [
            {int(token_id): float(value) for token_id, value in sorted(group.items())}
            for group in groups
        ]

    @classmethod
    def from_digits(cls, digit_ids: Sequence[int], **options: Any) -> NumberTokenLoss:
        """For digits one by one, as in PlaceValue: the ids of the tokens ``0`` to ``9``."""
        return cls([dict(zip(digit_ids, map(float, range(10)), strict=True))], **options)

    @classmethod
    def from_schema(cls, schema: pa.Schema, **options: Any) -> NumberTokenLoss:
        """For a file that numtok wrote with numbers spelled out. The values of FP15 span all
        decades: the largest outweigh the others.

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
        """For a ``numtok.Tokenizer`` or a transformers tokenizer; where numbers stay text, for the
        digits of the vocabulary, one by one.

        Raises:
            SchemaError: if it has no tokens of numbers that have values.
        """
        inner = getattr(tokenizer, "numtok", tokenizer)
        if isinstance(inner, Tokenizer) and not inner.representations[0].stays_text:
            return cls.from_schema(inner.batch_schema(), **options)
        return cls(DigitTokens.from_tokenizer(tokenizer).groups(), **options)

    def groups(self) -> list[dict[int, float]]:
        """Id to value, for each group."""
        return [dict(group) for group in self._groups]

    def forward(
        self, logits: Tensor, labels: Tensor, causal: bool = False, weights: Tensor | None = None
    ) -> Tensor:
        """The loss, float32, a scalar; 0 with a graph if no label is a number token.

        Args:
            logits: (batch, seq, vocabulary).
            labels: (batch, seq).
            causal: whether logits at t are for the label at t + 1.
            weights: (batch, seq), float or bool, of the labels; 0 leaves names out, such as ids and
                phone numbers.
        """
        largest = max(token_id for group in self._groups for token_id in group)
        logits, labels, weights = aligned(logits, labels, causal, weights, largest)
        total = count = logits.new_zeros((), dtype=torch.float32)
        for group in self._groups:
            ids = torch.tensor(list(group), device=labels.device)  # (tokens,), ascending
            values = torch.tensor(list(group.values()), device=labels.device)  # (tokens,)
            chosen = torch.isin(labels, ids)  # (batch, seq)
            share = (chosen if weights is None else chosen * weights).to(torch.float32)
            if torch.compiler.is_compiling():  # no shape in an unbroken graph hangs on the labels
                rows = logits.masked_fill(~chosen.unsqueeze(-1), 0).flatten(0, -2)
                known, shares = torch.where(chosen, labels, ids[0]).flatten(), share.flatten()
            else:
                rows, known, shares = logits[chosen], labels[chosen], share[chosen]
            target = values[torch.searchsorted(ids, known)]  # (n,)
            losses = self._losses(rows, ids, values, target) * shares  # (n,)
            total, count = total + losses.sum(), count + share.sum()
        return total / count.clamp(min=torch.finfo(torch.float32).tiny)

    def _losses(self, logits: Tensor, ids: Tensor, values: Tensor, target: Tensor) -> Tensor:
        """(n,) from logits (n, vocabulary), a group's ids and values, and the labels' values."""
        near = logits[:, ids].to(torch.float32)  # (n, tokens)
        p = near.softmax(-1)  # (n, tokens)
        if self.kind == "was":
            losses = (p * (values - target.unsqueeze(-1)).abs()).sum(-1)  # (n,)
        else:
            losses = ((p * values).sum(-1) - target).square()  # (n,)
        if self.reweigh:
            largest = (values.max() - values.min()) ** (1 if self.kind == "was" else 2)
            share = (near.logsumexp(-1) - logits.to(torch.float32).logsumexp(-1)).exp()  # (n,)
            losses = losses * share + REWEIGHED * largest * (1 - share)
        return losses


def aligned(
    logits: Tensor, labels: Tensor, causal: bool, weights: Tensor | None, largest: int
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Logits (batch, seq, vocabulary), labels (batch, seq) and weights (batch, seq), each at the
    place of its label. A vocabulary may be padded, beyond the ``largest`` id that is looked at.
    SchemaError if their shapes do not fit together.
    """
    if largest >= logits.shape[-1]:
        raise SchemaError(
            f"the model scores {logits.shape[-1]} tokens, and those of numbers go up to {largest};"
            " call resize_token_embeddings(tokenizer.vocab_size)"
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
    return logits, labels, weights
