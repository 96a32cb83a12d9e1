"""Which documents are encoded and in which order: samples, splits and shuffles hold every document
once, are the same for everybody, and errors name the place that a document had.
"""

import json
from collections import Counter
from pathlib import Path

import jobs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from input_files import write_texts

import numtok
from numtok.corpus import pieces
from numtok.corpus.sample import Sample, parse_split
from numtok.errors import JobError, OutputError

KEPT = {"keep_columns": ["id"], "keep_text": True, "scale": 1.0}
SPLIT = "train=0.7,validation=0.2,test=0.1"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return jobs.make_corpus(tmp_path_factory.mktemp("corpus") / "in", 120)


def ids(path):
    """The names of all documents in their order."""
    table = jobs.table(path) if path.is_dir() else pq.read_table(path)
    return table["id"].to_pylist()


def displaced(order, before):
    """How far a document is from its place, on the average; a third if all is random."""
    places = {name: place for place, name in enumerate(before)}
    away = [abs(places[name] - place) for place, name in enumerate(order)]
    return float(np.mean(away)) / len(before)


# Samples and splits


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


def test_a_document_stays_where_it_is(corpus, tmp_path):
    """When others come; and equal texts are never in two splits."""
    numtok.encode_files(corpus, tmp_path / "out", split=SPLIT, shards=3, **KEPT)
    before = {name: set(ids(tmp_path / "out" / name)) for name in ("train", "validation", "test")}
    more = tmp_path / "more.jsonl"
    texts = [jobs.row("a", number)["text"] for number in range(120)]
    rows = [{"id": f"more{number}", "text": text} for number, text in enumerate(texts)]
    rows += [{"id": f"new{number}", "text": f"new {number}"} for number in range(99)]
    more.write_text("".join(json.dumps(row) + "\n" for row in rows))
    summary = numtok.encode_files([corpus, more], tmp_path / "out", split=SPLIT, shards=3, **KEPT)
    assert summary.documents == 819 and summary.resumed
    for name, old in before.items():
        now = set(ids(tmp_path / "out" / name))
        assert old < now
        copied = {f"more{one[1:]}" for one in old if one.startswith("a")}
        assert copied == {one for one in now if one.startswith("more")}


def test_all_splits_have_the_scale_of_the_first_and_one_card(corpus, tmp_path, monkeypatch):
    datasets, hub = pytest.importorskip("datasets"), pytest.importorskip("huggingface_hub")
    out, options = tmp_path / "out", {"split": "train=0.9,test=0.1", "shards": 4, "card": True}
    numtok.encode_files(corpus, out, **options, shard=(1, 2))
    assert not (out / "README.md").exists()
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


def test_a_sample_is_by_the_text_and_the_seed(tmp_path):
    texts = pa.array([f"is {number}" for number in range(2000)] + [None, ""])
    taken = Sample.parse("0.25:0.5", 0).of(texts)
    assert 420 < taken.sum() < 580 and taken[-1] == taken[-2]
    others = [Sample.parse(given, 0).of(texts) for given in ("0:0.25", "0.5:1")]
    assert (taken ^ others[0] ^ others[1]).all()
    assert (Sample.parse("0.25:0.5", 0).of(texts[::-1]) == taken[::-1]).all()
    assert (Sample.parse("0.25:0.5", 0).of(texts[7:300]) == taken[7:300]).all()
    assert (Sample.parse("0.25:0.5", 1).of(texts) != taken).sum() > 500
    (tmp_path / "in.txt").write_text("\n".join(texts.to_pylist()[:2000]))
    made = numtok.encode_files(tmp_path / "in.txt", tmp_path / "out.parquet", sample="0.25:0.5")
    assert made.documents == taken[:2000].sum() == pq.read_metadata(made.output).num_rows


def test_a_split_is_of_a_folder(tmp_path):
    with pytest.raises(OutputError, match=r"out\.parquet is a file, or named like one"):
        numtok.encode_files(tmp_path, tmp_path / "out.parquet", split="a=0.5,b=0.5")


def test_shares_add_up_exactly():
    assert parse_split("a=0.1,b=0.2,c=0.7") == {"a": "0:0.1", "b": "0.1:0.3", "c": "0.3:1.0"}
    tenths = [f"s{n}" for n in range(10)]
    assert list(parse_split(",".join(f"{name}=0.1" for name in tenths))) == tenths


# Shuffles


