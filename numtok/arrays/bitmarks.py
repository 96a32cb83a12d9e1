"""Bit marks: one bit a byte of text says that something may begin there, so that a loop can jump
from mark to mark.

In: uint64[bytes // 64 + 1], bit k of ``marks[b]`` for byte 64 b + k. Marking 64 bytes at a time
    becomes vector compares; which bytes are marked is the business of whoever marks them.
"""

from __future__ import annotations

import numpy as np

from numtok.arrays.kernels import merged_kernel

# Positions are unsigned: Numba then leaves out the check for negative indices, in loops that see
# every number.
ONE, SIX, SIXTY_THREE = np.uint64(1), np.uint64(6), np.uint64(63)


@merged_kernel
def set_bits(bits):  # type: ignore[no-untyped-def]
    """uint64: how many bits are set. LLVM knows these steps for the processor's own instruction."""
    bits -= (bits >> ONE) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + (
        (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (bits * np.uint64(0x0101010101010101)) >> np.uint64(56)


@merged_kernel
def lowest_bit(bits):  # type: ignore[no-untyped-def]
    """uint64: the number of the lowest bit that is set; 64 for none.

    It is that of the zeros below it.
    """
    return set_bits(~bits & (bits - ONE))


@merged_kernel
def next_mark(marks, at, stop):  # type: ignore[no-untyped-def]
    """Position of the first marked byte in [at, stop), or some position from ``stop`` on."""
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
