"""Rows of whole numbers in a vocabulary that start as FoNE's features, so that a stock model, whose
input is ids alone, begins with numbers that are alike where they are near or share digits.

As in fone-pretrain, by the first author of FoNE (src/modeling/fone_init.py): cosine and sine of
2πx/T for T = 2, 5, 10, 20, 50, … 1000, in turn, in the first 18 places of the row of x, then zeros.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from numtok import Tokenizer
from numtok.errors import RepresentationError
from numtok.representations import symbol_token

PERIODS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
SPACES = ("Ġ", "▁")  # how byte-level BPE and SentencePiece write a space


def start_as_fone(
    embedding: nn.Embedding,
    tokenizer: Any,
    highest: int = 999,
    periods: Sequence[int] = PERIODS,
    *,
    spaced: bool = False,
    frozen: bool = False,
) -> dict[int, int]:
    """Write FoNE's features into the rows of the whole numbers that are tokens: ``0``, ``7``,
    ``602``, none with leading zeros.

    Args:
        embedding: of a model, ``model.get_input_embeddings()``. If the output shares its weight,
            the scores of these tokens change with it.
        tokenizer: whose vocabulary it is for: a ``numtok.Tokenizer``, or one of transformers or of
            tokenizers.
        highest: the largest number.
        periods: those of FoNE; there are two features for each.
        spaced: also the tokens that begin with a space, which the authors leave as they are.
        frozen: give these rows no gradient from now on. Call it again on a model that was loaded,
            and give the weight no decay, which an optimizer applies without a gradient too.

    Returns:
        The number of each row, by its id.

    Raises:
        RepresentationError: if the features are more than a row, the rows fewer than the
            vocabulary's, or no number is a token.

    Example:
        >>> import numtok, torch
        >>> from numtok_torch import start_as_fone
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="digits:1")
        >>> embedding = torch.nn.Embedding(tokenizer.vocab_size, 24)
        >>> start_as_fone(embedding, tokenizer, highest=3)
        {16: 0, 17: 1, 18: 2, 19: 3}
    """
    weight, width = embedding.weight, 2 * len(periods)  # (rows, d_model)
    rows = _rows(tokenizer, highest, spaced)
    if not rows or max(rows) >= len(weight):
        reason = (
            f"row {max(rows)} is not among its {len(weight)}" if rows else "no number is a token"
        )
        raise RepresentationError(f"fone: the embedding does not go with the tokenizer: {reason}")
    if width > weight.shape[1]:
        raise RepresentationError(
            f"fone: {width} features do not fit into rows of {weight.shape[1]}; take fewer periods"
        )
    numbers = torch.tensor(list(rows.values())).unsqueeze(1)  # (n, 1)
    turns = 2 * math.pi * (numbers % torch.tensor(periods)).double() / torch.tensor(periods)
    features = torch.stack([turns.cos(), turns.sin()], -1).flatten(1)  # (n, 2 · periods)
    ids = torch.tensor(list(rows), device=weight.device)
    with torch.no_grad():
        weight[ids] = nn.functional.pad(features, (0, weight.shape[1] - width)).to(weight)
    if frozen:
        weight.register_hook(lambda gradient: gradient.index_fill(0, ids.to(gradient.device), 0))
    return rows


def _rows(tokenizer: Any, highest: int, spaced: bool) -> dict[int, int]:
    """Return {id: number} of the whole numbers up to the highest that are tokens."""
    id_of: Mapping[str, int] = (
        tokenizer.tokens if isinstance(tokenizer, Tokenizer) else tokenizer.get_vocab()
    )
    rows: dict[int, int] = {}
    for number in range(highest + 1):
        plain = str(number)
        forms = (plain, symbol_token(plain), *(one + plain for one in SPACES if spaced))
        rows |= {id_of[form]: number for form in forms if form in id_of}
    return rows
