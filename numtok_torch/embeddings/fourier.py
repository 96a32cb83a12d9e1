"""FoNE's features from digits and back, on the device: the torch side of
``numtok.representations.fone``.

In: digits, any integer tensor (..., d), least significant first. Out: features, float32 (..., f,
    2), cosine and sine of 2πx/T with the periods T ascending; with ``chunk``, (..., chunks, f, 2).
    Inverse: :func:`digits_of_features`, exact also through bfloat16. FoNE: Precise Single-Token
    Number Embeddings via Fourier Features (Zhou et al. 2025), definition 3.1.

There is no table of frequencies: a buffer would be rounded by ``.half()``, by
    ``.to(torch.bfloat16)`` or by FSDP, and a float of the whole number has too few digits. The
    fraction of a turn at each period is the one before it behind the next digit, divided by ten.
    That takes element-wise operations on float32 alone, which neither autocast nor TF32 touches.
    Features are within 1e-6 of their true value.

Shape:
    - digits: (..., d); features: (..., f, 2), f = d for base 10, and d + 1 more for each other
      base.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def features_of_digits(
    digits: Tensor, bases: Sequence[int] = (10,), chunk: int | None = None
) -> Tensor:
    """Digits (..., d) to features, float32 (..., f, 2) or (..., chunks, f, 2), of the same order as
    ``number_fourier``.
    """
    if chunk is not None:
        digits = by_chunk(digits, chunk)  # (..., chunks, chunk)
    width = digits.shape[-1]
    columns = list(digits.to(torch.int32).unbind(-1))  # d of (...)
    turns = {
        base: _turns(columns if base == 10 else _divided(columns, base), base) for base in bases
    }
    fractions = [
        turns[base][k] for k in range(width + 1) for base in bases if k < width or base < 10
    ]
    angle = 2 * math.pi * torch.stack(fractions, -1)  # (..., f)
    return torch.stack([angle.cos(), angle.sin()], -1)  # (..., f, 2)


def by_chunk(digits: Tensor, chunk: int) -> Tensor:
    """Digits (..., d) to (..., chunks, chunk), from the least significant on, filled up with zeros."""
    chunks = -(-digits.shape[-1] // chunk)
    filled: Tensor = torch.nn.functional.pad(
        digits, (0, chunks * chunk - digits.shape[-1])
    )  # (..., chunks * chunk)
    return filled.view(*filled.shape[:-1], chunks, chunk)  # (..., chunks, chunk)


def _turns(columns: Sequence[Tensor], base: int) -> list[Tensor]:
    """The fraction of a turn, -0.5 to 0.5, behind each slot: 0.d, then 0.ed, then 0.fed; errors of
    one are divided by ten in the next.
    """
    turn = torch.zeros_like(columns[0], dtype=torch.float32)
    turns, radix = [], float(base)
    for column in columns:
        turn = (turn + column) / radix
        turns.append(torch.where(turn > 0.5, turn - 1, turn))  # as float32 is finer near zero
        radix = 10.0
    return turns


def _divided(columns: Sequence[Tensor], base: int) -> list[Tensor]:
    """Digits of X = base * J + r as r, then the digits of J: one column more."""
    remainder = torch.zeros_like(columns[0])
    quotient = []
    for column in reversed(columns):
        remainder = remainder * 10 + column
        quotient.append(torch.div(remainder, base, rounding_mode="floor"))
        remainder = remainder % base
    return [remainder, *reversed(quotient)]


def digits_of_features(
    features: Tensor, n_digits: int, bases: Sequence[int] = (10,), chunk: int | None = None
) -> Tensor:
    """Features, float (..., f, 2) or (..., chunks, f, 2), to digits, uint8 (..., n_digits): the
    inverse, from the least significant up.

    Every phase may be off by up to a twentieth of a turn. The paper's head does not do this: it
    reads each digit by itself, which is wrong for features that the encoder made, as the digits
    below turn the phase further.
    """
    base = bases[-1]
    mine = features.to(torch.float32)[
        ..., len(bases) - 1 :: len(bases), :
    ]  # (..., slots, 2), those of the largest base
    turns = torch.atan2(mine[..., 1], mine[..., 0]) / (2 * math.pi)  # (..., slots)
    slots, below, radix = [], torch.zeros_like(turns[..., 0]), base
    for turn in turns.unbind(-1):
        slot = torch.remainder(torch.floor(turn * radix - below + 0.5), radix)
        slots.append(slot)
        below, radix = (below + slot) / radix, 10
    digits = torch.stack(
        slots if base == 10 else _multiplied(slots, base), -1
    )  # (..., width), or (..., chunks, width)
    if chunk is not None:
        digits = digits.flatten(-2)[..., :n_digits]  # (..., n_digits)
    return digits.to(torch.uint8)


def _multiplied(slots: Sequence[Tensor], base: int) -> list[Tensor]:
    """The inverse of :func:`_divided`."""
    carry, digits = slots[0], []
    for slot in slots[1:]:
        carry = carry + base * slot
        digits.append(torch.remainder(carry, 10))
        carry = torch.floor(carry / 10)
    return digits


def digit_table(bases: Sequence[int], device: torch.device) -> Tensor:
    """φ(j, b) for each digit j, float32 (10, 2 * bases): cosine and sine of 2πj/b.

    Made anew each time, so that nothing can round it.
    """
    turns = torch.arange(10, dtype=torch.float32, device=device).unsqueeze(-1) / torch.tensor(
        bases, dtype=torch.float32, device=device
    )
    angle = 2 * math.pi * turns  # (10, bases)
    return torch.stack([angle.cos(), angle.sin()], -1).flatten(1)  # (10, 2 * bases)


def features_per_number(n_digits: int, bases: Sequence[int], chunk: int | None) -> int:
    """How many floats the features of one number are: 2 f, times the chunks."""
    width = chunk or n_digits
    return 2 * -(-n_digits // width) * sum(width + (base < 10) for base in bases)
