"""Bit marks: one bit a byte of text says that something may begin there, so that a loop can jump
from mark to mark. In: text and ranges of bytes. Out: uint64[bytes // 64 + 2], bit k of ``marks[b]``
for byte 64 b + k.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.arrays import memory
from numtok.arrays.kernels import inlined_kernel, kernel

# Positions are unsigned: Numba then leaves out the check for negative indices, in loops that see
# every number.
ZERO, ONE, SIX, EIGHT, SIXTY_THREE = (np.uint64(value) for value in (0, 1, 6, 8, 63))
BLOCK = 32  # bytes that are copied in one go
_CHUNK = 1 << 12  # bytes whose flags stay in the first-level cache
_GATHER = np.uint64(0x0102040810204080)  # the product's highest byte has the lowest bits of all


def byte_ranges(*ranges: tuple[int, int]) -> Any:
    """Return up to three ranges of bytes, both ends included, as :func:`mark` takes them."""
    return tuple((np.uint8(low), np.uint8(high - low)) for low, high in (ranges * 3)[:3])


def marks_of(text: npt.NDArray[np.uint8], ranges: Any) -> npt.NDArray[np.uint64]:
    """Return the marks of all bytes in the ranges."""
    marks = memory.empty(len(text) // 64 + 2, np.uint64)
    flags = np.empty(min(len(text) // 64 * 64 + 64, _CHUNK), np.uint8)
    mark(text, ranges, flags, flags.view(np.uint64), marks.view(np.uint8))
    return marks


@kernel
def mark(text, ranges, flags, words, marks):  # type: ignore[no-untyped-def]
    """Set a flag for each byte in the ranges, and a bit for each flag: two loops that LLVM makes
    vector instructions of. ``words``: the flags, eight at a time. ``marks``: the bits, eight at a
    time.
    """
    (low, width), (other_low, other_width), (third_low, third_width) = ranges
    size, filled = np.uint64(text.size), ZERO
    for begin in range(ZERO, size, np.uint64(_CHUNK)):
        count = min(size - begin, np.uint64(_CHUNK))
        for k in range(count):
            byte = text[begin + k]
            first, other = np.uint8(byte - low) <= width, np.uint8(byte - other_low) <= other_width
            flags[k] = first | other | (np.uint8(byte - third_low) <= third_width)
        bits = (count + SIXTY_THREE) >> SIX << SIX
        for k in range(count, bits):
            flags[k] = 0
        for k in range(bits >> np.uint64(3)):
            marks[filled + k] = np.uint8(words[k] * _GATHER >> np.uint64(56))
        filled += bits >> np.uint64(3)
    for rest in range(filled, np.uint64(marks.size)):
        marks[rest] = 0


@inlined_kernel
def set_bits(bits):  # type: ignore[no-untyped-def]
    """Count the bits that are set in a uint64. LLVM knows these steps for the processor's own
    instruction.
    """
    bits -= (bits >> ONE) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + (
        (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (bits * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def count_marks(marks):  # type: ignore[no-untyped-def]
    """Return (marks, runs of marks). A run over the edge of a word is counted twice."""
    count, runs = ZERO, ZERO
    for k in range(marks.size):
        count += set_bits(marks[k])
        runs += set_bits(marks[k] & ~(marks[k] << ONE))
    return np.int64(count), np.int64(runs)


@inlined_kernel
def lowest_bit(bits):  # type: ignore[no-untyped-def]
    """Return the number of the lowest bit that is set in a uint64; 64 for none."""
    return set_bits(~bits & (bits - ONE))


@inlined_kernel
def next_mark(marks, at, stop):  # type: ignore[no-untyped-def]
    """Return the position of the first marked byte in [at, stop), or some position from ``stop``
    on; all are uint64.
    """
    if at >= stop:
        return at
    block = at >> SIX
    ahead = marks[block] >> (at & SIXTY_THREE)
    while ahead == 0:
        block += ONE
        at = block << SIX
        if at >= stop:
            return at
        ahead = marks[block]
    return at + lowest_bit(ahead)


@inlined_kernel
def eight_bytes(text, at):  # type: ignore[no-untyped-def]
    """Load eight bytes of text as a uint64, the first byte lowest. LLVM makes one load of it."""
    word = ZERO
    for k in range(EIGHT):
        word |= np.uint64(text[at + k]) << (EIGHT * k)
    return word


@inlined_kernel
def copy_block(text, at, out, to):  # type: ignore[no-untyped-def]
    """Copy ``text[at:at + 32]`` to ``out[to:to + 32]``, in four loads and stores."""
    for part in range(ZERO, np.uint64(BLOCK), EIGHT):
        word = eight_bytes(text, at + part)
        for k in range(EIGHT):
            out[to + part + k] = np.uint8(word >> (EIGHT * k))
