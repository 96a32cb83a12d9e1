"""The engines of one tokenizer, each made when it is first needed.

In: a tokenizer.json with number tokens. Out: what encodes the text between numbers, without and
    with special tokens in the text parsed, and the one that decodes what is not byte-level and
    knows the special tokens around a text.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from numtok.engines.choose import make_engine
from numtok.engines.interface import Engine, NumberTokens
from numtok.engines.tokenizers_engine import TokenizersEngine


class TextEngines:
    """See the module.

    Attributes:
        choice: ``"auto"``, ``"gigatoken"`` or ``"tokenizers"``.
    """

    def __init__(self, config: dict[str, Any], tokens: NumberTokens, choice: str) -> None:
        self.choice = choice
        self._config, self._tokens = config, tokens

    def __getstate__(self) -> dict[str, Any]:
        """Without the engines, some of which cannot be pickled."""
        return {
            name: value
            for name, value in vars(self).items()
            if name in ("choice", "_config", "_tokens")
        }

    def between(self, parse_special: bool) -> Engine:
        """What encodes the text between numbers."""
        return self._parsing if parse_special else self._plain

    @functools.cached_property
    def _plain(self) -> Engine:
        return make_engine(self._config, self._tokens, self.choice)

    @functools.cached_property
    def _parsing(self) -> Engine:
        return make_engine(self._config, self._tokens, self.choice, parse_special=True)

    @functools.cached_property
    def whole(self) -> TokenizersEngine:
        """The complete tokenizer, with all number tokens."""
        return TokenizersEngine(self._config, dataclasses.replace(self._tokens, hidden=()))

    @functools.cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """Ids of the special tokens before and after a text."""
        return self.whole.special_frame()
