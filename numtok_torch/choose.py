"""The layer and the head for the tensors of each representation, by name or by what a file holds.
No layer has a buffer of floats: ``.half()``, ``.to(torch.bfloat16)`` and FSDP round parameters,
never constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from numtok.errors import RepresentationError, SchemaError
from numtok.representations import (
    REPRESENTATIONS,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    QuantileBins,
    Representation,
    SingleToken,
    XVal,
    from_dict,
    register,
)
from numtok.representations.columns import NUMBER_VALUE
from numtok.representations.registry import layer_of
from numtok.tokenizer.schema import read_metadata
from numtok_torch.data.tokens import identity
from numtok_torch.embeddings.base import NumberEmbedding, SumEmbedding, from_config, option_names
from numtok_torch.embeddings.bins import ExponentBinsEmbedding, QuantileBinsEmbedding
from numtok_torch.embeddings.float_bits import FloatBitsEmbedding
from numtok_torch.embeddings.fone import FoNEDigitEmbedding, FoNEEmbedding
from numtok_torch.embeddings.log_fourier import LogFourierEmbedding
from numtok_torch.embeddings.place_values import PlaceValueEmbedding
from numtok_torch.embeddings.xval import XValEmbedding
from numtok_torch.heads.base import NumberHead
from numtok_torch.heads.bits import BitsHead
from numtok_torch.heads.fone import FoNEHead
from numtok_torch.heads.fourier import FourierHead
from numtok_torch.heads.mixture import MixtureHead
from numtok_torch.heads.quantiles import QuantileHead
from numtok_torch.heads.scalar import ScalarHead

for representation, embedding, head in (
    (XVal, XValEmbedding, ScalarHead),
    (FloatBits, FloatBitsEmbedding, BitsHead),
    (FoNE, FoNEEmbedding, FoNEHead),
    (ExponentBins, ExponentBinsEmbedding, MixtureHead),
    (QuantileBins, QuantileBinsEmbedding, MixtureHead),
    (LogFourier, LogFourierEmbedding, MixtureHead),
    (PlaceValue, PlaceValueEmbedding, None),
    (Digits, PlaceValueEmbedding, None),
):
    register(representation, embedding=embedding, head=head)

# of no representation: on digit tokens, and predicting the value of any
MORE: dict[str, Sequence[Any]] = {
    "embedding": (FoNEDigitEmbedding,),
    "head": (QuantileHead, FourierHead),
}


def named(part: str, name: Any) -> Any:
    """Return the class of an ``"embedding"`` or a ``"head"`` by its own name. RepresentationError
    if there is none.
    """
    kinds = [layer_of(one, part) for one in REPRESENTATIONS]
    kind_of = {kind.name: kind for kind in (*kinds, *MORE[part]) if kind is not None}
    if name not in kind_of:
        raise RepresentationError(f"unknown {part} {name!r}; choose from {', '.join(kind_of)}")
    return kind_of[name]


def embedding_from_config(config: dict[str, Any], d_model: int) -> NumberEmbedding:
    """Make an embedding from its :meth:`NumberEmbedding.config`; its parameters start anew.

    Raises:
        RepresentationError: for an unknown name or option.

    Example:
        >>> from numtok_torch import embedding_from_config
        >>> embedding_from_config({"name": "exponent_bins", "n": 50}, d_model=8).vectors
        Embedding(51, 8)
    """
    if config.get("name") == SumEmbedding.name:
        return SumEmbedding([embedding_from_config(part, d_model) for part in config["embeddings"]])
    kind: type[NumberEmbedding] = named("embedding", config.get("name"))
    return from_config(kind, config, d_model)


def head_from_config(config: dict[str, Any], d_model: int) -> NumberHead:
    """Make a head from its :meth:`NumberHead.config`; its parameters start anew.

    Raises:
        RepresentationError: for an unknown name or option.

    Example:
        >>> from numtok_torch import head_from_config
        >>> head_from_config({"name": "quantiles", "quantiles": [0.1, 0.5, 0.9]}, d_model=8).network
        Linear(in_features=8, out_features=3, bias=True)
    """
    kind: type[NumberHead] = named("head", config.get("name"))
    return from_config(kind, config, d_model)


def embedding_from_schema(
    schema: pa.Schema, d_model: int, *, nonzero: bool = False, **options: Any
) -> NumberEmbedding:
    """Make the embedding for a file that numtok wrote: one for each of its representations, and
    their sum if there are several.

    Args:
        schema: with numtok's metadata; dense or compact.
        d_model: dimension of the word vectors.
        nonzero: let no number have the zero vector, which 0 has in the published forms of xval and
            bits: their layers get a bias, unless an option does as well. For models without
            position vectors, such as Llama (:class:`~numtok_torch.XValEmbedding`).
        options: such as ``zero_init=True`` or ``projection="linear"``, for every layer that has
            them. Digits with a place are shown in training as the file's order has them when
            written; ``written=None`` shows their true places.

    Raises:
        SchemaError: if the data are not numtok's, or their numbers are tokens only, which need no
            layer.
        RepresentationError: for an option that none of the layers has.

    Example:
        >>> import numtok
        >>> schema = numtok.Tokenizer.from_pretrained(numbers="bits").batch_schema()
        >>> type(embedding_from_schema(schema, 64)).__name__
        'FloatBitsEmbedding'
    """
    kinds = [(_embedding_of(one), one) for one in representations_of(schema) if one.columns()]
    if not kinds:
        raise SchemaError(
            "the numbers of this data are spelled out in tokens alone: the model's own embedding is"
            " all they need"
        )
    accepted = {name for kind, _ in kinds for name in option_names(kind)}
    if unused := [name for name in options if name not in accepted]:
        raise RepresentationError(
            f"none of {', '.join(kind.name for kind, _ in kinds)} has the option"
            f" {', '.join(unused)}"
        )
    chosen = []
    for kind, one in kinds:
        applicable = {key: value for key, value in options.items() if key in option_names(kind)}
        layer_options = kind.options_for(one) | applicable
        if "max_place" in layer_options and "max_place" not in options:
            layer_options["max_place"] += options.get("max_offset", 0)  # no offset merges places
        layer = from_config(kind, layer_options, d_model)
        if nonzero and layer.may_be_zero and "bias" not in options:
            layer = from_config(kind, layer_options | {"bias": True}, d_model)
        chosen.append(layer)
    layer = chosen[0] if len(chosen) == 1 else SumEmbedding(chosen)
    layer.tokenizer_identity = identity(read_metadata(schema))
    return layer


def head_from_schema(
    schema: pa.Schema, d_model: int, head: str | None = None, **options: Any
) -> NumberHead:
    """Make the head for a file that numtok wrote.

    Args:
        schema: with numtok's metadata; dense or compact.
        d_model: dimension of the hidden states.
        head: ``"scalar"``, ``"fone"``, ``"bits"``, ``"mixture"``, ``"quantiles"``, ``"fourier"``,
            or the ``name`` of a head that was registered. None for the head of the
            first representation that has one: xval a :class:`ScalarHead`, fone a
            :class:`FoNEHead`, bits a :class:`BitsHead`, bins of either kind and logfourier a
            :class:`MixtureHead`. What the representation gives it says the head's
            ``options_for``, and the head when printed.
        options: of the head, beside those that the representation gives.

    Raises:
        SchemaError: if the data are not numtok's, or have no target for such a head.
        RepresentationError: for an unknown head or option.

    Example:
        >>> import numtok
        >>> schema = numtok.Tokenizer.from_pretrained(numbers="xval").batch_schema()
        >>> [type(head_from_schema(schema, 64, head)).__name__ for head in (None, "mixture")]
        ['ScalarHead', 'MixtureHead']
    """
    shown = representations_of(schema)
    own_heads = [found for one in shown if (found := layer_of(one.name, "head"))]
    if head is None and not own_heads and isinstance(shown[0], SingleToken):
        raise SchemaError(
            f"{shown[0].name} has no head; name one, head=..., or register it:"
            f" numtok.representations.register({type(shown[0]).__name__}, head=...)"
        )
    if head is None and not own_heads:
        raise SchemaError(
            "the numbers of this data are spelled out in tokens: the model's own head predicts"
            " them, see NumberTokenLoss"
        )
    kind: type[NumberHead] = own_heads[0] if head is None else named("head", head)
    fitting = [
        one
        for one in shown
        if kind.target in (NUMBER_VALUE.name, *one.columns()) or layer_of(one.name, "head") is kind
    ]
    if not fitting:
        names = [name for name in REPRESENTATIONS if layer_of(name, "head") is kind]
        raise SchemaError(
            f"the data have {', '.join(one.name for one in shown)}; a {kind.__name__} needs the"
            f" stream of {' or '.join(names)} as its target"
        )
    from_data = next((found for one in fitting if (found := kind.options_for(one))), {})
    layer = from_config(kind, from_data | options, d_model)
    layer.tokenizer_identity = identity(read_metadata(schema))
    return layer


def representations_of(schema: pa.Schema) -> list[Representation]:
    """Return the representations of a file that numtok wrote, in their order."""
    return [from_dict(described) for described in read_metadata(schema)["numbers"]]


def _embedding_of(representation: Representation) -> type[NumberEmbedding]:
    """Return the layer that reads a representation's columns; RepresentationError without one."""
    kind: type[NumberEmbedding] | None = layer_of(representation.name, "embedding")
    if kind is None:
        raise RepresentationError(
            f"{representation.name} has no embedding that reads its columns; register one:"
            f" numtok.representations.register({type(representation).__name__}, embedding=...)"
        )
    return kind
