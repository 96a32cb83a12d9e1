"""Folders of shards as they are read: by numtok, by torch, by other programs."""

import json
import os
import shutil
from pathlib import Path

import jobs
import pyarrow.parquet as pq
import pytest
from input_files import decoded, lines_of, write_rows
from tokenizers import Tokenizer as Source

import numtok
from numtok.corpus import tokenizer_of
from numtok.errors import InputError
from numtok.tokenizer.tokenizer_json import DEFAULT_FOLDER
from numtok_torch import IterableNumberDataset, NumberDataset

corpus, _ = jobs.fixtures(60)


@pytest.fixture(scope="module")
def folder(corpus, tmp_path_factory):
    """Four shards by a tokenizer that is neither the default one nor has a name."""
    config = json.loads((DEFAULT_FOLDER / "tokenizer.json").read_text())
    config["model"]["merges"] = config["model"]["merges"][:3000]
    folder = tmp_path_factory.mktemp("folder") / "train-data"
    source = Source.from_str(json.dumps(config))
    how = {"keep_text": True, "keep_columns": ["id"], "shards": 4, "workers": 1}
    numtok.encode_files(corpus, folder, tokenizer=source, numbers="xval,bits", **how)
    return folder


def ids(folder):
    return jobs.table(folder)["input_ids"].to_pylist()


def test_texts_come_back_with_the_tokenizer_that_lies_beside(folder, tmp_path):
    """Of the folder, and of one shard; whatever else lies there is not read."""
    out, shard = tmp_path / "out", folder / "00001-of-00004.parquet"
    shutil.copytree(folder, out)
    (out / "more").mkdir()
    for name in ("index.json", "notes.txt", "more/b.jsonl"):
        (out / name).write_text('{"version": 2}')
    numtok.decode_files(out, tmp_path / "back.jsonl")
    back = lines_of(tmp_path / "back.jsonl")
    assert back[:60] == [jobs.row("a", number) for number in range(60)] and len(back) == 300
    exported = numtok.export_files(out, tmp_path / "all")
    assert exported.sequences == len([row for row in back if row["text"] is not None])
    other = numtok.Tokenizer.from_pretrained(numbers="xval,bits")
    assert tokenizer_of(folder) == tokenizer_of(shard) != other
    made = json.loads(pq.read_schema(shard).metadata[b"numtok"])["tokenizer"]
    assert tokenizer_of(folder).fingerprint == made
    numtok.decode_files(shard, tmp_path / "one.txt")
    numtok.encode_files(folder, tmp_path / "again.parquet", text_column="text", numbers="bits")
    assert pq.read_metadata(tmp_path / "again.parquet").num_rows == 300


def test_torch_reads_the_shards_in_order(folder):
    expected = [row for row in ids(folder) if row is not None]
    data = NumberDataset(folder, nulls="skip")
    for rows in (map(data.__getitem__, range(len(data))), IterableNumberDataset(folder)):
        assert [row["input_ids"].tolist() for row in rows] == expected


def test_a_job_that_is_not_finished_is_not_read(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "out")
    (tmp_path / "out" / "__numtok" / "manifest.json").unlink()
    told = r"out: its job is not finished, .*or finish it"
    for read in (NumberDataset, tokenizer_of, decoded):
        with pytest.raises(InputError, match=told):
            read(tmp_path / "out")
    numtok.finish_job(tmp_path / "out")
    assert len(NumberDataset(tmp_path / "out", nulls="skip"))


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("run:1", "arrow"),
        ("file:", "parquet"),
        ("%20", "arrow"),
        ("[a]*?", "parquet"),
        (os.fsdecode(b"\xff"), "arrow"),
        (os.fsdecode(b"\xff"), "parquet"),
    ],
)
def test_a_folder_may_be_called_as_it_likes(name, suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        Path(name).mkdir()
    except OSError:
        pytest.skip("the file system has no such names")
    rows = [{"text": "5.5 kg"}, {"text": None}]
    write_rows(Path(name, f"a.{suffix}"), rows)
    how = {"numbers": "bits", "keep_text": True, "output_format": suffix}
    numtok.encode_files(f"{name}/a.{suffix}", f"{name}/out/", **how)
    numtok.decode_files(f"{name}/out", f"{name}/back.jsonl")
    assert lines_of(Path(name, "back.jsonl")) == rows
    assert NumberDataset(f"{name}/out", nulls="skip")[0]["number_value"] == [5.5]
    Path(name, "b.jsonl").write_text('{"text": "5"}\noops\n')
    for out in ("b.parquet", "b/"):
        made = numtok.encode_files(
            f"{name}/b.jsonl", f"{name}/{out}", numbers="bits", on_error="skip"
        )
        assert lines_of(Path(made.quarantine))[0]["file"] == f"{name}/b.jsonl"
