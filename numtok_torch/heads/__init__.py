"""Heads and losses: hidden states in, numbers or a loss out.

May import numtok and :mod:`numtok_torch.embeddings`.
"""

from numtok_torch.heads.choose import (
    BitsHead,
    FoNEHead,
    MixtureHead,
    NumberHead,
    NumberPrediction,
    ScalarHead,
    head_from_config,
    head_from_schema,
)
from numtok_torch.heads.losses import NumberTokenLoss
from numtok_torch.heads.value_loss import NumberValueLoss

__all__ = [
    "BitsHead",
    "FoNEHead",
    "MixtureHead",
    "NumberHead",
    "NumberPrediction",
    "NumberTokenLoss",
    "NumberValueLoss",
    "ScalarHead",
    "head_from_config",
    "head_from_schema",
]
