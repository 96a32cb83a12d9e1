"""Text to tensors, the public way: a tokenizer, Parquet, ``NumberDataset``.

In: texts, and a representation of their numbers. Out: the tokenizer that wrote the file, its
    schema, and all rows as one batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

import numtok
from numtok.corpus import tokenizer_of
from numtok.tokenizer.train import save_tokenizer, train_tokenizer
from numtok_torch import NumberCollator, NumberDataset

# The pre-tokenizer of Llama 3: digits from the left in groups of three.
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GROUPS = 1110  # groups of one to three digits
SCALE_OPTIONS = {"scale", "fit_quantile"}  # options that say how xVal's scale is chosen

Rule = Callable[
    [npt.NDArray[Any]], npt.NDArray[Any]
]  # from the ids of a row to its labels or spans


@dataclass(frozen=True)
class Encoded:
    """Encoded texts.

    Attributes:
        tokenizer: the tokenizer of the file, with the fitted scale.
        schema: schema of the file.
        rows: rows of the file.
    """

    tokenizer: numtok.Tokenizer
    schema: pa.Schema
    rows: NumberDataset

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Encode other texts with the same tokenizer and scale."""
        batch = self.tokenizer.encode_batch(list(texts))
        return Encoded(self.tokenizer, self.schema, NumberDataset(batch))

    def batch(
        self, mask_spans: Rule | None = None, labels: Rule | None = None, **options: Any
    ) -> dict[str, Tensor]:
        """Return all rows as one batch, padded at the end.

        Args:
            mask_spans: returns the spans of a row that are masked, int [k, 2], from its ids.
            labels: returns the labels of a row from its ids.
            options: options of the collator.
        """
        rows = [self.rows[index] for index in range(len(self.rows))]
        for key, rule in (("mask_spans", mask_spans), ("labels", labels)):
            if rule is not None:
                rows = [{**row, key: rule(row["input_ids"])} for row in rows]
        options = {"objective": None} | options
        return NumberCollator.from_schema(self.schema, pad_token_id=0, **options)(rows)

    def answer_labels(self, text: str) -> Rule:
        """Return a rule that labels the answer of a row: -100 up to the last occurrence of the
        token that ``text`` ends with, and the ids after it.
        """
        mark = self.last_token(text)

        def labels(ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
            labelled = ids.copy()
            labelled[: np.flatnonzero(ids == mark)[-1] + 1] = -100
            return labelled

        return labels

    def token_id(self, token: str) -> int:
        """Return the id of a token."""
        (number,) = self.tokenizer.encode(token, parse_special=True).input_ids
        return int(number)

    def last_token(self, text: str) -> int:
        """Return the id of the last token of a text."""
        return int(self.tokenizer.encode(text).input_ids[-1])


def encode(
    texts: Sequence[str],
    numbers: Any,
    folder: Path,
    vocabulary: int = 300,
    tokenizer: Path | None = None,
    **options: Any,
) -> Encoded:
    """Encode texts to Parquet, and return its rows.

    Args:
        texts: one document each.
        numbers: representation, as ``numtok.encode_files`` takes it. ``subword`` leaves numbers to
            a tokenizer that groups digits by three from the left, as Llama 3's does.
        folder: folder for text, tokenizer and Parquet.
        vocabulary: size of the tokenizer that is trained on the texts; with ``subword``, without
            the groups of digits.
        tokenizer: use this tokenizer instead.
        options: further options of ``numtok.encode_files``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source, parquet = folder / "texts.jsonl", folder / "texts.parquet"
    with source.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    if tokenizer is None:
        tokenizer = train(texts, folder / "tokenizer", vocabulary, subword=numbers == "subword")
    if isinstance(numbers, str) and "xval" in numbers and not SCALE_OPTIONS & options.keys():
        options.setdefault("clip", 5.0)  # the paper's; clipping a few numbers is intended
    numtok.encode_files(
        source, parquet, tokenizer=tokenizer, numbers=numbers, overwrite=True, **options
    )
    fitted = tokenizer_of(parquet, tokenizer)
    rows = NumberDataset(parquet, tokenizer=fitted)
    return Encoded(fitted, rows.schema, rows)


def train(texts: Sequence[str], folder: Path, vocabulary: int, subword: bool = False) -> Path:
    """Train a tokenizer on texts, save it to ``folder``, and return the folder.

    Args:
        texts: training texts.
        folder: created if it is missing.
        vocabulary: size.
        subword: whether the tokenizer has Llama 3's groups of digits too, and so is larger.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if subword:
        train_subword(texts, folder, vocabulary + GROUPS)
    else:
        save_tokenizer(train_tokenizer(texts, vocabulary), folder, overwrite=True)
    return folder


def train_subword(texts: Sequence[str], folder: Path, size: int) -> None:
    """Train a byte-level BPE with the pre-tokenizer of Llama 3, and save it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA_3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
