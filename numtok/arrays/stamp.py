"""A digest of numtok's own source, which stands for its version in what is kept between runs: a change that has no version yet is seen too."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

ROOMS = ("arrays", "numbers", "representations", "engines", "tokenizer")  # that hold kernels, or what kernels are made of
PACKAGE = Path(__file__).parent.parent


@functools.cache
def content_stamp() -> str:
    """A digest of the source of every module that a kernel, or the way from a text to its ids, can depend on."""
    digest = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((PACKAGE / room).glob("*.py")):
            digest.update(f"{room}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
