"""``numtok stats``: what it prints, the page and the JSON, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from numtok_cli.main import cli
from pages import page_data
from places import SAMPLE

from numtok import Statistics, corpus_stats
from numtok.statistics.report import Report

HOSTILE = [
    "<script>alert(1)</script> 5 <b> & 6\"7' 8\u202e9 10\x1b[31m",
    "7" * 1_000_000,
    "1e999999 -1e-999999 " + "٤٢ ",
    "no number",
]


def run(*arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["stats", *arguments], input=input)


def test_the_terminal_shows_what_the_page_shows(tmp_path: Path) -> None:
    told = run(str(SAMPLE), "--html", str(tmp_path / "a.html"), "--json", str(tmp_path / "a.json"))
    assert told.exit_code == 0, told.output
    page = json.dumps(page_data(tmp_path / "a.html"), ensure_ascii=False)
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    report = Report.of(corpus_stats(SAMPLE))
    assert data == json.loads(json.dumps(report.to_json()))
    assert Statistics.from_json(data["statistics"]) == report.statistics
    for shown in (told.stdout, page):
        assert report.recommendation.options in shown
        for loss in report.losses:
            assert loss.name in shown
        for expected in (
            "183",
            "31",
            f"{report.xval.scale!r}",
            "°C",
            "2020s",
            "leading zeros",
            "scientific",
        ):
            assert expected in shown, expected
    assert [loss["name"] for loss in data["representations"]] == [
        loss.name for loss in report.losses
    ]


def test_only_the_representations_that_are_asked_for_are_compared() -> None:
    told = run(str(SAMPLE), "--numbers", "fone:3,1", "--numbers", "bits,xval").stdout
    table = told[told.index("representations:") : told.index("recommended:")]
    assert "fone:3,1" in table and "bits" in table and "xval" in table and "p1000" not in table


def test_json_alone_goes_to_standard_output() -> None:
    text = SAMPLE.read_text("utf-8")
    assert json.loads(run("-", "--json", "-", input=text).stdout) == json.loads(
        run(str(SAMPLE), "--json", "-").stdout
    )
    assert run(str(SAMPLE), "-q").output == ""


def test_nothing_acts_on_the_terminal() -> None:
    rows = "".join(json.dumps({"text": text}) + "\n" for text in HOSTILE)
    told = run("-", input=rows)
    assert told.exit_code == 0 and not {"\x1b", "\u202e"} & set(told.stdout)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"text": "5"}\n{"text": 5}\n', "a.jsonl"),
        ("a.jsonl", '{"text": "5"}\n{"te', "a.jsonl:2:2"),
        ("a.xyz", "5", "unknown kind of file"),
        ("a.parquet", "5", "a.parquet"),
    ],
)
def test_bad_input_gives_the_errors_that_encode_gives(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    told, encode = (
        run(str(path)),
        CliRunner().invoke(cli, ["encode", str(path), "-o", str(tmp_path / "out.parquet")]),
    )
    assert told.exit_code == encode.exit_code == 1
    assert message in told.stderr and told.stderr == encode.stderr


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    assert (
        "there is no folder"
        in run(str(SAMPLE), "--html", str(tmp_path / "no" / "page.html")).stderr
    )
    assert (
        "there is no folder" in run(str(SAMPLE), "--json", str(tmp_path / "no" / "a.json")).stderr
    )


def test_a_pattern_that_fails_names_the_file_and_the_row(tmp_path: Path) -> None:
    rows: list[Any] = [{"text": "5"}, {"text": "five"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = run(str(tmp_path / "a.jsonl"), "--pattern", r"[a-z]+|\d+")
    assert told.exit_code == 1 and "a.jsonl, row 2" in told.stderr
