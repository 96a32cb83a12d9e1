"""The 32 bits of float32 numbers: words, bits and values, on the device.

In and out: words, int64 (...), 0 to 2**32 - 1; bits, uint8 (..., 32), each 0 or 1: sign, 8 exponent bits, 23 mantissa bits, most significant
first; values, float32 (...). Each pair is exact both ways, NaN payloads included.

Shape:
    - words: (...); bits: (..., 32); values: (...).
"""

from __future__ import annotations

import torch
from torch import Tensor

from numtok.errors import SchemaError


def bits_of_words(words: Tensor) -> Tensor:
    """Any integer (...) to uint8 (..., 32)."""
    shifts = torch.arange(31, -1, -1, device=words.device)  # (32,)
    return ((words.to(torch.int64).unsqueeze(-1) >> shifts) & 1).to(torch.uint8)  # (..., 32)


def words_of_bits(bits: Tensor) -> Tensor:
    """The inverse: uint8 (..., 32) to int64 (...)."""
    shifts = torch.arange(31, -1, -1, device=bits.device)  # (32,)
    return (bits.to(torch.int64) << shifts).sum(-1)  # (...)


def values_of_words(words: Tensor) -> Tensor:
    """int64 (...) to the float32 (...) of these bits."""
    signed = torch.where(words >= 2**31, words - 2**32, words)  # int32 has the same bits, read with a sign
    return signed.to(torch.int32).contiguous().view(torch.float32)


def as_bits(stream: Tensor, dims: int) -> Tensor:
    """``number_bits`` in either form, (...) with ``dims`` axes or (..., 32), as uint8 (..., 32)."""
    if stream.dim() == dims:
        return bits_of_words(stream)
    if stream.dim() != dims + 1 or stream.shape[-1] != 32:
        raise SchemaError(f"number_bits has the shape {tuple(stream.shape)}: expected {dims} axes (compact) or one more, of 32 bits")
    return stream
