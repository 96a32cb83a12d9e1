"""Torch layers for the tensors that numtok writes: batches, embeddings, heads and losses around any
transformer.
"""

from numtok.errors import MissingDependencyError
from numtok.number_format.grounded_processor import GroundedLogitsProcessor
from numtok.tokenizer.generated_numbers import PlaceTracker

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    raise MissingDependencyError(
        "numtok_torch needs PyTorch and safetensors; install them with: pip install 'numtok[torch]'"
    ) from error

from numtok_torch.choose import (
    embedding_from_config,
    embedding_from_schema,
    head_from_config,
    head_from_schema,
)
from numtok_torch.data.answers import answers_only
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.dataset import IterableNumberDataset, NumberDataset
from numtok_torch.embeddings.base import NumberEmbedding, SumEmbedding
from numtok_torch.embeddings.bins import ExponentBinsEmbedding, QuantileBinsEmbedding
from numtok_torch.embeddings.float_bits import FloatBitsEmbedding
from numtok_torch.embeddings.fone import FoNEDigitEmbedding, FoNEEmbedding
from numtok_torch.embeddings.fone_rows import start_as_fone
from numtok_torch.embeddings.log_fourier import LogFourierEmbedding
from numtok_torch.embeddings.place_values import PlaceValueEmbedding
from numtok_torch.embeddings.xval import XValEmbedding
from numtok_torch.export.onnx import to_onnx
from numtok_torch.export.xval_gpt2 import XVAL_MASKING, xval_gpt2
from numtok_torch.generation.distribution import NumberDistribution, number_distribution
from numtok_torch.generation.estimate import Estimate
from numtok_torch.generation.generate_texts import Generated, generate
from numtok_torch.generation.well_formed import NumberLogitsProcessor
from numtok_torch.heads.base import NumberHead, NumberPrediction
from numtok_torch.heads.bits import BitsHead
from numtok_torch.heads.fone import FoNEHead
from numtok_torch.heads.fourier import FourierHead
from numtok_torch.heads.losses import (
    CrossEntropyWith,
    DigitEntropyLoss,
    NumberTokenLoss,
    NumberValueLoss,
)
from numtok_torch.heads.mixture import MixtureHead
from numtok_torch.heads.quantiles import QuantileHead
from numtok_torch.heads.scalar import ScalarHead
from numtok_torch.model.backbone import ModelError, PlainBackbone
from numtok_torch.model.model import NumberModel
from numtok_torch.model.number_rows import add_number_rows
from numtok_torch.model.objective import NumberModelOutput
from numtok_torch.model.seq2seq import Seq2SeqNumberCollator

__all__ = [
    "XVAL_MASKING",
    "BitsHead",
    "CrossEntropyWith",
    "DigitEntropyLoss",
    "Estimate",
    "ExponentBinsEmbedding",
    "FloatBitsEmbedding",
    "FoNEDigitEmbedding",
    "FoNEEmbedding",
    "FoNEHead",
    "FourierHead",
    "Generated",
    "GroundedLogitsProcessor",
    "IterableNumberDataset",
    "LogFourierEmbedding",
    "MixtureHead",
    "ModelError",
    "NumberCollator",
    "NumberDataset",
    "NumberDistribution",
    "NumberEmbedding",
    "NumberHead",
    "NumberLogitsProcessor",
    "NumberModel",
    "NumberModelOutput",
    "NumberPrediction",
    "NumberTokenLoss",
    "NumberValueLoss",
    "PlaceTracker",
    "PlaceValueEmbedding",
    "PlainBackbone",
    "QuantileBinsEmbedding",
    "QuantileHead",
    "ScalarHead",
    "Seq2SeqNumberCollator",
    "SumEmbedding",
    "XValEmbedding",
    "add_number_rows",
    "answers_only",
    "embedding_from_config",
    "embedding_from_schema",
    "generate",
    "head_from_config",
    "head_from_schema",
    "number_distribution",
    "start_as_fone",
    "to_onnx",
    "xval_gpt2",
]
