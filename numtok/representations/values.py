"""Values of columns: floats and tensors to Arrow, and back to numbers.

In: numpy arrays, float32[n] or of any dtype [n, ...]. Out: what fits, Arrow arrays of tensors,
    :class:`Numbers`. What several representations share.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from numtok.arrays import memory
from numtok.errors import RepresentationError
from numtok.numbers.numbers import Numbers

Mask = npt.NDArray[np.bool_]
Width = TypeVar("Width", bound=np.floating[Any])


def finite(values: npt.NDArray[np.floating[Any]], numbers: Numbers) -> Mask:
    """Return bool[n]: neither infinite as a float nor rounded to zero without being zero."""
    good: Mask = np.isfinite(values)
    vanished = values == 0
    return good & ~(vanished & ~numbers.is_zero()) if vanished.any() else good


def clip_to_finite(values: npt.NDArray[Width], numbers: Numbers) -> npt.NDArray[Width]:
    """Replace infinities in ``values`` by the largest finite float of their width, and zeros that
    stand for other numbers by the smallest.
    """
    wrong = ~finite(values, numbers)
    if not wrong.any():
        return values
    limits = np.finfo(values.dtype)
    magnitude = np.where(np.isinf(values), limits.max, limits.smallest_subnormal)
    clipped: npt.NDArray[Width] = np.where(
        wrong, np.where(numbers.negative, -magnitude, magnitude), values
    ).astype(values.dtype)
    return clipped


def tensor_array(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Convert an array [n, ...] to an Arrow array of tensors, without a copy if it is contiguous."""
    flat = memory.to_arrow(np.ascontiguousarray(values).reshape(-1))
    return pa.ExtensionArray.from_storage(
        kind, pa.FixedSizeListArray.from_arrays(flat, type=kind.storage_type)
    )


def tensor_values(column: pa.Array) -> npt.NDArray[Any]:
    """Return the array [n, ...] of an Arrow array of tensors: the inverse of :func:`tensor_array`."""
    if not len(column):  # which Arrow refuses where there are no buffers
        return np.empty((0, *column.type.shape), memory.dtype_of(column.type.value_type))
    return np.asarray(column.to_numpy_ndarray())


def numbers_from_floats(values: npt.NDArray[Any], name: str) -> Numbers:
    """Convert floats to the shortest decimals that read back as the same float. RepresentationError
    for an infinite value or NaN, naming its place.
    """
    finite = np.isfinite(values)
    if not finite.all():
        place = int(np.flatnonzero(~finite)[0])
        raise RepresentationError(
            f"{name}: value {place} is {values[place]}, which is not a number in text; mask it out"
            " before decoding"
        )
    return Numbers.parse(memory.to_arrow(values).cast(pa.large_string()))