@pytest.mark.parametrize("out", ["one.parquet", "folder"])
def test_a_shuffle_holds_each_document_once(out, corpus, tmp_path):
    options = dict(KEPT) if out.endswith("parquet") else {**KEPT, "shards": 3, "workers": 1}
    numtok.encode_files(corpus, tmp_path / out, **options)
    numtok.encode_files(corpus, tmp_path / f"7{out}", shuffle=7, **options)
    numtok.encode_files(corpus, tmp_path / f"8{out}", shuffle=8, **options)
    before, seven, eight = (ids(tmp_path / f"{seed}{out}") for seed in ("", 7, 8))
    assert Counter(seven) == Counter(eight) == Counter(before) and len(before) == 600
    assert 0.2 < displaced(seven, before) < 0.45 and 0.2 < displaced(seven, eight) < 0.45
    numtok.decode_files(tmp_path / f"7{out}", tmp_path / "back.jsonl")
    back = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text().splitlines()]
    texts = {row["id"]: row["text"] for row in back}
    assert all(texts[f"a{n}"] == jobs.row("a", n)["text"] for n in range(120))


def test_the_bytes_of_a_shuffle_do_not_depend_on_who_writes_them(corpus, tmp_path):
    """Nor on a kill; and mended inputs are cut again where they were cut."""
    options = {**KEPT, "shards": 3, "shuffle": 0}
    numtok.encode_files(corpus, tmp_path / "a", workers=1, **options)
    for share in ((2, 2), (1, 2)):
        numtok.encode_files(corpus, tmp_path / "b", shard=share, workers=3, **options)
    assert jobs.everything(tmp_path / "a") == jobs.everything(tmp_path / "b")
    (tmp_path / "b" / "__numtok" / "000001.json").unlink()
    assert numtok.encode_files(corpus, tmp_path / "b", workers=1, **options).resumed == 2
    assert jobs.everything(tmp_path / "a") == jobs.everything(tmp_path / "b")
    with pytest.raises(JobError, match="shuffle was 0, now it is 1"):
        numtok.encode_files(corpus, tmp_path / "b", **{**options, "shuffle": 1})


def rows_of_ids(count):
    return [json.dumps({"id": str(n), "text": f"is {n}"}) + "\n" for n in range(count)]


def test_blocks_bound_what_is_in_memory(tmp_path, monkeypatch):
    """Documents move within a block alone."""
    given, out = tmp_path / "in.jsonl", tmp_path / "out.parquet"
    given.write_text("".join(rows_of_ids(4000)))
    monkeypatch.setattr(pieces, "BLOCK_BYTES", 4000)
    numtok.encode_files(given, out, shuffle=1, batch_bytes=500, **KEPT)
    order = list(map(int, ids(out)))
    away = np.abs(np.array(order) - np.arange(4000))
    assert sorted(order) == list(range(4000)) and 20 < away.mean() < 200 and away.max() < 600


@pytest.mark.parametrize("out", ["one.parquet", "folder/"])
def test_errors_name_the_row_that_the_document_had(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [f"is {n}" for n in range(300)]
    write_texts(Path("a.jsonl"), texts)
    write_texts(Path("b.jsonl"), [*texts[:123], "is 1e99", *texts[124:]])
    how = {"numbers": "bits", "overflow": "error", "shuffle": 3, "workers": 1}
    with pytest.raises(numtok.NumtokError, match=r"b\.jsonl.*124.*1e99"):
        numtok.encode_files(["a.jsonl", "b.jsonl"], out, **how)


def test_left_out_rows_and_documents_without_a_text_have_their_places(tmp_path):
    rows, given = rows_of_ids(400), tmp_path / "in.jsonl"
    rows[77], rows[300] = "{broken\n", '{"text": null}\n'
    given.write_text("".join(rows))
    how = {"shards": 3, "shuffle": 5, "on_error": "skip", "workers": 1}
    made = numtok.encode_files(given, tmp_path / "out/", **how)
    assert made.documents == 399 and made.first_without_text.endswith("in.jsonl, row 301")
    assert json.loads(Path(made.quarantine).read_text())["line"] == 78


def test_a_mended_input_of_a_shuffled_job_is_cut_again(tmp_path):
    rows, given, out = rows_of_ids(400), tmp_path / "in.jsonl", tmp_path / "out"
    options = {**KEPT, "shards": 4, "shuffle": 5, "workers": 1}
    given.write_text("".join(rows))
    numtok.encode_files(given, out, **options)
    given.write_text("".join([*rows[:200], '{"id": "new", "text": "is new"}\n', *rows[200:]]))
    assert numtok.encode_files(given, out, **options).resumed == 3
    assert sorted(ids(out)) == sorted([*map(str, range(400)), "new"])
