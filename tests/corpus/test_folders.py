"""Folders of shards as they are read: by numtok, by torch, by other programs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import jobs
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from input_files import lines_of
from tokenizers import Tokenizer as Source

import numtok
from numtok.corpus import tokenizer_of
from numtok.corpus.jobs.config import read_config
from numtok.engines.tokenizer_json import DEFAULT_FOLDER
from numtok.errors import InputError
from numtok_torch import IterableNumberDataset, NumberDataset


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return jobs.make_corpus(tmp_path_factory.mktemp("corpus") / "in", 60)


@pytest.fixture(scope="module")
def folder(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four shards by a tokenizer that is neither the default one nor has a name."""
    config = json.loads((DEFAULT_FOLDER / "tokenizer.json").read_text())
    config["model"]["merges"] = config["model"]["merges"][:3000]
    folder = tmp_path_factory.mktemp("folder") / "train-data"
    source = Source.from_str(json.dumps(config))
    how: Any = {"keep_text": True, "keep_columns": ["id"], "shards": 4, "workers": 1}
    numtok.encode_files(corpus, folder, tokenizer=source, numbers="xval,bits", **how)
    return folder


def ids(folder: Path) -> list[Any]:
    return jobs.table(folder)["input_ids"].to_pylist()  # type: ignore[no-any-return,unused-ignore]


def test_texts_come_back_with_the_tokenizer_that_lies_beside(folder: Path, tmp_path: Path) -> None:
    """Of the folder, and of one shard; whatever else lies there is not read."""
    shutil.copytree(folder, tmp_path / "out")
    for name in ("index.json", "notes.txt", "more/b.jsonl"):
        (tmp_path / "out" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "out" / name).write_text('{"version": 2}')
    numtok.decode_files(tmp_path / "out", tmp_path / "back.jsonl")
    back = lines_of(tmp_path / "back.jsonl")
    assert back[:60] == [jobs.row("a", number) for number in range(60)] and len(back) == 300
    exported = numtok.export_files(tmp_path / "out", tmp_path / "all")
    assert exported.sequences == len([row for row in back if row["text"] is not None])
    shard = folder / "000001.parquet"
    other = numtok.Tokenizer.from_pretrained(numbers="xval,bits")
    assert tokenizer_of(folder) == tokenizer_of(shard) != other
    made = json.loads(pq.read_schema(shard).metadata[b"numtok"])["tokenizer"]
    assert tokenizer_of(folder).fingerprint == made
    numtok.decode_files(shard, tmp_path / "one.txt")
    numtok.encode_files(folder, tmp_path / "again.parquet", text_column="text", numbers="bits")
    assert pq.read_metadata(tmp_path / "again.parquet").num_rows == 300


def test_torch_reads_the_shards_in_order(folder: Path) -> None:
    expected = [row for row in ids(folder) if row is not None]
    data = NumberDataset(folder, nulls="skip")
    assert [
        row["input_ids"].tolist() for row in map(data.__getitem__, range(len(data)))
    ] == expected
    assert [row["input_ids"].tolist() for row in IterableNumberDataset(folder)] == expected


def test_a_job_that_is_not_finished_is_not_read(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "out")
    (tmp_path / "out" / "__numtok" / "manifest.json").unlink()
    for read in (
        NumberDataset,
        lambda path: numtok.decode_files(path, tmp_path / "back.jsonl"),
        tokenizer_of,
    ):
        with pytest.raises(InputError, match=r"out: its job is not finished, .*or finish it"):
            read(tmp_path / "out")
    numtok.finish_job(tmp_path / "out")
    assert len(NumberDataset(tmp_path / "out", nulls="skip"))


def test_datasets(folder: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    loaded = datasets.load_dataset(
        "parquet", data_dir=str(folder), split="train", cache_dir=str(tmp_path / "cache")
    )
    streamed = datasets.load_dataset("parquet", data_dir=str(folder), split="train", streaming=True)
    assert loaded["input_ids"][:] == [row["input_ids"] for row in streamed] == ids(folder)


def test_pyarrow_polars_and_duckdb(folder: Path) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    expected = ids(folder)
    read = [
        pq.read_table(folder)["input_ids"].to_pylist(),
        pyarrow.dataset.dataset(folder, format="parquet").to_table()["input_ids"].to_pylist(),
        polars.read_parquet(folder / "*.parquet")["input_ids"].to_list(),
        polars.scan_parquet(folder / "**" / "*.parquet").collect()["input_ids"].to_list(),
    ]
    with duckdb.connect() as connection:
        for pattern in ("*.parquet", "**/*.parquet"):
            found = connection.execute(f"select input_ids from '{folder / pattern}'").fetchall()
            read.append([row for (row,) in found])
    assert all(one == expected for one in read)


@pytest.mark.parametrize("options", [{"output_format": "arrow"}, {"pack": 64}], ids=str)
def test_a_folder_of_arrow_files_and_one_of_packed_rows(
    corpus: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    out, back = f"{tmp_path}{os.sep}out{os.sep}", tmp_path / "back.jsonl"
    made = numtok.encode_files(
        corpus / "a.jsonl", out, keep_text=True, numbers="xval", shards=3, workers=1, **options
    )
    assert made.documents == 60 and made.shards == 3 and ("pack" in options) == (made.rows != 60)
    numtok.decode_files(out, back)
    expected = [jobs.row("a", number)["text"] for number in range(60)]
    assert [row["text"] for row in lines_of(back) if row["text"]] == [
        one for one in expected if one
    ]


def test_a_tokenizer_that_has_no_name_is_found_again_by_the_manifest(
    folder: Path, corpus: Path, tmp_path: Path
) -> None:
    options = read_config(folder / "__numtok" / "manifest.json")
    assert options["tokenizer"] == str(folder / "__numtok" / "tokenizer" / "tokenizer.json")
    numtok.encode_files(output=tmp_path / "again", workers=1, **options)
    assert jobs.table(tmp_path / "again").equals(jobs.table(folder))
    assert (
        jobs.manifest(tmp_path / "again")["tokenizer"]["fingerprint"]
        == jobs.manifest(folder)["tokenizer"]["fingerprint"]
    )
