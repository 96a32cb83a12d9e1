"""Splits hold every document once, and the same ones for everybody."""

from collections import Counter
from pathlib import Path

import jobs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from input_files import lines_of

import numtok
from numtok.corpus.split import HashRange
from numtok.errors import JobError

KEPT = {"keep_columns": ["id"], "keep_text": True, "scale": 1.0}
SPLIT = "train=0.7,validation=0.2,test=0.1"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return jobs.make_corpus(tmp_path_factory.mktemp("corpus") / "in", 120)


def ids(path):
    """The names of all documents in their order."""
    table = jobs.table(path) if path.is_dir() else pq.read_table(path)
    return table["id"].to_pylist()


def test_a_split_holds_each_document_once(corpus, tmp_path):
    out = tmp_path / "out"
    summary = numtok.encode_files(corpus, out, split=SPLIT, shards=3, **KEPT)
    parts = {name: ids(out / name) for name in ("train", "validation", "test")}
    assert summary.splits == {name: len(part) for name, part in parts.items()}
    assert summary.documents == 600 and summary.output == str(out)
    assert 0.64 < len(parts["train"]) / 600 < 0.76
    numtok.encode_files(corpus, tmp_path / "one.parquet", **KEPT)
    whole = ids(tmp_path / "one.parquet")
    assert Counter(name for part in parts.values() for name in part) == Counter(whole)
    for part in parts.values():
        assert part == [name for name in whole if name in set(part)]  # and in their order


def test_all_splits_have_the_scale_of_the_first_and_one_card(corpus, tmp_path, monkeypatch):
    datasets, hub = pytest.importorskip("datasets"), pytest.importorskip("huggingface_hub")
    out, options = tmp_path / "out", {"split": "train=0.9,test=0.1", "shards": 4, "card": True}
    numtok.encode_files(corpus, out, **options, shard=(1, 2))
    assert not (out / "README.md").exists()
    with pytest.raises(
        JobError, match=r"out: is not the folder of a job.*that of a split, .*out/te"
    ):
        numtok.finish_job(out)
    made = numtok.encode_files(corpus, out, **options)
    scales = {
        numtok.corpus.tokenizer_of(out / name).representations[0].scale
        for name in ("train", "test")
    }
    assert len(scales) == 1 and made.fit is not None
    loaded = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert {name: len(rows) for name, rows in loaded.items()} == made.splits
    card = hub.DatasetCard.load(out / "README.md").data.to_dict()["numtok"]
    assert card["rows"] == made.splits and card["report"]["documents"] == 600
    assert not (out / "train" / "README.md").exists()
    before = jobs.files(out)
    (out / "README.md").unlink()
    (out / "test" / "__numtok" / "manifest.json").unlink()
    assert numtok.encode_files(corpus, out, **options).resumed == made.shards
    assert jobs.files(out) == before


@pytest.mark.parametrize("split", ["a=0.5,b=0.5", "a=0.9,b=0.1"])
def test_rows_that_are_skipped_or_lack_a_text_are_counted_once(split, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "5"}\n{bad\n{"text": null}\n{"text": "6"}\n')
    how = {"split": split, "on_error": "skip", "scale": 1.0}
    made = numtok.encode_files(path, tmp_path / "out", **how)
    assert (made.documents, made.skipped, made.without_text) == (3, 1, 1)
    assert made.first_without_text == f"{path}, near row 2"
    assert [row["line"] for row in lines_of(Path(made.quarantine))] == [2]


def test_a_split_is_by_the_text_and_the_seed():
    texts = pa.array([f"is {number}" for number in range(2000)] + [None, ""])
    taken = HashRange.parse("0.25:0.5", 0).contains(texts)
    assert 420 < taken.sum() < 580 and taken[-1] == taken[-2]
    others = [HashRange.parse(given, 0).contains(texts) for given in ("0:0.25", "0.5:1")]
    assert (taken ^ others[0] ^ others[1]).all()
    assert (HashRange.parse("0.25:0.5", 0).contains(texts[::-1]) == taken[::-1]).all()
    assert (HashRange.parse("0.25:0.5", 0).contains(texts[7:300]) == taken[7:300]).all()
    assert (HashRange.parse("0.25:0.5", 1).contains(texts) != taken).sum() > 500
