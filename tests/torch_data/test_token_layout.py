"""Files in token layout give the batches, and the blocks, of the same texts in number layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import numtok
from numtok.corpus.write.encoded import open_writer
from numtok.tokenizer.token_layout import to_token_layout

torch = pytest.importorskip("torch")
from numtok_torch.data import IterableNumberDataset, NumberCollator, NumberDataset

TEXTS = ["is -28.5 or 1,234", "", "none", None, "7 8 9.25", *(f"{n} of 0.{n}" for n in range(20))]


def same(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=0, atol=0)


@pytest.mark.parametrize("numbers", ["xval,fone:3,2,bits", "place", "digits", "p10"])
@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_batches_and_blocks_are_the_same(numbers: str, suffix: str, tmp_path: Path) -> None:
    tok = numtok.Tokenizer.from_pretrained(None, numbers)
    batch = tok.encode_batch(TEXTS)
    path = tmp_path / f"token.{suffix}"
    with open_writer(path, to_token_layout(batch).schema) as writer:
        for first in range(0, len(TEXTS), 7):
            writer.write(to_token_layout(batch.slice(first, 7)))
    for options in ({}, {"block_size": 7}, {"block_size": 5, "separator": 0}):
        data, token = (NumberDataset(source, nulls="skip", **options) for source in (batch, path))
        assert len(data) == len(token) > 8
        collate = NumberCollator.from_schema(token.schema, 0, objective="causal")
        same(collate(list(data)), collate(list(token)))
        same(collate(list(data)), collate(list(IterableNumberDataset(path, **options))))
    small = NumberDataset(
        path, ["number_value"], block_size=2, nulls="skip"
    )  # of which spelled-out numbers reach out
    assert {"number_index", "number_value", "input_ids", "position_ids"} == set(small[0])
    assert (
        sum(len(row["number_index"]) for row in small)
        == sum(map(len, batch["number_index"].drop_null().to_pylist())) - small.cut_numbers
    )
    if suffix == "parquet":
        rows = [row for row in pq.read_table(path).to_pylist() if row["input_ids"] is not None]
        same(collate(rows), collate(list(NumberDataset(batch, nulls="skip"))))
