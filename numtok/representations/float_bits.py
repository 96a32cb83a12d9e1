"""Floating-point embedding: one ``[NUM]`` per number, shown as the 32 bits of its float32.

In: n numbers. Out: ``number_bits``, either uint8[n, 32], each 0 or 1 (sign, 8 exponent bits, 23 mantissa bits, most significant first), or compact,
uint32[n]. Inverse: put the bits together; exact for every float32. The Language of Numbers / Floating-Point Embedding: IEEE 754 bits through a
small ReLU network (equation 3 of the paper; the network is ``numtok_torch.FloatBitsEmbedding``).

-28.5 is 1 10000011 11001000000000000000000.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.arrays.kernels import kernel
from numtok.numbers.numbers import Numbers
from numtok.representations.base import Mask, SingleToken
from numtok.representations.columns import Column
from numtok.representations.values import finite_float32, numbers_from_floats, tensor_array
from numtok.representations.xval import clip_to_float32

FLOAT32_FIELDS = (1, 8, 23)  # sign, exponent, mantissa


@dataclass(frozen=True)
class FloatBits(SingleToken):
    """The bits of one float32 per number.

    Attributes:
        compact: store uint32 instead of 32 bytes; the torch layer takes either.
        overflow: for values that are infinite as float32, or not zero but zero as float32.
    """

    compact: bool = False
    overflow: str = "text"
    name: ClassVar[str] = "bits"
    declared: ClassVar[tuple[Column, ...]] = (
        Column("number_bits", pa.uint8(), np.uint8, (32,), bit_fields=FLOAT32_FIELDS, encoding="tensor"),
        Column("number_bits", pa.uint32(), np.int64, bit_fields=FLOAT32_FIELDS, encoding="split"),  # torch has little arithmetic for uint32
    )

    def __post_init__(self) -> None:
        self._check_overflow()

    @property
    def surely_held(self) -> range:
        return range(-37, 38)

    def fits(self, numbers: Numbers) -> Mask:
        return finite_float32(numbers.to_float32(), numbers)

    def columns(self) -> dict[str, Column]:
        return {"number_bits": self.declared[self.compact]}

    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        values = numbers.to_float32()
        words = (clip_to_float32(values, numbers) if self.overflow == "clip" else values).view(np.uint32)
        if self.compact:
            return {"number_bits": memory.to_arrow(words)}
        return {"number_bits": tensor_array(to_bits(words), self.columns()["number_bits"].type)}

    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        column = columns["number_bits"]
        if self.compact:
            words = column.to_numpy(zero_copy_only=False).astype(np.uint32, copy=False)
        else:
            words = from_bits(np.asarray(column.to_numpy_ndarray()))
        return numbers_from_floats(words.view(np.float32), self.name)

    def decode_chosen(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Numbers | None:
        if (bits := arrays.get("number_bits")) is None:
            return None
        words = bits.astype(np.uint32) if bits.ndim == 1 else from_bits(bits)  # [n], of either form, whichever is stored
        return numbers_from_floats(words.view(np.float32), self.name)


def to_bits(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """uint32[n] to uint8[n, 32], most significant bit first."""
    bits = memory.empty(32 * len(words), np.uint8)
    _to_bits(words, _EIGHT_BITS, bits.view(np.uint64))
    return bits.reshape(-1, 32)


# The eight bits of each byte, one byte each, as one word in memory order.
_EIGHT_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)).view(np.uint64)


@kernel
def _to_bits(words, eight_bits, bits):  # type: ignore[no-untyped-def]
    for i in range(words.size):
        word = words[i]
        bits[4 * i] = eight_bits[word >> np.uint32(24)]
        bits[4 * i + 1] = eight_bits[(word >> np.uint32(16)) & np.uint32(0xFF)]
        bits[4 * i + 2] = eight_bits[(word >> np.uint32(8)) & np.uint32(0xFF)]
        bits[4 * i + 3] = eight_bits[word & np.uint32(0xFF)]


def from_bits(bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """The inverse of :func:`to_bits`."""
    return np.packbits(bits.reshape(-1)).view(">u4").astype(np.uint32)
