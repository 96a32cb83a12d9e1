"""What is given twice, or not at all, is told."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from numtok_cli.main import cli

import numtok
from numtok.corpus.encode import encode_corpus
from numtok.corpus.read.documents import find_inputs
from numtok.errors import InputError


def run(line: str) -> Result:
    return CliRunner().invoke(cli, line.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / "in" / f"{name}.jsonl").write_text(f'{{"text": "{name} 1"}}\n')
    return tmp_path


def packed(name: str) -> None:
    Path(name + ".zst").write_bytes(
        pa.compress(Path(name).read_bytes(), codec="zstd", asbytes=True)
    )


@pytest.mark.parametrize(
    "inputs",
    [
        ("in/a.jsonl", "in/a.jsonl"),
        ("in", "in/a.jsonl"),
        ("in/*.jsonl", "in/b*"),
        ("in/a.jsonl", "./in/../in/a.jsonl"),
        ("-", "-"),
    ],
)
def test_a_file_given_twice_is_refused(inputs: tuple[str, ...], folder: Path) -> None:
    with pytest.raises(InputError, match="given twice"):
        find_inputs(inputs)
    assert len(find_inputs(["in"])) == 2


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_under_two_names_is_refused(link: object, folder: Path) -> None:
    assert callable(link)
    link(str(folder / "in" / "a.jsonl"), "in/link.jsonl")
    told = r"in/link\.jsonl: is given twice \(the other time as in/a\.jsonl\)"
    with pytest.raises(InputError, match=told):
        find_inputs(["in"])
    result = run("encode in -o o.parquet")
    assert (
        result.exit_code == 1 and "in/link.jsonl" in result.stderr and "in/a.jsonl" in result.stderr
    )
    assert not Path("o.parquet").exists()


def test_plain_and_compressed_are_refused(folder: Path) -> None:
    packed("in/a.jsonl")
    for inputs in (["in"], ["in/*"], ["in/a.jsonl.zst", "in/a.jsonl"]):
        told = r"in/a\.jsonl.* seems to hold the same as in/a\.jsonl.*name only one"
        with pytest.raises(InputError, match=told):
            find_inputs(inputs)
    assert len(find_inputs(["in/a.jsonl.zst", "in/b.jsonl"])) == 2


def test_rows_without_a_text_are_told(folder: Path) -> None:
    Path("a.jsonl").write_text('{"text": "1"}\n{"txt": "lost"}\n{"text": null}\n{"text": ""}\n')
    result = run("encode a.jsonl -o o.parquet -q")
    assert result.exit_code == 0
    assert (
        result.stderr
        == "numtok: warning: 2 of 4 documents have no text (it is missing or null) and are null"
        " rows, the first in a.jsonl, row 2\n"
    )
    assert run("encode in -o p.parquet -q").stderr == ""
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=[numtok.XVal()])
    summary = encode_corpus(["in/a.jsonl", "a.jsonl"], "q.parquet", tokenizer, batch_bytes=10)
    assert (summary.documents, summary.without_text, summary.first_without_text) == (
        5,
        2,
        "a.jsonl, row 2",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "encode a -o o.parquet --text-column a --text-column b",
        "encode a -o o.parquet --output p.parquet",
        "encode a -o o.parquet --workers 1 --workers=2",
        "decode a -o o.jsonl --tokenizer x --tokenizer x",
        "train a -o t --vocab-size 300 --vocab-size 400",
        "inspect 5 --html a --html b",
    ],
)
def test_an_option_given_twice_is_refused(arguments: str, folder: Path) -> None:
    result = run(arguments)
    assert result.exit_code == 2
    assert "is given twice" in result.stderr


def test_options_that_may_repeat(folder: Path) -> None:
    Path("a.jsonl").write_text('{"text": "1", "a": 1, "b": 2}\n')
    line = "encode a.jsonl -o o.parquet --keep-column a --keep-column b -q -q"
    assert run(line).exit_code == 0
    assert run("inspect -5 --numbers xval --numbers bits").exit_code == 0


def test_a_named_pipe_is_waited_for_only_if_asked(folder: Path) -> None:
    os.mkfifo(folder / "in" / "c.jsonl")
    for given in ("in", "in/c.jsonl", "in/*.jsonl"):
        with pytest.raises(InputError, match=r"c\.jsonl: is a named pipe"):
            find_inputs([given])
    assert find_inputs(["in/c.jsonl"], "jsonl")[0].size is None
