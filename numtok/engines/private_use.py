"""Private-use characters that a text does not hold: what stands in for a number while
``tokenizers`` has the text. A text may hold any of them (fonts of icons do), so the ones to use are
chosen for each text.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.engines.config import vocabulary_of
from numtok.errors import InputError

# planes 16 and 15, then the one that texts do hold now and then
RANGES = ((0x10_0000, 0x10_FFFE), (0xF_0000, 0xF_FFFE), (0xE000, 0xF900))

CodePoints = npt.NDArray[np.int64]


@functools.cache
def _all() -> CodePoints:
    """Return every private-use character, in the order of preference."""
    return np.concatenate([np.arange(first, last) for first, last in RANGES])


def used_in(text: str) -> CodePoints:
    """Return the code points from U+E000 on in a text; ascending, each once."""
    if text.isascii():
        return np.empty(0, np.int64)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return np.unique(codes[codes >= 0xE000]).astype(np.int64)


def used_in_tokens(config: dict[str, Any]) -> CodePoints:
    """Return the code points from U+E000 on in the vocabulary and the added tokens of a
    tokenizer.json.
    """
    added = (token["content"] for token in config.get("added_tokens") or [])
    return used_in("".join([*vocabulary_of(config), *added]))


def unused(used: CodePoints, count: int = 1) -> CodePoints:
    """Return ``count`` private-use characters not in ``used``; InputError if there are too few."""
    free = _all()[~np.isin(_all(), used)] if len(used) else _all()
    if len(free) < count:
        raise InputError(
            f"the texts hold {len(_all()) - len(free)} of the {len(_all())} private-use characters"
            f" of Unicode, and {count} are needed to stand in for numbers; take the texts in"
            " smaller batches, or replace such characters"
        )
    return free[:count]
