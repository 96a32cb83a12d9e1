"""The bits of floats: one ``[NUM]`` per number, shown as the 32 bits of its float32, or the 64 bits
of its float64.

In: n numbers. Out: ``number_bits``, either uint8[n, width], each 0 or 1 (sign, exponent, fraction:
    1 + 8 + 23 or 1 + 11 + 52 bits, most significant first), or compact, uint32[n] or uint64[n].
    Inverse: put the bits together; exact for every float of that width.

Width 32: The Language of Numbers / Floating-Point Embedding, IEEE 754 bits through a small ReLU
    network (equation 3 of the paper; the network is ``numtok_torch.FloatBitsEmbedding``). Width 64:
    BitTokens (Kreitner et al. 2025, "Efficient numeracy in language models through single-token
    number embeddings"), after the authors' code: the bits of the float64, and, if asked for, after
    them those of its reciprocal.

-28.5 is 1 10000011 11001000000000000000000, and of width 64 1 10000000011 11001 and 47 zeros.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.numbers.numbers import Numbers
from numtok.representations.base import Mask, SingleToken
from numtok.representations.columns import (
    Column,
    clip_to_finite,
    finite,
    numbers_from_floats,
    tensor_array,
)

FIELDS: dict[int, tuple[int, ...]] = {32: (1, 8, 23), 64: (1, 11, 52)}  # sign, exponent, fraction

Floats = npt.NDArray[np.floating[Any]]
Words = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]


def _dense(*fields: int) -> Column:
    return Column("number_bits", pa.uint8(), np.uint8, (sum(fields),), bit_fields=fields)


def _compact(kind: pa.DataType, width: int) -> Column:
    """Declare a column of bits. A batch has them as int64 of the same bits, as torch does little
    with unsigned integers.
    """
    return Column("number_bits", kind, np.int64, bit_fields=FIELDS[width], encoding="split")


@dataclass(frozen=True)
class FloatBits(SingleToken):
    """The bits of one float per number, rounded once, from the decimal.

    Attributes:
        compact: store one unsigned integer instead of a byte for each bit; the torch layer takes
            either.
        overflow: for values that are infinite as a float of this width, or not zero but zero as
            one.
        width: 32 or 64.
        reciprocal: put the 64 bits of 1/x after those of x, only with width 64. It is the quotient
            of the float64; for ±0, and magnitudes below 5.6e-309, it is ±infinity. The compact form
            stores x alone, from which the layer computes it.

    Example:
        >>> import numtok
        >>> numbers = numtok.Numbers.parse(["-28.5"])
        >>> bits = numtok.FloatBits().encode(numbers)["number_bits"].to_numpy_ndarray()
        >>> "".join(map(str, bits[0]))
        '11000001111001000000000000000000'
    """

    compact: bool = False
    overflow: str = "text"
    width: int = 32
    reciprocal: bool = False
    name = "bits"
    positional = ("width",)
    later = ("width", "reciprocal")
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {"reciprocal": {"reciprocal": True}}
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({"width": 64},)
    declared = (
        _dense(*FIELDS[32]),
        _compact(pa.uint32(), 32),
        _dense(*FIELDS[64]),
        _dense(*FIELDS[64], *FIELDS[64]),
        _compact(pa.uint64(), 64),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width not in FIELDS:
            raise self.refused(f"width={self.width} must be 32 or 64, the bits of a float")
        if self.reciprocal and self.width != 64:
            raise self.refused("reciprocal=True is for float64; take width=64 with it")

    @property
    def exact_digit_range(self) -> range:
        return range(-37, 38) if self.width == 32 else range(-307, 308)

    def fits(self, numbers: Numbers) -> Mask:
        return numbers.fit_float32() if self.width == 32 else finite(self._floats(numbers), numbers)

    def columns(self) -> dict[str, Column]:
        narrow, narrow_compact, wide, wide_reciprocal, wide_compact = self.declared
        dense, compact = (narrow, narrow_compact) if self.width == 32 else (wide, wide_compact)
        dense = wide_reciprocal if self.reciprocal else dense
        return {"number_bits": compact if self.compact else dense}

    def _floats(self, numbers: Numbers) -> Floats:
        return numbers.to_float32() if self.width == 32 else numbers.to_float64()

    def encode(self, numbers: Numbers) -> dict[str, pa.Array]:
        values: Floats = self._floats(numbers)
        if self.overflow == "clip":
            values = clip_to_finite(values, numbers)
        words = memory.to_arrow(_words(values))
        return {"number_bits": words} if self.compact else self.expand({"number_bits": words})

    def expand(self, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
        words = columns.get("number_bits")
        if words is None or isinstance(words, pa.ExtensionArray):
            return super().expand(columns)
        values: Floats = memory.from_arrow(words).view(f"f{self.width // 8}")
        if self.reciprocal:
            # each number's two side by side
            values = np.stack([values, reciprocals(values)], 1).reshape(-1)
        column = dataclasses.replace(self, compact=False).columns()["number_bits"]
        bits = to_bits(_words(values)).reshape(-1, *column.shape)
        return {"number_bits": tensor_array(bits, column.type)}

    def decode(self, columns: Mapping[str, pa.Array]) -> Numbers:
        column = columns["number_bits"]
        if self.compact:
            return self._numbers(column.to_numpy(zero_copy_only=False))
        return self._numbers(np.asarray(column.to_numpy_ndarray()))

    def decode_prediction(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Numbers | None:
        return None if (bits := arrays.get("number_bits")) is None else self._numbers(bits)

    def _numbers(self, bits: npt.NDArray[Any]) -> Numbers:
        """Return numbers of words [n], or of bits [n, ...], which may be those of another width."""
        if bits.ndim == 1:
            words = bits.astype(f"u{self.width // 8}", copy=False)
        else:
            words = from_bits(bits[:, : max(FIELDS)])
        return numbers_from_floats(words.view(f"f{words.itemsize}"), self.name)


def reciprocals(values: Floats) -> Floats:
    """Return 1/x, divided once; ±infinity for ±0 and for numbers that are too small."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.reciprocal(values)


def _words(values: Floats) -> Words:
    return values.view(f"u{values.itemsize}")


def to_bits(words: Words) -> npt.NDArray[np.uint8]:
    """Convert uint32[n] or uint64[n] to uint8[n, 32] or [n, 64], most significant bit first."""
    octets = words.astype(f">u{words.itemsize}").view(np.uint8)
    return np.unpackbits(octets).reshape(len(words), 8 * words.itemsize)


def from_bits(bits: npt.NDArray[np.uint8]) -> Words:
    """Return the words of bits: the inverse of :func:`to_bits`."""
    octets = bits.shape[1] // 8
    return np.packbits(bits.reshape(-1)).view(f">u{octets}").astype(f"u{octets}")
