"""A digest of numtok's own source, which stands for its version in what is kept between runs: a
change that has no version yet is seen too.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

# Those that hold kernels, or what kernels are made of, from the bottom up: each imports only those
# before it.
ROOMS = ("arrays", "numbers", "representations", "engines", "tokenizer", "statistics", "corpus")
PACKAGE = Path(__file__).parent.parent


@functools.cache
def content_stamp(room: str = "tokenizer") -> str:
    """A digest of the source of every module that a kernel in this room can depend on; by default,
    that the way from a text to its ids can.
    """
    digest = hashlib.sha256()
    for part in ROOMS[: ROOMS.index(room) + 1]:
        for path in sorted((PACKAGE / part).rglob("*.py")):
            digest.update(f"{part}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
