"""Windows and macOS, as far as Linux can tell: the same work is done where the names are missing
that only POSIX has, and no file is read or written in the encoding of the place.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from places import ROOT, SAMPLE

import numtok
from numtok.corpus.read.documents import find_inputs
from numtok.storage import is_url

WORK = f"""
import gzip, numtok, os, sys
from numtok.arrays import memory
from numtok_cli.main import main

def run(*words):
    sys.argv = ["numtok", *words]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, (words, ended.code)

sample = {str(SAMPLE)!r}
run("encode", sample, "-o", "a.parquet", "--keep-text", "--numbers", "xval:log,bits")
run("encode", sample, "-o", "a.parquet", "--keep-text", "--numbers", "xval:log,bits", "--overwrite")
run("decode", "a.parquet", "-o", "back.jsonl")
run("inspect", "It is 5", "--html", "page.html")
run("stats", "a.parquet", "--html", "report.html", "--json", "report.json")
tokenizer = numtok.Tokenizer.from_pretrained(numbers="place")
tokenizer.save_pretrained("saved")
assert numtok.Tokenizer.from_pretrained("saved") == tokenizer
run("encode", sample, "-o", "job/", "--numbers", "bits", "--shard-size", "1kB", "--workers", "1", "--keep-text")
run("encode", sample, "-o", "job/", "--numbers", "bits", "--shard-size", "1kB", "--workers", "1", "--keep-text")
for packed in ("documents.parquet", "documents.feather"):
    with open(packed, "rb") as file, gzip.open(packed + ".gz", "wb") as out:
        out.write(file.read())
    run("encode", packed + ".gz", "-o", packed + ".arrow", "--numbers", "bits")
memory.release()
run("status", "job/")
run("decode", "job/", "-o", "of-job.jsonl")
"""


BEFORE = """
import os, warnings
for module in ("numtok", "numtok_torch", "numtok_cli"):
    warnings.filterwarnings("error", "", EncodingWarning, module)  # Windows' own is not UTF-8
import without_posix
with open("open", "w", encoding="utf-8"):
    try:
        os.replace("open", "renamed")
    except PermissionError:
        pass
    else:
        raise AssertionError("an open file was renamed")
"""


@pytest.mark.slow
def test_without_what_only_posix_has(tmp_path):
    """Files, a folder of shards, pages and a tokenizer, as ever. Data sets of torch are those of
    ``datasets``, which looks at the name of the system for what it may use.
    """
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "tests" / "support"),
        "NUMTOK_CACHE": str(tmp_path / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    documents = pa.table({"text": texts(SAMPLE)})
    pyarrow.parquet.write_table(documents, tmp_path / "documents.parquet")
    pyarrow.feather.write_feather(documents, tmp_path / "documents.feather")
    command = [sys.executable, "-X", "warn_default_encoding", "-c", BEFORE + WORK]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    assert texts(tmp_path / "back.jsonl") == texts(tmp_path / "of-job.jsonl") == texts(SAMPLE)
    assert len(list(tmp_path.glob("job/*.parquet"))) > 1
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_folder_is_read_where_paths_have_backslashes(tmp_path, monkeypatch):
    """The shards of the job in it, and no plan or receipt of it as documents."""
    (tmp_path / "in" / "more").mkdir(parents=True)
    (tmp_path / "in" / "more" / "b.txt").write_text("is 5")
    numtok.encode_files(SAMPLE, f"{tmp_path}/in/job/", numbers="bits", keep_text=True)
    walk = os.walk

    def walk_windows(folder, **options):
        for root, *inner in walk(folder, **options):
            yield root.replace("/", "\\"), *inner

    expected = find_inputs(tmp_path / "in")
    monkeypatch.setattr(os, "walk", walk_windows)
    monkeypatch.setattr(os, "sep", "\\")
    assert find_inputs(tmp_path / "in") == expected
    assert [Path(one.path).name for one in expected] == ["00000-of-00001.parquet", "b.txt"]


def test_a_drive_is_no_scheme():
    assert not is_url("C://data/a.jsonl") and is_url("s3://data/a.jsonl")


def texts(path):
    return [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]
