"""The streams of a batch, as ``NumberModel.forward`` takes them: all that the representations
declare, so that a new one needs no edit.

A Trainer drops the columns of a data set that the signature of ``forward`` does not name, before
the collator sees them. So the signature names every stream, and ``number_index``, without which the
collator cannot tell whose the values in the rows of a file are. It names no ``S_labels``: the
Trainer would ask for all of them when it evaluates.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from numtok.representations import streams
from numtok.representations.columns import NUMBER_INDEX, NUMBER_MASK, SEQ_LENGTHS
from numtok_torch.model.backbone import ModelError

LABELS, LABELS_MASK = "_labels", "number_labels_mask"
# which the collator needs
_OF_FILES = {NUMBER_INDEX.name: "number", SEQ_LENGTHS.name: "piece of a document"}


def name_streams(forward: Callable[..., Any]) -> None:
    """Name the streams there are by now in the signature of ``forward``."""
    *own, rest = inspect.signature(inspect.unwrap(forward)).parameters.values()
    kind = inspect.Parameter.KEYWORD_ONLY
    named = [
        inspect.Parameter(name, kind, default=None, annotation="Tensor | None")
        for name in (NUMBER_MASK.name, *streams(), *_OF_FILES)
    ]
    own = [parameter for parameter in own if parameter.kind is not kind]  # named before
    forward.__signature__ = inspect.Signature([*own, *named, rest])  # type: ignore[attr-defined]  # what inspect looks for


def pop_streams(kwargs: dict[str, Any]) -> dict[str, Tensor | None]:
    """Take the streams, and the labels of streams, out of the arguments. ModelError for rows of a
    file that nobody made a batch of.
    """
    for name, counted in _OF_FILES.items():
        if kwargs.pop(name, None) is not None:
            raise ModelError(
                f"{name} is a column of a file, which has one value per {counted}; batch its rows"
                " with NumberCollator"
            )
    known = {NUMBER_MASK.name, LABELS_MASK, *streams()}
    taken = [name for name in kwargs if name in known or name.endswith(LABELS)]
    return {name: kwargs.pop(name) for name in taken}


def fills() -> dict[str, float]:
    """What stands in each stream where it has nothing to say."""
    declared = {name: forms[0].fill for name, forms in streams().items()}
    return {NUMBER_MASK.name: NUMBER_MASK.fill, **declared}


def filled(stream: Tensor, fill: float) -> Tensor:
    """One column of the filler, (batch, 1, ...), like the stream (batch, seq, ...)."""
    return stream.new_full((len(stream), 1, *stream.shape[2:]), fill)


def shifted(stream: Tensor, fill: float) -> Tensor:
    """A stream (batch, seq, ...) one place to the right, with the filler in front."""
    return torch.cat([filled(stream, fill), stream], 1)[:, : stream.shape[1]]
