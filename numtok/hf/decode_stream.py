"""Text as it is written: ids one by one, and the text that each of them settles.

In: the ids that a model writes. Out: pieces of text, which joined are what ``decode`` gives of all
    ids. A spelled-out number comes whole, once its last token is there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numtok.representations import END_NUM, NUM

if TYPE_CHECKING:  # without transformers, numtok.hf.tokenizer has the words for that
    from numtok.hf.backend import KnowsNumbers

UNFINISHED = "\ufffd"  # what bytes decode to whose character is not whole yet


class DecodeStream:
    """As ``tokenizers.decoders.DecodeStream``, for a :class:`numtok.hf.NumberTokenizer`.

    Args:
        ids: a prompt, whose text is not given.
        skip_special_tokens: leave out special tokens; ``[NUM]`` is none.
    """

    def __init__(self, ids: Sequence[int] = (), skip_special_tokens: bool = False) -> None:
        self.skip_special_tokens = skip_special_tokens
        self._ids, self._values = list(ids), [math.nan] * len(ids)
        self._known = len(self._ids)  # of these ids the text was given

    def step(
        self, tokenizer: KnowsNumbers, id: int | Sequence[int], number_value: float | None = None
    ) -> str | None:
        """The text that is settled by one more id, or several; None if there is none.

        ``number_value`` is that of a number that is one token. Without values ``[NUM]`` shows as
        itself.
        """
        more = [id] if isinstance(id, int) else list(id)
        self._ids += more
        self._values += [math.nan if number_value is None else number_value] * len(more)
        if self._is_in_number(tokenizer):
            return None
        return self._settled(tokenizer, UNFINISHED)

    def finish(self, tokenizer: KnowsNumbers) -> str | None:
        """The rest, if the last number or character is not whole; None if there is none."""
        return self._settled(tokenizer, None)

    def _settled(self, tokenizer: KnowsNumbers, unfinished: str | None) -> str | None:
        given, text = self._text(tokenizer, self._known), self._text(tokenizer, len(self._ids))
        if len(text) <= len(given) or (unfinished and text.endswith(unfinished)):
            return None
        # The last tokens given stay, as the text of the next ones may depend on them.
        del self._ids[: self._known], self._values[: self._known]
        self._known = len(self._ids)
        return text[len(given) :]

    def _text(self, tokenizer: KnowsNumbers, count: int) -> str:
        has_values = not all(map(math.isnan, self._values[:count]))
        values = self._values[:count] if has_values else None
        options: dict[str, Any] = {
            "skip_special_tokens": self.skip_special_tokens,
            "number_value": values,
        }
        return str(tokenizer.decode(self._ids[:count], **options))

    def _is_in_number(self, tokenizer: KnowsNumbers) -> bool:
        """Whether the last ids begin a number that may go on."""
        numtok = tokenizer.numtok
        if numtok.representations[0].one_token:
            return False
        symbols = set(numtok.tokens.values())
        begins = {numtok.tokens.get(NUM), numtok.tokens.get(f" {NUM}")}
        end, bracketed = numtok.tokens.get(END_NUM), numtok.representations[0].bracketed
        run = 0
        while run < len(self._ids) and self._ids[-1 - run] in symbols:
            run += 1
            if bracketed and self._ids[-run] in (end, *begins):
                return self._ids[-run] != end
        length = numtok.representations[0].length or 1
        return not bracketed and run % length > 0
