"""Check what is given twice, or not at all, is told."""

import os
from pathlib import Path

import pytest
from command import run

import numtok
from numtok.corpus.read.find import find_inputs
from numtok.errors import InputError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name in ("a", "b"):
        Path(f"in/{name}.jsonl").write_text(f'{{"text": "{name} 1"}}\n')
    return tmp_path


def test_rows_without_a_text_are_told(folder):
    Path("a.jsonl").write_text('{"text": "1"}\n{"txt": "lost"}\n{"text": null}\n{"text": ""}\n')
    told = "numtok: warning: 2 of 4 documents have no text (it is missing or null) and are null"
    assert (
        run("encode a.jsonl -o o.parquet -q").stderr
        == f"{told} rows, the first in a.jsonl, row 2\n"
    )
    assert run("encode in -o p.parquet -q").stderr == ""
    made = numtok.encode_files(["in/a.jsonl", "a.jsonl"], "q.parquet", batch_bytes=10)
    assert (made.documents, made.without_text) == (5, 2)
    assert made.first_without_text == "a.jsonl, row 2"


def test_a_named_pipe_in_a_folder_is_not_waited_for(folder):
    os.mkfifo(folder / "in" / "c.jsonl")
    assert find_inputs(["in/c.jsonl"])[0].size is None
    with pytest.raises(InputError, match=r"c\.jsonl: is a pipe or a device"):
        find_inputs(["in"])
