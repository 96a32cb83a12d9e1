"""Bit marks: one bit a byte of text says that something may begin there, so that a loop can jump from mark to mark.

In: uint64[bytes // 64 + 1], bit k of ``marks[b]`` for byte 64 b + k. Marking 64 bytes at a time becomes vector compares; which bytes are marked is the
business of whoever marks them.
"""

from __future__ import annotations

import numpy as np

from numtok.arrays.kernels import inline_kernel

# Positions are unsigned: Numba then leaves out the check for negative indices, in loops that see every number.
ONE, SIX, SIXTY_THREE = np.uint64(1), np.uint64(6), np.uint64(63)

# The number of the one bit set in b is LOWEST_BIT[(b * DE_BRUIJN) >> 58].
_DE_BRUIJN = 0x03F79D71B4CB0A89
DE_BRUIJN = np.uint64(_DE_BRUIJN)
LOWEST_BIT = np.zeros(64, np.uint64)
for _bit in range(64):
    LOWEST_BIT[(_DE_BRUIJN << _bit & 0xFFFFFFFFFFFFFFFF) >> 58] = _bit


@inline_kernel
def lowest_bit(bits):  # type: ignore[no-untyped-def]
    """uint64: the number of the lowest bit that is set; 0 for none."""
    return LOWEST_BIT[((bits & (~bits + ONE)) * DE_BRUIJN) >> np.uint64(58)]


@inline_kernel
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


@inline_kernel
def marked_run(marks, at):  # type: ignore[no-untyped-def]
    """Length of the run of marks that begins at ``at``, as far as its block of 64 bytes goes."""
    return lowest_bit(~(marks[at >> SIX] >> (at & SIXTY_THREE)))


@inline_kernel
def set_bits(bits):  # type: ignore[no-untyped-def]
    """uint64: how many bits are set. LLVM knows these steps for the processor's own instruction."""
    bits -= (bits >> ONE) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (bits * np.uint64(0x0101010101010101)) >> np.uint64(56)
