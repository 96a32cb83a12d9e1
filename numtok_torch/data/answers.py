"""Train answers only: rows whose questions have no loss.

In: a data set whose documents are questions with their answers. Out: the same rows with ``labels``
int64 (tokens,): -100 up to the end of each question, the ids of the answer after it.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
from torch.utils.data import Dataset

from numtok.errors import SchemaError
from numtok.numbers.extract import extract
from numtok_torch.data.masking import IGNORED
from numtok_torch.data.tokens import numtok_of


def answers_only(data: Any, tokenizer: Any, after: str) -> AnswersOnly:
    """Return ``data`` with labels for the answers alone.

    Args:
        data: rows by number, such as a :class:`~numtok_torch.NumberDataset`, with ``input_ids``
            int (tokens,).
        tokenizer: the ``numtok.Tokenizer`` or ``numtok.hf.NumberTokenizer`` that encoded the rows.
        after: the text that ends each question, such as ``"Answer:"``. The answer begins behind the
            last such text of a document that ends with a token. Only what stands behind its last
            number counts, of several lines the last that is not blank: `` =`` of ``"1 + 1 ="``,
            whichever the numbers are.

    Rows of several documents (``block_size``, packed files) are read document by document. Of a
    document that is cut by the end of a row, a part without the text has no labels, as it may be a
    question.

    Examples:
        >>> import numtok
        >>> from numtok_torch import NumberDataset, answers_only
        >>> tokenizer = numtok.Tokenizer.from_pretrained(numbers="digits:1")
        >>> rows = NumberDataset(tokenizer.encode_batch(["2 + 2 = 4"]), tokenizer=tokenizer)
        >>> labels = answers_only(rows, tokenizer, "1 + 1 =")[0]["labels"]
        >>> tokenizer.decode(labels[labels != -100])
        ' 4'

    Raises:
        SchemaError: for an ``after`` that is empty or ends with a number; for a document, or the
            first of such rows, without the text, when it is asked for.
        TokenizerError: for a tokenizer without numtok's inside.
    """
    return AnswersOnly(data, tokenizer, after)


class AnswersOnly(Dataset[dict[str, Any]]):
    """The rows of :func:`answers_only`. Attributes of the data set, such as ``schema``, are kept.

    A question ends with the last token of ``after``, and before it the text that stands behind the
    last number of ``after``, on its last line that is not blank. The tokens in front of the last
    one differ with what stands before them, their text does not.
    """

    def __init__(self, data: Any, tokenizer: Any, after: str) -> None:
        self.data, self.tokenizer, self.after = data, numtok_of(tokenizer), after
        numbers = extract(after, self.tokenizer.grammar)
        text = after[numbers[-1].stop :] if numbers else after
        lines = text.strip().splitlines()
        if not after or (numbers and not lines):
            raise SchemaError(
                f"after={after!r} must end with text that is no number, such as 'Answer:'; give what"
                " stands at the end of every question"
            )
        behind = lines[-1] if lines else ""
        self.last_id = int(self.tokenizer.encode(after).input_ids[-1])
        self._end = self._squeezed(self.tokenizer.encode(behind).input_ids)
        before = ("", " ", "\n")  # found at once: to decode other cuts takes half a millisecond
        self._common_cuts = [self.tokenizer.encode(one + behind).input_ids for one in before]
        # with the white space behind it; a token has a byte or more, and one may be a mark
        self._most_tokens = len(text[text.rindex(behind) :].encode()) + 1

    def __getattr__(self, name: str) -> Any:
        if name == "data":  # while a copy is made, before there are attributes
            raise AttributeError(name)
        return getattr(self.data, name)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self.data[index]
        labels = np.array(row["input_ids"], np.int64)  # (tokens,)
        positions = row.get("position_ids")
        starts = [0] if positions is None else np.flatnonzero(np.asarray(positions) == 0).tolist()
        spans = list(itertools.pairwise([*starts, len(labels)]))
        lengths = [self._question_length(labels[start:stop]) for start, stop in spans]
        if not any(lengths) and (index == 0 or positions is None):
            raise SchemaError(
                f"row {index} has no text {self.after!r} that ends with the token {self.last_id}, so"
                " its answer cannot be told from its question; give the text that ends every"
                " question"
            )
        for (start, stop), length in zip(spans, lengths, strict=True):
            labels[start : start + length if length else stop] = IGNORED
        labelled: dict[str, Any] = type(row)({**row, "labels": labels})
        return labelled

    def _question_length(self, ids: npt.NDArray[np.int64]) -> int:
        """Return how many tokens the question of a document has, int64 (tokens,); 0 without one."""
        for last in np.flatnonzero(ids == self.last_id)[::-1].tolist():
            until = ids[: last + 1][-self._most_tokens :]
            common = (np.array_equal(until[-len(cut) :], cut) for cut in self._common_cuts)
            if any(common) or self._squeezed(until).endswith(self._end):
                return int(last) + 1
        return 0

    def _squeezed(self, ids: npt.NDArray[Any]) -> str:
        """Return the text of some tokens without its white space, some of which tokenizers add."""
        return "".join(self.tokenizer.decode(ids.tolist()).split())
