"""Vectors put into word vectors, where the numbers are.

On a CPU this costs what the numbers cost: the stream's rows are picked out, and their vectors go
    into one copy of the word vectors. On another device, and in a graph that ``torch.compile``
    makes, every token is computed: to know how many numbers there are is to wait for the device,
    which would stand still meanwhile, and no shape in an unbroken graph can hang on it. Values and
    gradients are the same either way.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

NOTHING = -0.0  # added to any float it leaves its bits, where 0.0 makes 0.0 of -0.0


def put(
    into: Tensor, at: Tensor, stream: Tensor, embed: Callable[[Tensor], Tensor], replace: bool
) -> Tensor:
    """``into``, float (batch, seq, d_model), with vectors added to some of its own, or in their
    place; the argument is not changed.

    Args:
        into: what they are put into; all other vectors stay bit for bit.
        at: where, bool (batch, seq).
        stream: what they are made from, (batch, seq, ...); what stands in it elsewhere does not
            matter.
        embed: from the stream's rows, (n, ...), to vectors, (n, d_model), of any float dtype.
        replace: whether they take the place of what is there.
    """
    rows = stream.flatten(0, 1)  # (batch * seq, ...)
    if into.device.type == "cpu" and not torch.compiler.is_compiling():
        chosen = at.flatten().nonzero().squeeze(1)  # (n,)
        vectors, flat = (
            embed(rows[chosen]).to(into.dtype),
            into.flatten(0, 1),
        )  # (n, d_model), (batch * seq, d_model)
        changed = (
            flat.index_copy(0, chosen, vectors) if replace else flat.index_add(0, chosen, vectors)
        )
        return changed.view_as(into)
    elsewhere = ~at.flatten().view(-1, *[1] * (rows.dim() - 1))  # (batch * seq, 1, ...)
    vectors = embed(rows.masked_fill(elsewhere, 0)).to(into.dtype).view_as(into)
    if replace:
        return torch.where(at.unsqueeze(-1), vectors, into)
    return into + torch.where(at.unsqueeze(-1), vectors, NOTHING)
