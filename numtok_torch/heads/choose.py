"""Heads that read numbers from hidden states, and the head that fits a file.

In: hidden states, float (n, d_model), and a stream of targets; out: a loss, or numbers on their own scale. See ``head_base`` for what all of
them hold to, ``mixture`` for :class:`MixtureHead` and ``fone_head`` for :class:`FoNEHead`.

=============  =============================  =============================================  ==================================
class          target                         loss, the mean over numbers                    confidence
=============  =============================  =============================================  ==================================
ScalarHead     number_scaled                  squared error                                  none
MixtureHead    number_values                  negative log-likelihood                        probability around the value
FoNEHead       number_digits                  cross-entropy, mean over digits                probability of all digits together
BitsHead       number_bits, either form       binary cross-entropy, mean over the 32 bits    probability of all bits together
=============  =============================  =============================================  ==================================
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError, SchemaError
from numtok.tokenizer.schema import read_metadata
from numtok_torch.embeddings.bits import as_bits, values_of_words, words_of_bits
from numtok_torch.embeddings.choose import options_of
from numtok_torch.heads.base import NumberHead, NumberPrediction, mean, moved, one_hidden_layer, run, unscaled
from numtok_torch.heads.fone import FoNEHead
from numtok_torch.heads.mixture import MixtureHead

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


class ScalarHead(NumberHead):
    """One scaled value from one hidden layer, trained with the squared error (xVal: Golkar et al. 2023, section 2).

    Args:
        d_model: dimension of the hidden states.
        hidden: width of the hidden layer; None for ``d_model``.
        scale, log: those of the representation, which predictions are brought back from.

    Shape:
        - target: ``number_scaled``, (n,), float.
    """

    name = "scalar"
    target = "number_scaled"

    def __init__(self, d_model: int, hidden: int | None = None, scale: float = 1.0, log: bool = False) -> None:
        super().__init__(d_model, hidden=hidden, scale=scale, log=log)
        if not scale > 0:
            raise RepresentationError(f"scalar: scale={scale} must be positive")
        self.scale, self.log = scale, log
        self.network = one_hidden_layer(d_model, hidden, 1)

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        found = run(self.network, self.checked(hidden, target)).squeeze(-1)  # (n,)
        return mean((found - target.to(found.dtype)).square())

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        found = run(self.network, self.checked(hidden)).squeeze(-1)  # (...)
        return NumberPrediction(unscaled(found, self.scale, self.log), bounds=unscaled(moved(found), self.scale, self.log))


class BitsHead(NumberHead):
    """32 logits, one for each bit of the float32; decodes to the most probable pattern that is a finite number.

    Where all eight exponent bits come out as 1, which is infinite or NaN, the least sure of them is turned into 0: of all finite patterns that
    is the most probable.

    Args:
        d_model: dimension of the hidden states.
        hidden: width of a hidden layer; None for none.

    Shape:
        - target: ``number_bits``, (n, 32), or compact (n,), any integer.
    """

    name = "bits"
    target = "number_bits"

    def __init__(self, d_model: int, hidden: int | None = None) -> None:
        super().__init__(d_model, hidden=hidden)
        self.network = nn.Linear(d_model, 32) if hidden is None else one_hidden_layer(d_model, hidden, 32)

    def bit_logits(self, hidden: Tensor) -> Tensor:
        """(..., d_model) to float32 (..., 32), sign first."""
        return run(self.network, self.checked(hidden))

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        self.checked(hidden, target)
        logits = self.bit_logits(hidden)  # (n, 32)
        bits = as_bits(target, 1).to(logits.dtype)  # (n, 32)
        return mean(nn.functional.binary_cross_entropy_with_logits(logits, bits, reduction="none").mean(-1))

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        logits = self.bit_logits(hidden)  # (..., 32)
        exponent = logits[..., 1:9]  # (..., 8)
        weakest = nn.functional.one_hot(exponent.argmin(-1), 8).to(torch.bool)  # (..., 8)
        turned = (exponent > 0).all(-1, keepdim=True) & weakest  # (..., 8)
        bits = logits > 0  # (..., 32)
        bits[..., 1:9] &= ~turned
        probability = nn.functional.logsigmoid(torch.where(bits, logits, -logits)).sum(-1).exp()  # (...)
        stream = bits.to(torch.uint8)  # (..., 32)
        return NumberPrediction(values_of_words(words_of_bits(stream)).double(), {"number_bits": stream}, probability)


HEADS: dict[str, type[NumberHead]] = {kind.name: kind for kind in (ScalarHead, MixtureHead, FoNEHead, BitsHead)}
FITTING = {"xval": "scalar", "fone": "fone", "bits": "bits", "bins": "mixture", "logfourier": "mixture"}


def head_from_config(config: dict[str, Any], d_model: int) -> NumberHead:
    """The inverse of :meth:`NumberHead.config`; parameters start anew.

    Raises:
        RepresentationError: for an unknown name or option.
    """
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in config.items()}
    name = str(options.pop("name", None))
    if name not in HEADS:
        raise RepresentationError(f"unknown head {name!r}; choose from {', '.join(HEADS)}")
    if unknown := [key for key in options if key not in options_of(HEADS[name])]:
        raise RepresentationError(
            f"{name}: {HEADS[name].__name__} has no option {', '.join(unknown)}; it has {', '.join(options_of(HEADS[name]))}"
        )
    return HEADS[name](d_model, **options)


def head_from_schema(schema: pa.Schema, d_model: int, head: str | None = None, **options: Any) -> NumberHead:
    """The head for a file that numtok wrote.

    Args:
        schema: with numtok's metadata; dense or compact.
        d_model: dimension of the hidden states.
        head: which, by name; None for the one that fits the first representation that has one: xval a :class:`ScalarHead`, fone a
            :class:`FoNEHead`, bits a :class:`BitsHead`, bins and logfourier a :class:`MixtureHead` in asinh space.
        options: of the head, beside those that the representation gives.

    Raises:
        SchemaError: if the data are not numtok's, or have no target for such a head.
        RepresentationError: for an unknown head or option.
    """
    described = {one["name"]: one for one in read_metadata(schema)["numbers"]}
    if head is None:
        head = next((FITTING[name] for name in described if name in FITTING), None)
        if head is None:
            raise SchemaError("the numbers of this data are spelled out in tokens: the model's own head predicts them, see NumberTokenLoss")
    given: dict[str, Any] = {}
    if head == "mixture":
        if "xval" in described and not described["xval"].get("log"):
            given = {"scale": described["xval"]["scale"]}
        elif {"bins", "logfourier", "xval"} & set(described):
            given = {"space": "asinh", "scale": 1 / described["bins"]["low"] if "bins" in described else 1.0, "spread": 20.0}
    elif head in HEADS:
        name = next(name for name, fitting in FITTING.items() if fitting == head)
        if name not in described:
            raise SchemaError(f"the data have {', '.join(described)}; a {HEADS[head].__name__} needs the stream of {name} as its target")
        given = {key: value for key, value in described[name].items() if key in options_of(HEADS[head])}
    return head_from_config({"name": head, **given, **options}, d_model)
