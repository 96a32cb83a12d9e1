"""Corpora: files of text to files of encoded rows and back, in bounded memory.

- ``encode_files`` is what ``numtok encode`` does; ``encode_options`` has its options, and reads them
  from a file.
- ``encode`` and ``decode`` are the two ways. ``pipeline`` reads what goes through them, or ``unpack``,
  and runs them; ``pack`` says which rows a file gets.
- ``fit`` finds xVal's scale, ``split`` which documents a split has, ``summary`` tells.
- ``read`` has one file for each input format, ``write`` all output formats.
- ``jobs`` writes folders of shards; ``jobs.folder`` says what lies in one, for those who read it.

May import every other room of numtok but :mod:`numtok.hf`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numtok.corpus.decode import decode_files, tokenizer_of
    from numtok.corpus.encode import encode_corpus

__all__ = ["decode_files", "encode_corpus", "tokenizer_of"]

_MODULES = {"decode_files": "decode", "encode_corpus": "encode", "tokenizer_of": "decode"}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for, with the modules that it alone needs."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"numtok.corpus.{_MODULES[name]}"), name)
