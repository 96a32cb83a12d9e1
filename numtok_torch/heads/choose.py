"""Heads that read numbers from hidden states, and the head that fits a file.

In: hidden states, float (n, d_model), and a stream of targets; out: a loss, or numbers on their own
scale. See ``base`` for what all of them hold to; each class has a file of its own.

=============  =============================  =============================================  ==================================
class          target                         loss, the mean over numbers                    confidence
=============  =============================  =============================================  ==================================
ScalarHead     number_scaled                  squared error                                  none
MixtureHead    number_value                   negative log-likelihood                        probability around the value
FoNEHead       number_digits                  cross-entropy, mean over digits                probability of all digits together
BitsHead       number_bits, either form       binary cross-entropy, mean over the bits       probability of all bits together
=============  =============================  =============================================  ==================================
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from numtok.errors import RepresentationError, SchemaError
from numtok.tokenizer.schema import read_metadata
from numtok_torch.embeddings.base import option_names
from numtok_torch.heads.base import NumberHead, NumberPrediction
from numtok_torch.heads.bits import BitsHead
from numtok_torch.heads.fone import FoNEHead
from numtok_torch.heads.mixture import MixtureHead
from numtok_torch.heads.scalar import ScalarHead

__all__ = [
    "HEADS",
    "BitsHead",
    "FoNEHead",
    "MixtureHead",
    "NumberHead",
    "NumberPrediction",
    "ScalarHead",
    "head_from_config",
    "head_from_schema",
]


HEADS: dict[str, type[NumberHead]] = {
    kind.name: kind for kind in (ScalarHead, MixtureHead, FoNEHead, BitsHead)
}
FITTING = {
    "xval": "scalar",
    "fone": "fone",
    "bits": "bits",
    "exponent_bins": "mixture",
    "logfourier": "mixture",
}


def head_from_config(config: dict[str, Any], d_model: int) -> NumberHead:
    """The inverse of :meth:`NumberHead.config`; parameters start anew.

    Raises:
        RepresentationError: for an unknown name or option.
    """
    options = {
        key: tuple(value) if isinstance(value, list) else value for key, value in config.items()
    }
    name = str(options.pop("name", None))
    if name not in HEADS:
        raise RepresentationError(f"unknown head {name!r}; choose from {', '.join(HEADS)}")
    if unknown := [key for key in options if key not in option_names(HEADS[name])]:
        raise RepresentationError(
            f"{name}: {HEADS[name].__name__} has no option {', '.join(unknown)}; it has"
            f" {', '.join(option_names(HEADS[name]))}"
        )
    return HEADS[name](d_model, **options)


def head_from_schema(
    schema: pa.Schema, d_model: int, head: str | None = None, **options: Any
) -> NumberHead:
    """The head for a file that numtok wrote.

    Args:
        schema: with numtok's metadata; dense or compact.
        d_model: dimension of the hidden states.
        head: which, by name; None for the one that fits the first representation that has one: xval
            a :class:`ScalarHead`, fone a :class:`FoNEHead`, bits a :class:`BitsHead`, exponent_bins
            and logfourier a :class:`MixtureHead` in asinh space.
        options: of the head, beside those that the representation gives.

    Raises:
        SchemaError: if the data are not numtok's, or have no target for such a head.
        RepresentationError: for an unknown head or option.
    """
    described = {
        representation["name"]: representation
        for representation in read_metadata(schema)["numbers"]
    }
    if head is None:
        head = next((FITTING[name] for name in described if name in FITTING), None)
        if head is None:
            raise SchemaError(
                "the numbers of this data are spelled out in tokens: the model's own head predicts"
                " them, see NumberTokenLoss"
            )
    given: dict[str, Any] = {}
    if head == "mixture":
        if "xval" in described and not described["xval"].get("log"):
            given = {"scale": described["xval"]["scale"]}
        elif {"exponent_bins", "logfourier", "xval"} & set(described):
            scale = 1 / described["exponent_bins"]["low"] if "exponent_bins" in described else 1.0
            given = {"space": "asinh", "scale": scale, "spread": 20.0}
    elif head in HEADS:
        name = next(name for name, fitting in FITTING.items() if fitting == head)
        if name not in described:
            raise SchemaError(
                f"the data have {', '.join(described)}; a {HEADS[head].__name__} needs the stream"
                f" of {name} as its target"
            )
        given = {
            key: value for key, value in described[name].items() if key in option_names(HEADS[head])
        }
    return head_from_config({"name": head, **given, **options}, d_model)
