"""Embedding layers for the tensors that numtok writes: one class for each representation, and the
layer that fits a file.

In: word vectors, float (batch, seq, d_model), and a batch of streams; out: the same shape and
    dtype, with the numbers put in, beside words in one sequence and any number of them. See
    ``base`` for what all of them hold to; each class has a file named after its representation.

=======================  ============================  ==================================================================
class                    reads                         word vector e of a number becomes
=======================  ============================  ==================================================================
XValEmbedding            number_scaled                 e · x
FloatBitsEmbedding       number_bits, either form      R(bits), a small ReLU network; e + bits as -1 and 1
FoNEEmbedding            number_digits or _fourier     e + features, padded with zeros or through a linear map
ExponentBinsEmbedding    number_bin                    e + the bin's vector
LogFourierEmbedding      number_log_fourier            e + a linear map of the features
PlaceValueEmbedding      place_value                   e + the vector of the place, for each digit or group of digits
FoNEDigitEmbedding       input_ids                     e + φ(digit, 10), or φ(digit, 10), for each digit
SumEmbedding             those of its parts            e + what each of them adds
=======================  ============================  ==================================================================

``zero_init=True`` gives each a variant that leaves a pretrained model's output as it is before the
first step, in which every layer learns.
No layer has a buffer of floats: ``.half()``, ``.to(torch.bfloat16)`` and FSDP round parameters,
    never constants.
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
    Representation,
    XVal,
    from_dict,
    register,
)
from numtok.representations.registry import layer_of, present_name
from numtok.tokenizer.schema import read_metadata
from numtok_torch.embeddings.base import NumberEmbedding, SumEmbedding, layers, option_names
from numtok_torch.embeddings.exponent_bins import ExponentBinsEmbedding, ExponentEmbedding
from numtok_torch.embeddings.float_bits import FloatBitsEmbedding
from numtok_torch.embeddings.fone import FoNEDigitEmbedding, FoNEEmbedding
from numtok_torch.embeddings.log_fourier import LogFourierEmbedding
from numtok_torch.embeddings.place_values import PlaceTracker, PlaceValueEmbedding
from numtok_torch.embeddings.xval import XValEmbedding

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


for representation, kind in (
    (XVal, XValEmbedding),
    (FloatBits, FloatBitsEmbedding),
    (FoNE, FoNEEmbedding),
    (ExponentBins, ExponentBinsEmbedding),
    (LogFourier, LogFourierEmbedding),
    (PlaceValue, PlaceValueEmbedding),
    (Digits, PlaceValueEmbedding),
):
    register(representation, embedding=kind)


def _embeddings() -> dict[str, type[NumberEmbedding]]:
    """All layers by their names."""
    return layers("embedding") | {FoNEDigitEmbedding.name: FoNEDigitEmbedding}


def embedding_from_config(config: dict[str, Any], d_model: int) -> NumberEmbedding:
    """The inverse of :meth:`NumberEmbedding.config`; parameters start anew.

    Raises:
        RepresentationError: for an unknown name or option.
    """
    options = dict(config)
    name = present_name(str(options.pop("name", None)))
    if name == SumEmbedding.name:
        return SumEmbedding(
            [embedding_from_config(part, d_model) for part in options["embeddings"]]
        )
    kinds = _embeddings()
    if name not in kinds:
        raise RepresentationError(
            f"unknown embedding {name!r}; choose from {', '.join([*kinds, SumEmbedding.name])}"
        )
    options = {
        key: tuple(value) if isinstance(value, list) else value for key, value in options.items()
    }
    try:
        return kinds[name](d_model, **options)
    except TypeError as error:
        raise RepresentationError(
            f"{name}: these options do not fit {kinds[name].__name__}: {', '.join(options)}"
        ) from error


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
    configs = [
        config
        for described in read_metadata(schema)["numbers"]
        if (config := _config_of(from_dict(described))) is not None
    ]
    if not configs:
        raise SchemaError(
            "the numbers of this data are spelled out in tokens alone: the model's own embedding is"
            " all they need"
        )
    known = [option_names(_embeddings()[config["name"]]) for config in configs]
    if unused := [name for name in options if not any(name in names for names in known)]:
        raise RepresentationError(
            f"none of {', '.join(config['name'] for config in configs)} has the option"
            f" {', '.join(unused)}"
        )
    if "max_place" not in options:
        for config in configs:
            if "max_place" in config:
                config["max_place"] += options.get("max_offset", 0)  # no offset merges places
    chosen = [
        embedding_from_config(
            config | {key: value for key, value in options.items() if key in names}, d_model
        )
        for config, names in zip(configs, known, strict=True)
    ]
    return chosen[0] if len(chosen) == 1 else SumEmbedding(chosen)


def _config_of(representation: Representation) -> dict[str, Any] | None:
    """The config of the layer that reads the columns of a representation; None if it has none.

    Raises:
        RepresentationError: if its numbers would not be seen without one.
    """
    if not representation.columns():
        return None
    kind: type[NumberEmbedding] | None = layer_of(representation.name, "embedding")
    if kind is None:
        raise RepresentationError(
            f"{representation.name} has no embedding that reads its columns; register one:"
            f" numtok.representations.register({type(representation).__name__}, embedding=...)"
        )
    return {"name": kind.name, **kind.options_for(representation)}
