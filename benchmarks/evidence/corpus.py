"""Text to tensors: a tokenizer, Parquet, ``NumberDataset``.

In: texts, and what their numbers are encoded as. Out: the tokenizer that wrote the file, its
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

Rule = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]  # ids to what a row gets beside them


@dataclass(frozen=True)
class Encoded:
    """A text file that was encoded.

    Attributes:
        tokenizer: that of the file, with the scale that was fitted.
        schema: of the file.
        rows: of the file.
    """

    tokenizer: numtok.Tokenizer
    schema: pa.Schema
    rows: NumberDataset

    def like(self, texts: Sequence[str]) -> Encoded:
        """Other texts by the same tokenizer, and with the same scale."""
        return Encoded(
            self.tokenizer, self.schema, NumberDataset(self.tokenizer.encode_batch(list(texts)))
        )

    def batch(
        self, mask_spans: Rule | None = None, labels: Rule | None = None, **options: Any
    ) -> dict[str, Tensor]:
        """All rows as one batch, padded at the end.

        Args:
            mask_spans: makes the stretches of a row that are masked, int [k, 2], of its ids.
            labels: makes a row's labels of its ids.
            options: of the collator.
        """
        rows = [self.rows[index] for index in range(len(self.rows))]
        for key, rule in (("mask_spans", mask_spans), ("labels", labels)):
            if rule is not None:
                rows = [{**row, key: rule(row["input_ids"])} for row in rows]
        return NumberCollator.from_schema(
            self.schema, pad_token_id=0, **{"objective": None} | options
        )(rows)

    def labels_behind(self, text: str) -> Rule:
        """Labels of a row: its ids, and -100 up to the last token like that which the text ends
        with.
        """
        mark = self.token(text)

        def labels(ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
            found = ids.copy()
            found[: np.flatnonzero(ids == mark)[-1] + 1] = -100
            return found

        return labels

    def id_of(self, token: str) -> int:
        """The id of a token of the tokenizer."""
        (found,) = self.tokenizer.encode(token, parse_special=True).input_ids
        return int(found)

    def token(self, text: str) -> int:
        """The id of the token that a text ends with."""
        return int(self.tokenizer.encode(text).input_ids[-1])


FITTED = {"scale", "fit_quantile"}  # options that say how xVal's scale is chosen


def encode(
    texts: Sequence[str],
    numbers: Any,
    folder: Path,
    vocabulary: int = 300,
    tokenizer: Path | None = None,
    **options: Any,
) -> Encoded:
    """Texts into Parquet, and back as rows.

    Args:
        texts: one document each.
        numbers: as ``numtok.encode_files`` takes it; ``subword`` leaves them to a tokenizer that
            groups digits by three from the left, as Llama 3's does.
        folder: gets text, tokenizer and Parquet.
        vocabulary: of the tokenizer that is trained on the texts; with ``subword`` the groups of
            digits come on top.
        tokenizer: take this one instead.
        options: further ones of ``numtok.encode_files``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source, parquet = folder / "texts.jsonl", folder / "texts.parquet"
    with source.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    if tokenizer is None:
        tokenizer = train(texts, folder / "tokenizer", vocabulary, subword=numbers == "subword")
    if isinstance(numbers, str) and "xval" in numbers and not FITTED & options.keys():
        options.setdefault("clip", 5.0)  # the paper's: that some numbers are clipped is meant
    numtok.encode_files(
        source, parquet, tokenizer=tokenizer, numbers=numbers, overwrite=True, **options
    )
    found = tokenizer_of(parquet, tokenizer)
    rows = NumberDataset(parquet, tokenizer=found)
    return Encoded(found, rows.schema, rows)


def train(texts: Sequence[str], folder: Path, vocabulary: int, subword: bool = False) -> Path:
    """A tokenizer of the texts in the folder; with ``subword`` it has Llama 3's groups of digits
    too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if subword:
        train_subword(texts, folder, vocabulary + 1110)
    else:
        save_tokenizer(train_tokenizer(texts, vocabulary), folder, overwrite=True)
    return folder


def train_subword(texts: Sequence[str], folder: Path, size: int) -> None:
    """A byte-level BPE with the groups of digits of Llama 3's."""
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
