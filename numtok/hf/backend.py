"""What numtok makes of one state of a ``tokenizers`` backend, and how a change to it is told.

In: a backend and numtok's settings. Out: the numtok tokenizer, the copies of the backend with marks, and what was found out about them. All of it is
made on demand, belongs in the tokenizer's ``cache``, and is left behind when the backend changes.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numtok.hf.marks import Marks, marks_for
from numtok.tokenizer.tokenizer import Tokenizer


@dataclass
class Core:
    """What numtok makes of one state of a backend.

    Attributes:
        numtok: the tokenizer; its engine is made when it is first needed.
        around: state of the post-processor at that time.
        marks: the last copies of the backend with marks.
        characters: how many were encoded. fast: whether the engine is the fast one; None before it was made.
    """

    numtok: Tokenizer
    around: Any
    marks: list[Marks] = field(default_factory=list)
    characters: int = 0
    fast: bool | None = None

    @property
    def stay_text(self) -> bool:
        return self.numtok.representations[0].stays_text

    @functools.cached_property
    def _odd_names(self) -> list[str]:
        return [content for content in self.numtok.own_tokens if "[NUM" not in content and "[/NUM" not in content]

    def is_named_in(self, texts: Sequence[str]) -> bool:
        """Whether a text has the name of one of numtok's tokens, which is to stay text."""
        odd = self._odd_names
        return any("[NUM" in text or "[/NUM" in text or (odd and any(content in text for content in odd)) for text in texts)

    def marks_for(self, texts: Sequence[str]) -> Marks:
        """Marks that do not occur in the texts."""
        return marks_for(self.marks, self.numtok, texts)


def state_of(part: Any) -> Any:
    """What a part of a ``tokenizers.Tokenizer`` does, to be compared."""
    return None if part is None else part.__getstate__()


def key_of(backend: Any) -> tuple[Any, ...]:
    """Equal as long as nothing has changed that ids depend on, the post-processor excepted."""
    return (backend.get_vocab_size(), *(state_of(part) for part in (backend.normalizer, backend.pre_tokenizer, backend.decoder)))
