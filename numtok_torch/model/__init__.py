"""The model: an embedding in front of any transformer, and a head behind it; how it is trained,
saved, and put around adapters.

May import :mod:`numtok_torch.data`, :mod:`numtok_torch.embeddings` and :mod:`numtok_torch.heads`.
It does not generate: that is :mod:`numtok_torch.generation`, which knows this room, and not the
other way round.
"""

from numtok_torch.model.backbone import ModelError, PlainBackbone
from numtok_torch.model.model import NumberModel
from numtok_torch.model.objective import NumberModelOutput
from numtok_torch.model.seq2seq import Seq2SeqNumberCollator
from numtok_torch.model.xval_gpt2 import XVAL_MASKING, remove_biases_, xval_gpt2, xval_init_

__all__ = [
    "XVAL_MASKING",
    "ModelError",
    "NumberModel",
    "NumberModelOutput",
    "PlainBackbone",
    "Seq2SeqNumberCollator",
    "remove_biases_",
    "xval_gpt2",
    "xval_init_",
]
