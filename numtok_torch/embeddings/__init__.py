"""Embedding layers: word vectors and number streams in, word vectors with numbers out.

May import numtok only.
"""

from numtok_torch.embeddings.choose import (
    ExponentBinsEmbedding,
    ExponentEmbedding,
    FloatBitsEmbedding,
    FoNEDigitEmbedding,
    FoNEEmbedding,
    LogFourierEmbedding,
    NumberEmbedding,
    PlaceTracker,
    PlaceValueEmbedding,
    SumEmbedding,
    XValEmbedding,
    embedding_from_config,
    embedding_from_schema,
)

__all__ = [
    "ExponentBinsEmbedding",
    "ExponentEmbedding",
    "FloatBitsEmbedding",
    "FoNEDigitEmbedding",
    "FoNEEmbedding",
    "LogFourierEmbedding",
    "NumberEmbedding",
    "PlaceTracker",
    "PlaceValueEmbedding",
    "SumEmbedding",
    "XValEmbedding",
    "embedding_from_config",
    "embedding_from_schema",
]
