"""Packed files in torch: rows say where documents begin, and no model sees one document from within
another.
"""

import itertools

import numpy as np
import pyarrow.parquet as pq
import pytest
from input_files import read_encoded, write_texts

import numtok
from numtok.errors import SchemaError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import torch_models as tiny

from numtok_torch import NumberModel, embedding_from_schema
from numtok_torch.data import IterableNumberDataset, NumberCollator, NumberDataset

TEXTS = [f"the sum of {n} and -{n}.5 is {2 * n + 1}, " * (1 + n % 4) for n in range(30)]
LENGTH = 48


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One text packed in each way, and in a file of another kind."""
    folder = tmp_path_factory.mktemp("packed")
    source = write_texts(folder / "in.jsonl", TEXTS)
    options = {"numbers": "xval", "scale": 0.05, "keep_text": True, "pack": LENGTH}
    numtok.encode_files(source, folder / "sequential.parquet", **options)
    numtok.encode_files(source, folder / "best-fit.arrow", **options, pack_mode="best-fit")
    return folder


@pytest.mark.parametrize("name", ["sequential.parquet", "best-fit.arrow"])
def test_rows_say_where_documents_begin(name, folder):
    tok, path = numtok.Tokenizer.from_pretrained(None, "xval"), folder / name
    data = NumberDataset(path, nulls="skip")
    assert len(data) == len(list(IterableNumberDataset(path)))
    tokens = sum(len(tok.encode(text)) + 1 for text in TEXTS)
    assert sum(len(row["input_ids"]) for row in data) == tokens
    streams = {"input_ids", "number_index", "number_value", "number_scaled", "position_ids"}
    for number, row in enumerate(data):
        assert set(row) == streams
        places = [place for _, place in pieces(path, [number])]
        positions = [range(place.stop - place.start) for place in places]
        assert row["position_ids"].tolist() == list(itertools.chain(*positions))
        assert all(row["input_ids"][place.stop - 1] == 0 for place in places[:-1])  # the end token
        assert (row["number_value"] == np.round(row["number_scaled"] / 0.05, 1)).all()
    assert all("position_ids" not in row for row in NumberDataset(path, separate=False))
    with pytest.raises(
        SchemaError, match="packed already, in 48 tokens each; leave out block_size"
    ):
        NumberDataset(path, block_size=8)


def test_rows_of_datasets_give_the_same_batch(folder):
    """What ``datasets`` reads has lists, and the columns of the file, whatever they are for."""
    datasets = pytest.importorskip("datasets")
    path = folder / "sequential.parquet"
    rows = list(datasets.Dataset(pq.read_table(path)))
    assert {"seq_lengths", "seq_documents", "seq_remaining", "number_text"} <= set(rows[0])
    data = NumberDataset(path)
    collate = NumberCollator.from_schema(data.schema, 0, objective="causal")
    batch, mine = collate(rows), collate(list(data))
    assert batch.keys() == mine.keys() and "attention_mask" not in batch
    for name, values in mine.items():
        torch.testing.assert_close(batch[name], values, rtol=0, atol=0)
    assert (batch["labels"][batch["position_ids"] == 0] == -100).all()
    cut = NumberCollator.from_schema(data.schema, 0, max_length=20, objective=None)
    with pytest.warns(UserWarning, match="cuts"):
        assert (cut(rows)["position_ids"] == batch["position_ids"][:, :20]).all()
    wrong = [{**rows[0], "seq_lengths": [1, 2]}]
    with pytest.raises(
        SchemaError, match="row 0: 'seq_lengths' has 3 values, but there are 48 tokens"
    ):
        collate(wrong)


def pieces(path, rows):
    """The line and the places of every piece, as the file has them."""
    stored = [row for batch in read_encoded(path) for row in batch["seq_lengths"].to_pylist()]
    ends = [list(itertools.accumulate(stored[row], initial=0)) for row in rows]
    return [
        (line, slice(*edge))
        for line, edges in enumerate(ends)
        for edge in itertools.pairwise(edges)
    ]


def piece(batch, line, place):
    """One of them alone."""
    names = batch.keys() - {"position_ids"}
    return {name: batch[name][line : line + 1, place] for name in names}


@pytest.mark.parametrize(
    ("source", "model"), [("NumberDataset", "stock"), ("datasets", "stock"), ("datasets", "number")]
)
def test_the_trainer_keeps_documents_apart(source, model, folder, tmp_path):
    """The loss that the Trainer logs is the mean over the tokens of all pieces alone, as it would
    not be if one saw the one before it.
    """
    datasets = pytest.importorskip("datasets")
    path = folder / "sequential.parquet"
    data = NumberDataset(path)
    collate = NumberCollator.from_schema(data.schema, 0, objective="causal")
    made = tiny.backbone("llama", vocab_size=data.metadata["vocab_size"])
    if model == "number":
        made = NumberModel(made, embedding_from_schema(data.schema, tiny.D))
    arguments = tiny.arguments(
        tmp_path,
        max_steps=1,
        per_device_train_batch_size=len(data),
        learning_rate=0.0,
        remove_unused_columns=model == "number" or source == "NumberDataset",
    )
    rows = datasets.Dataset(pq.read_table(path)) if source == "datasets" else data
    batch = collate(list(data))
    if model == "stock" and source == "datasets":  # a stock model takes no streams: leave them out
        collate.drop = [*collate.drop, "number_mask", "number_value", "number_scaled"]
    trainer = transformers.Trainer(made, arguments, data_collator=collate, train_dataset=rows)
    trainer.train()
    logged = next(entry["loss"] for entry in trainer.state.log_history if "loss" in entry)
    made.eval()
    total, count = 0.0, 0
    for line, place in pieces(path, list(range(len(data)))):
        one = piece(batch, line, place)
        ids = one["input_ids"]
        one = {name: one[name] for name in one if name != "labels" and model == "number"}
        with torch.no_grad():
            logits = made(**one | {"input_ids": ids}).logits[0, :-1]
        total += float(torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum"))
        count += len(logits)
    assert abs(logged - total / count) < 2e-4 * logged
