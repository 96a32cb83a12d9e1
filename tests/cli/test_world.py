"""``--grammar european``, ``indian`` and ``swiss``: encode, decode, inspect, stats, and options
kept in files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from numtok_cli.main import cli
from numtok_cli.options import GRAMMARS

from numtok import Grammar

TEXTS = {
    "european": ("1.234,56 € und 12 345, am 12.03.2024", [1234.56, 12345.0]),
    "indian": ("Rs 12,34,567.89 of 1,234", [1234567.89, 1234.0]),
    "swiss": ("CHF 1'234.56", [1234.56]),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, (text, _) in TEXTS.items():
        Path(f"{name}.jsonl").write_text(json.dumps({"text": text}) + "\n")


def ok(*arguments: str, **options: Any) -> str:
    result = CliRunner().invoke(cli, list(arguments), **options)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", TEXTS)
def test_encode_and_decode(name: str) -> None:
    text, values = TEXTS[name]
    ok("encode", f"{name}.jsonl", "-o", "a.parquet", "-q", "--grammar", name, "--keep-text")
    table = pq.read_table("a.parquet")
    assert table.column("number_value").to_pylist() == [values]
    assert (
        Grammar.from_dict(json.loads(table.schema.metadata[b"numtok"])["grammar"])
        == getattr(Grammar, name)()
    )
    ok("decode", "a.parquet", "-o", "back.jsonl", "-q")
    assert [json.loads(line)["text"] for line in Path("back.jsonl").read_text().splitlines()] == [
        text
    ]
    assert f"{len(values)}" in ok("stats", "a.parquet")


def test_inspect_and_stats() -> None:
    shown = ok("inspect", "--text", TEXTS["european"][0], "--grammar", "european")
    assert "1.234,56" in shown and "1234.56" in shown
    ok("stats", "european.jsonl", "--grammar", "european", "--json", "s.json")
    assert json.loads(Path("s.json").read_text())["statistics"]["numbers"] == 2


def test_a_file_of_options_and_the_manifest_keep_it() -> None:
    Path("job.toml").write_text(
        'inputs = ["european.jsonl"]\noutput = "out/"\ngrammar = "european"\nkeep-text = true\n'
    )
    ok("encode", "--config", "job.toml", "-q")
    ok("encode", "--config", "out/__numtok/manifest.json", "-o", "again/", "-q")
    for folder in ("out", "again"):
        [file] = Path(folder).glob("*.parquet")
        assert pq.read_table(file).column("number_value").to_pylist() == [TEXTS["european"][1]]


def test_a_pattern_takes_the_marks_of_the_grammar() -> None:
    ok(
        "encode",
        "european.jsonl",
        "-o",
        "a.parquet",
        "-q",
        "--grammar",
        "european",
        "--pattern",
        r"[\d.]+,\d+",
    )
    assert pq.read_table("a.parquet").column("number_value").to_pylist() == [[1234.56]]


def test_every_name_is_a_grammar_and_others_are_refused() -> None:
    assert all(isinstance(getattr(Grammar, name)(), Grammar) for name in GRAMMARS)
    result = CliRunner().invoke(cli, ["inspect", "1", "--grammar", "klingon"])
    assert result.exit_code == 2 and "european" in result.output
