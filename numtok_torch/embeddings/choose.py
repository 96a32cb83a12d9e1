"""The layer for the tensors of each representation, and the layer that fits a file. No layer has a
buffer of floats: ``.half()``, ``.to(torch.bfloat16)`` and FSDP round parameters, never constants.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from numtok.errors import RepresentationError, SchemaError
from numtok.representations import (
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    QuantileBins,
    Representation,
    XVal,
    from_dict,
    register,
)
from numtok.representations.registry import layer_of
from numtok.tokenizer.schema import read_metadata
from numtok_torch.embeddings.base import (
    NumberEmbedding,
    SumEmbedding,
    from_config,
    layers,
    named,
    option_names,
)
from numtok_torch.embeddings.exponent_bins import ExponentBinsEmbedding
from numtok_torch.embeddings.float_bits import FloatBitsEmbedding
from numtok_torch.embeddings.fone import FoNEDigitEmbedding, FoNEEmbedding
from numtok_torch.embeddings.log_fourier import LogFourierEmbedding
from numtok_torch.embeddings.place_values import PlaceValueEmbedding
from numtok_torch.embeddings.quantile_bins import QuantileBinsEmbedding
from numtok_torch.embeddings.xval import XValEmbedding

for representation, kind in (
    (XVal, XValEmbedding),
    (FloatBits, FloatBitsEmbedding),
    (FoNE, FoNEEmbedding),
    (ExponentBins, ExponentBinsEmbedding),
    (QuantileBins, QuantileBinsEmbedding),
    (LogFourier, LogFourierEmbedding),
    (PlaceValue, PlaceValueEmbedding),
    (Digits, PlaceValueEmbedding),
):
    register(representation, embedding=kind)


def embedding_from_config(config: dict[str, Any], d_model: int) -> NumberEmbedding:
    """The inverse of :meth:`NumberEmbedding.config`; parameters start anew.

    Raises:
        RepresentationError: for an unknown name or option.
    """
    name = str(config.get("name"))
    if name == SumEmbedding.name:
        return SumEmbedding([embedding_from_config(part, d_model) for part in config["embeddings"]])
    known: dict[str, type[NumberEmbedding]] = layers("embedding")
    known |= {FoNEDigitEmbedding.name: FoNEDigitEmbedding}
    kind = named("embedding", name, known)
    if "amplitude" in option_names(kind):  # saved before there was one
        config = {"amplitude": 1.0} | config
    return from_config(kind, config, d_model)


def embedding_from_schema(schema: pa.Schema, d_model: int, **options: Any) -> NumberEmbedding:
    """The layer for a file that numtok wrote: one for each of its representations, and their sum if
    there are several.

    Args:
        schema: with numtok's metadata; dense or compact.
        d_model: dimension of the word vectors.
        options: such as ``zero_init=True`` or ``projection="linear"``, for every layer that has
            them. Digits with a place are shown in training as the file's order has them when
            written; ``written=None`` shows their true places.

    Raises:
        SchemaError: if the data are not numtok's, or their numbers are tokens only, which need no
            layer.
        RepresentationError: for an option that none of the layers has.
    """
    shown = [from_dict(described) for described in read_metadata(schema)["numbers"]]
    kinds = [(_kind_for(one), one) for one in shown if one.columns()]
    if not kinds:
        raise SchemaError(
            "the numbers of this data are spelled out in tokens alone: the model's own embedding is"
            " all they need"
        )
    known = [option_names(kind) for kind, _ in kinds]
    if unused := [name for name in options if not any(name in names for names in known)]:
        raise RepresentationError(
            f"none of {', '.join(kind.name for kind, _ in kinds)} has the option"
            f" {', '.join(unused)}"
        )
    chosen = []
    for (kind, one), names in zip(kinds, known, strict=True):
        own = kind.options_for(one) | {key: given for key, given in options.items() if key in names}
        if "max_place" in own and "max_place" not in options:
            own["max_place"] += options.get("max_offset", 0)  # no offset merges places
        chosen.append(from_config(kind, own, d_model))
    return chosen[0] if len(chosen) == 1 else SumEmbedding(chosen)


def _kind_for(representation: Representation) -> type[NumberEmbedding]:
    """The layer that reads a representation's columns; RepresentationError without one."""
    kind: type[NumberEmbedding] | None = layer_of(representation.name, "embedding")
    if kind is None:
        raise RepresentationError(
            f"{representation.name} has no embedding that reads its columns; register one:"
            f" numtok.representations.register({type(representation).__name__}, embedding=...)"
        )
    return kind
