"""Hugging Face's ``tokenizers``: no other module of numtok imports it.

It is imported when it is first needed, as it takes longer to load than most starts may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numtok.engines.tokenizer_json import to_json


def library() -> Any:
    """Return the module ``tokenizers``."""
    import tokenizers

    return tokenizers


def load(config: Mapping[str, Any]) -> Any:
    """Return the ``tokenizers.Tokenizer`` of a tokenizer.json."""
    return library().Tokenizer.from_str(to_json(config))
