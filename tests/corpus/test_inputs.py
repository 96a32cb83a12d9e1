"""What is given twice, or not at all, is told."""

import gzip
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from numtok_cli.main import cli

import numtok
from numtok.corpus.read.find import find_inputs
from numtok.errors import InputError


def run(line):
    return CliRunner().invoke(cli, line.split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for name in ("a", "b"):
        Path(f"in/{name}.jsonl").write_text(f'{{"text": "{name} 1"}}\n')
    return tmp_path


TWICE = ["in/a.jsonl in/a.jsonl", "in in/a.jsonl", "in/*.jsonl in/b*", "- -"]


@pytest.mark.parametrize("inputs", [*TWICE, "in/a.jsonl ./in/../in/a.jsonl"])
def test_a_file_given_twice_is_refused(inputs, folder):
    with pytest.raises(InputError, match="given twice"):
        find_inputs(inputs.split())
    assert len(find_inputs(["in"])) == 2


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_under_two_names_is_refused(link, folder):
    link(str(folder / "in" / "a.jsonl"), "in/link.jsonl")
    told = r"in/link\.jsonl: is given twice \(the other time as in/a\.jsonl\)"
    with pytest.raises(InputError, match=told):
        numtok.encode_files("in", "o.parquet")
    assert not Path("o.parquet").exists()


def test_plain_and_compressed_are_refused(folder):
    Path("in/a.jsonl.gz").write_bytes(gzip.compress(Path("in/a.jsonl").read_bytes()))
    told = r"in/a\.jsonl.* seems to hold the same as in/a\.jsonl.*name only one"
    for inputs in (["in"], ["in/*"], ["in/a.jsonl.gz", "in/a.jsonl"]):
        with pytest.raises(InputError, match=told):
            find_inputs(inputs)
    assert len(find_inputs(["in/a.jsonl.gz", "in/b.jsonl"])) == 2


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


def test_a_lost_shard_is_told(folder):
    numtok.encode_files("in", "out/", shards=2, workers=1, scale=1.0)
    os.remove("out/00001-of-00002.parquet")
    with pytest.raises(
        InputError, match=r"00001-of-00002\.parquet: is a shard that is not there any more"
    ):
        find_inputs(["out"])
