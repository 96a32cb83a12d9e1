"""The head for the tensors of each representation, and the head that fits a file."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from numtok.errors import SchemaError
from numtok.representations import (
    REPRESENTATIONS,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    QuantileBins,
    SingleToken,
    XVal,
    from_dict,
    register,
)
from numtok.representations.columns import NUMBER_VALUE
from numtok.representations.registry import layer_of
from numtok.tokenizer.schema import read_metadata
from numtok_torch.embeddings.base import from_config, layers, named
from numtok_torch.heads.base import NumberHead
from numtok_torch.heads.bits import BitsHead
from numtok_torch.heads.fone import FoNEHead
from numtok_torch.heads.fourier import FourierHead
from numtok_torch.heads.mixture import MixtureHead
from numtok_torch.heads.quantiles import QuantileHead
from numtok_torch.heads.scalar import ScalarHead

for representation, kind in (
    (XVal, ScalarHead),
    (FloatBits, BitsHead),
    (FoNE, FoNEHead),
    (ExponentBins, MixtureHead),
    (QuantileBins, MixtureHead),
    (LogFourier, MixtureHead),
):
    register(representation, head=kind)


def _heads() -> dict[str, type[NumberHead]]:
    """All by name: those of representations, and those that predict the value of any."""
    return layers("head") | {kind.name: kind for kind in (QuantileHead, FourierHead)}


def head_from_config(config: dict[str, Any], d_model: int) -> NumberHead:
    """The inverse of :meth:`NumberHead.config`; parameters start anew.

    Raises:
        RepresentationError: for an unknown name or option.
    """
    return from_config(named("head", str(config.get("name")), _heads()), config, d_model)


def head_from_schema(
    schema: pa.Schema, d_model: int, head: str | None = None, **options: Any
) -> NumberHead:
    """The head for a file that numtok wrote.

    Args:
        schema: with numtok's metadata; dense or compact.
        d_model: dimension of the hidden states.
        head: which, by name; None for that of the first representation that has one: xval a
            :class:`ScalarHead`, fone a :class:`FoNEHead`, bits a :class:`BitsHead`, bins of either
            kind and logfourier a :class:`MixtureHead`, or the one that was registered. What the
            representation gives it says the head's ``options_for``, and the head when printed.
        options: of the head, beside those that the representation gives.

    Raises:
        SchemaError: if the data are not numtok's, or have no target for such a head.
        RepresentationError: for an unknown head or option.
    """
    shown = [from_dict(described) for described in read_metadata(schema)["numbers"]]
    own = [found for one in shown if (found := layer_of(one.name, "head"))]
    if head is None and not own and isinstance(shown[0], SingleToken):
        raise SchemaError(
            f"{shown[0].name} has no head; name one, head=..., or register it:"
            f" numtok.representations.register({type(shown[0]).__name__}, head=...)"
        )
    if head is None and not own:
        raise SchemaError(
            "the numbers of this data are spelled out in tokens: the model's own head predicts"
            " them, see NumberTokenLoss"
        )
    kind: type[NumberHead] = own[0] if head is None else named("head", head, _heads())
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
    given = next((given for one in fitting if (given := kind.options_for(one))), {})
    return from_config(kind, given | options, d_model)
