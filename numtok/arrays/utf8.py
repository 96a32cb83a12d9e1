"""Characters of UTF-8 text, one at a time, forwards and backwards: their code points, and their
classes in a table of :mod:`numtok.arrays.unicode_classes`. Nothing looks beyond the document's
edges.
"""

from __future__ import annotations

import numpy as np

from numtok.arrays.kernels import inner_kernel
from numtok.arrays.unicode_classes import OTHER


@inner_kernel
def decode(text, at):  # type: ignore[no-untyped-def]
    """Return (code point, width) of the non-ASCII character at ``at``."""
    lead = np.int64(text[at])
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | np.int64(text[at + 1]) & 0x3F, 2
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | (np.int64(text[at + 1]) & 0x3F) << 6 | np.int64(
            text[at + 2]
        ) & 0x3F, 3
    high = (lead & 0x07) << 18 | (np.int64(text[at + 1]) & 0x3F) << 12
    return high | (np.int64(text[at + 2]) & 0x3F) << 6 | np.int64(text[at + 3]) & 0x3F, 4


@inner_kernel
def class_at(text, at, stop, classes):  # type: ignore[no-untyped-def]
    """Return (class, width) of the character at ``at``; (OTHER, 0) at the end."""
    if at >= stop:
        return np.int64(OTHER), 0
    if text[at] < 0x80:
        return np.int64(classes[text[at]]), 1
    code, width = decode(text, at)
    return np.int64(classes[code]), width


@inner_kernel
def class_before(text, at, start, classes):  # type: ignore[no-untyped-def]
    """Return (class, width) of the character that ends at ``at``; (OTHER, 0) at the start."""
    if at <= start:
        return np.int64(OTHER), 0
    at -= 1
    if text[at] < 0x80:
        return np.int64(classes[text[at]]), 1
    width = 1
    while text[at] & 0xC0 == 0x80:
        at -= 1
        width += 1
    code, _ = decode(text, at)
    return np.int64(classes[code]), width
