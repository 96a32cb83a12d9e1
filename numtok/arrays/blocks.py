"""Blocks of 64 bytes, each handled in a few vector instructions, which LLVM does not make of a loop
over bytes.

In: buffers of bytes, and where in them a block begins; that it lies within them is the caller's
    business. The functions here say in Python what is done, and the ones behind them write it for
    LLVM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numtok.arrays.kernels import instructions

BLOCK = 64  # bytes


def _write_bytes_between(
    context: Any, builder: Any, kinds: Any, text: Any, at: Any, low: Any, high: Any
) -> Any:
    from llvmlite import ir

    block = builder.load(_pointer(context, builder, kinds[0], text, at), align=1)
    width = _in_every_byte(builder, builder.sub(high, low))
    return builder.bitcast(
        builder.icmp_unsigned("<=", builder.sub(block, _in_every_byte(builder, low)), width),
        ir.IntType(BLOCK),
    )


@instructions(_write_bytes_between, "uint64", "text", "uint64", "uint8", "uint8")
def bytes_between(text, at, low, high):  # type: ignore[no-untyped-def]
    """uint64: bit k says whether ``text[at + k]`` is at least ``low`` and at most ``high``."""
    return sum(
        np.uint64(low <= text[at + np.uint64(k)] <= high) << np.uint64(k) for k in range(BLOCK)
    )


def _write_copy_block(
    context: Any, builder: Any, kinds: Any, text: Any, at: Any, out: Any, to: Any
) -> Any:
    block = builder.load(_pointer(context, builder, kinds[0], text, at), align=1)
    builder.store(block, _pointer(context, builder, kinds[2], out, to), align=1)
    return context.get_dummy_value()


@instructions(_write_copy_block, "none", "text", "uint64", "out", "uint64")
def copy_block(text, at, out, to):  # type: ignore[no-untyped-def]
    """Copy ``text[at:at + 64]`` to ``out[to:to + 64]``; the buffers do not overlap."""
    out[to : to + np.uint64(BLOCK)] = text[at : at + np.uint64(BLOCK)]


def _pointer(context: Any, builder: Any, kind: Any, buffer: Any, at: Any) -> Any:
    """To the block at a place in a buffer."""
    from llvmlite import ir

    data = context.make_array(kind)(context, builder, buffer).data
    return builder.bitcast(
        builder.gep(data, [at]), ir.VectorType(ir.IntType(8), BLOCK).as_pointer()
    )


def _in_every_byte(builder: Any, value: Any) -> Any:
    """A block of one byte."""
    from llvmlite import ir

    block, places = ir.VectorType(ir.IntType(8), BLOCK), ir.VectorType(ir.IntType(32), BLOCK)
    first = builder.insert_element(
        ir.Constant(block, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
    )
    return builder.shuffle_vector(
        first, ir.Constant(block, ir.Undefined), ir.Constant(places, [0] * BLOCK)
    )
