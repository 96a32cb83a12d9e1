"""Train answers only: rows whose questions have no loss.

In: a data set whose documents are questions with their answers. Out: the same rows with ``labels``
int64 (tokens,): -100 up to the end of each question, the ids of the answer after it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from torch.utils.data import Dataset

from numtok.errors import SchemaError
from numtok_torch.data.masking import IGNORED


def answers_only(data: Any, tokenizer: Any, after: str) -> AnswersOnly:
    """Return ``data`` with labels for the answers alone.

    Args:
        data: rows by number, such as a :class:`~numtok_torch.NumberDataset`, with ``input_ids``
            int (tokens,).
        tokenizer: the ``numtok.Tokenizer`` or ``numtok.hf.NumberTokenizer`` that encoded the rows.
        after: the text that ends each question, such as ``"Answer:"``. Only its last token counts:
            the answer begins behind the last such token of a document. With ``"1 + 1 ="`` that is
            `` =``, whichever the numbers are.

    Rows of several documents (``block_size``, packed files) are read document by document. Of a
    document that is cut by the end of a row, a part without the token has no labels, as it may be a
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
        SchemaError: for a document, or the first of such rows, without the token, when it is asked
            for.
    """
    inner = getattr(tokenizer, "numtok", tokenizer)  # of a numtok.hf.NumberTokenizer
    return AnswersOnly(data, int(inner.encode(after).input_ids[-1]), after)


class AnswersOnly(Dataset[dict[str, Any]]):
    """The rows of :func:`answers_only`. Attributes of the data set, such as ``schema``, are kept.

    Args:
        data: rows by number.
        end: the id of the token that ends each question.
        after: the text of that token, for errors.
    """

    def __init__(self, data: Any, end: int, after: str) -> None:
        self.data, self.end, self.after = data, end, after

    def __getattr__(self, name: str) -> Any:
        if name == "data":  # while a copy is made, before there are attributes
            raise AttributeError(name)
        return getattr(self.data, name)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self.data[index]
        labels = np.array(row["input_ids"], np.int64)  # (tokens,)
        is_end = labels == self.end
        if not is_end.any() and (index == 0 or "position_ids" not in row):
            raise SchemaError(
                f"row {index} has no token that ends {self.after!r} (id {self.end}), so its answer"
                " cannot be told from its question; give the text that ends every question"
            )
        for start, stop in _documents(row):
            ends = np.flatnonzero(is_end[start:stop])
            labels[start : start + ends[-1] + 1 if ends.size else stop] = IGNORED
        labelled: dict[str, Any] = type(row)({**row, "labels": labels})
        return labelled


def _documents(row: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield the span of each document of a row, in tokens."""
    tokens = len(row["input_ids"])
    positions = row.get("position_ids")
    starts = [0] if positions is None else np.flatnonzero(np.asarray(positions) == 0).tolist()
    return itertools.pairwise([*starts, tokens])
