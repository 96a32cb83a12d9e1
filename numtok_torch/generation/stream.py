"""Text as it is written: what transformers' ``generate`` hands over, token by token, as text for
one of its text streamers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from numtok import DecodeStream
from numtok.representations import SingleToken
from numtok_torch.generation.state import Writing


class TextStream:
    """A streamer for transformers' ``generate`` that gives text, with the values of numbers, to
    ``streamer.on_finalized_text``.

    A piece of text is given once it is settled: numbers whole, with what the head says, characters
    whole; nothing is taken back. ``before`` are the prompt's ids, for decoders that look at them;
    the tokens at which the text ``ends`` are not shown; ``prompt`` is text to show first.
    """

    def __init__(
        self, streamer: Any, writing: Writing, before: list[int], ends: list[int], prompt: str
    ) -> None:
        self._streamer, self._writing, self._ends = streamer, writing, ends
        self._stream, self._prompt = DecodeStream(before), prompt
        self._ids: list[int] | None = None  # None before the prompt was put

    def put(self, tokens: Tensor) -> None:
        """The prompt, int64 (1, seq), and after it each token, int64 (1,)."""
        if self._ids is None:
            self._ids = []
            self._show("" if getattr(self._streamer, "skip_prompt", False) else self._prompt)
            return
        (token,) = tokens.tolist()
        is_number = bool(self._writing.begins_number(np.array([token]))[0])
        if token in self._ends and not is_number:
            return
        value = None
        if is_number and isinstance(self._writing.tokenizer.representations[0], SingleToken):
            (value,) = self._writing.surfaces([(0, np.array(self._ids, np.int64))])
        self._ids.append(token)
        self._show(self._stream.step(self._writing.tokenizer, token, value))

    def end(self) -> None:
        """The rest, and that it is all."""
        rest = self._stream.finish(self._writing.tokenizer)
        self._streamer.on_finalized_text(rest or "", stream_end=True)

    def _show(self, text: str | None) -> None:
        if text:
            self._streamer.on_finalized_text(text)
