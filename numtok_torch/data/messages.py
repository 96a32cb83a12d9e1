"""Batches on their way from a DataLoader's worker process to the training process, as one message
each.

In: the arrays of a batch, in a worker. Out: a dict of tensors there, and, where it arrives, a plain
    dict of the same, bit for bit. torch sends every tensor of a batch through a shared memory
    segment of its own, whose file descriptor takes longer to hand over than a small batch takes to
    make. Here all lie one behind the other in one buffer, which goes through the pipe if it is
    small, and else is the one segment.

A worker pickles in a second thread, while the first goes on with the next batch: so the buffer is
filled beforehand, and nothing that pickling calls lets go of the interpreter's lock, as every call
of torch does.

**Shape.** Every tensor keeps its own; the buffer is uint8 (bytes,), and each tensor in it begins at
a multiple of 64 bytes. All are views of it, so it lives as long as any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

ALIGNMENT = 64
PIPE_BYTES = 1 << 20  # a larger buffer is cheaper to share than to copy through a pipe

Array = npt.NDArray[Any]
Place = tuple[str, int, str, tuple[int, ...]]  # name, first byte, dtype, shape


class Message(dict[str, Any]):
    """A batch that is pickled as one buffer; where it is unpickled, it is a plain dict.

    What is put into it later, or in the place of a tensor, is pickled in its own way.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._places, size = _places(arrays)
        self._buffer = (
            torch.empty(size, dtype=torch.uint8).share_memory_()
            if size > PIPE_BYTES
            else bytearray(size)
        )
        self._tensors = unpack(self._buffer, self._places, {}, [place[0] for place in self._places])
        for name, array in arrays.items():
            self._tensors[name].numpy()[...] = array
        super().__init__(self._tensors)

    def __reduce__(self) -> tuple[Any, ...]:
        rest = {name: value for name, value in self.items() if value is not self._tensors.get(name)}
        return unpack, (self._buffer, self._places, rest, list(self))


def unpack(
    buffer: torch.Tensor | bytearray, places: list[Place], rest: dict[str, Any], order: list[str]
) -> dict[str, Any]:
    """The batch: tensors that are views of the buffer, and what was not put into it."""
    raw: Any = buffer.numpy() if isinstance(buffer, torch.Tensor) else buffer
    views = {
        name: torch.from_numpy(np.ndarray(shape, dtype, raw, first))
        for name, first, dtype, shape in places
    }
    return {name: rest[name] if name in rest else views[name] for name in order}


def _places(arrays: Mapping[str, Array]) -> tuple[list[Place], int]:
    """Where each goes, and the bytes of all."""
    places: list[Place] = []
    end = 0
    for name, array in arrays.items():
        first = -(-end // ALIGNMENT) * ALIGNMENT
        end = first + array.nbytes
        places.append((name, first, array.dtype.str, array.shape))
    return places, max(end, 1)
