"""Values of tensors as text for people."""

from __future__ import annotations

from typing import Any


def shown_float(value: Any) -> str:
    """The shortest decimal that reads back as the same float of its type; ``12`` rather than ``12.0``."""
    text = str(value)
    return text.removesuffix(".0")


def shown_value(name: str, value: Any) -> str:
    """One number's value in the column ``name``."""
    import numpy as np

    array = np.asarray(value)
    if name == "number_bits":
        return grouped_bits(array)
    if array.ndim == 0:
        return shown_float(value)
    if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
        return "".join(str(digit) for digit in array.tolist()) if array.max(initial=0) < 10 else " ".join(map(str, array.tolist()))
    return " ".join(f"{value:+.2f}" if array.ndim == 1 else f"({value[0]:+.2f} {value[1]:+.2f})" for value in array.tolist())


def grouped_bits(value: Any) -> str:
    """A float32's bits: sign, exponent, mantissa."""
    import numpy as np

    array = np.asarray(value)
    bits = f"{int(array):032b}" if array.ndim == 0 else "".join(str(bit) for bit in array.tolist())
    return f"{bits[0]} {bits[1:9]} {bits[9:]}"
