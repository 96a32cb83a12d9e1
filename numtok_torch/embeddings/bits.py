"""The bits of float32 or float64 numbers: words, bits and values, on the device.

In and out: words, int64 (...), the bits as one integer: 0 to 2**32 - 1 for a float32, any, read
    with a sign, for a float64; bits, uint8 (..., width), each 0 or 1: sign, exponent, fraction,
    most significant first; values, float32 or float64 (...). Each pair is exact both ways, NaN
    payloads included.

Shape:
    - words: (...); bits: (..., width), width 32 or 64; values: (...).
"""

from __future__ import annotations

import torch
from torch import Tensor

from numtok.errors import SchemaError


def bits_of_words(words: Tensor, width: int = 32) -> Tensor:
    """Any integer (...) to uint8 (..., width)."""
    shifts = torch.arange(width - 1, -1, -1, device=words.device)  # (width,)
    return ((words.to(torch.int64).unsqueeze(-1) >> shifts) & 1).to(torch.uint8)  # (..., width)


def words_of_bits(bits: Tensor) -> Tensor:
    """The inverse: uint8 (..., width) to int64 (...)."""
    shifts = torch.arange(bits.shape[-1] - 1, -1, -1, device=bits.device)  # (width,)
    return (bits.to(torch.int64) << shifts).sum(-1)  # (...)


def values_of_words(words: Tensor, width: int = 32) -> Tensor:
    """int64 (...) to the float32, or float64, (...) of these bits."""
    if width == 64:
        return words.contiguous().view(torch.float64)
    signed = torch.where(
        words >= 2**31, words - 2**32, words
    )  # int32 has the same bits, read with a sign
    return signed.to(torch.int32).contiguous().view(torch.float32)


def reciprocal_words(words: Tensor) -> Tensor:
    """Words of float64, int64 (...), to those of 1/x, divided once: of ±0, and of what is too
    small, ±infinity.
    """
    return values_of_words(words, 64).reciprocal().view(torch.int64)


def _check_words(words: Tensor, width: int) -> None:
    """Refuse words of another width where to look at them costs nothing: on another device it is to
    wait for it, and a compiled graph cannot.
    """
    if (
        width == 32
        and words.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and (words.to(torch.int64) >> 32).any()
    ):
        raise SchemaError(
            "number_bits holds words of more than 32 bits, as bits:64 writes them; make the layer,"
            " or the head, with width=64"
        )


def as_bits(stream: Tensor, dims: int, width: int = 32, reciprocal: bool = False) -> Tensor:
    """``number_bits`` in either form, (...) with ``dims`` axes or (..., width), as uint8 (...,
    width); with ``reciprocal``, (..., 128), those of 1/x behind.
    """
    size = width * (1 + reciprocal)
    if stream.dim() == dims:
        _check_words(stream, width)
        bits = bits_of_words(stream, width)
        return (
            torch.cat([bits, bits_of_words(reciprocal_words(stream), width)], -1)
            if reciprocal
            else bits
        )
    if stream.dim() != dims + 1 or stream.shape[-1] != size:
        raise SchemaError(
            f"number_bits has the shape {tuple(stream.shape)}: expected {dims} axes (compact) or"
            f" one more, of {size} bits"
        )
    return stream
