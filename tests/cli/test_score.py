"""``numtok score``: its table, its JSON, its inputs, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from numtok_cli.main import cli

ROWS = [{"output": "It costs $29.00.", "answer": "#### 29"}, {"output": "?", "answer": 4}]


def run(*arguments: str, input: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["score", *arguments], input=input)


def test_table_and_json(tmp_path: Path) -> None:
    file, data = tmp_path / "a.jsonl", tmp_path / "report.json"
    file.write_text("\n".join(json.dumps(row) for row in ROWS))
    fields = ["--prediction", "output", "--target", "answer"]
    told = run(str(file), *fields, "--json", str(data))
    assert told.exit_code == 0, told.output
    assert "exact                  1    50.0%" in told.stdout and "no number in '?'" in told.stdout
    made = json.loads(data.read_text())
    assert (made["total"], made["exact"], made["unparseable"]) == (2, 1, 1)
    assert json.loads(run("-", *fields, "--json", "-", input=file.read_text()).stdout) == made


def test_csv_and_deeper_fields(tmp_path: Path) -> None:
    table, deep = tmp_path / "a.csv", tmp_path / "b.jsonl"
    table.write_text('prediction,target\n"1,000",1000\n25%,0.25\n')
    assert "exact                  2   100.0%" in run(str(table), "--policy", "finance").stdout
    deep.write_text(json.dumps({"resps": [["#### 5"]], "doc": {"gold": 5}}))
    told = run(str(deep), "--prediction", "resps.0.0", "--target", "doc.gold")
    assert "exact                  1   100.0%" in told.stdout
    deep.write_text('\ufeff{"prediction": null, "target": 5}', encoding="utf-8")
    assert "answer 1: no number in ''" in run(str(deep)).stdout


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ('{"prediction": "5"}', [], "a.jsonl:1: has no field 'target'; there are prediction"),
        ("{", [], "a.jsonl:1: is not JSON"),
        ("[]", [], "has no field 'prediction'"),
        ('{"prediction": ["5"], "target": 5}', [], "name what lies in it, such as prediction.0"),
        ('{"prediction": 5, "target": 5}', ["--policy", "maths"], "no policy is called 'maths'"),
    ],
)
def test_errors(tmp_path: Path, content: str, options: list[str], message: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(content)
    told = run(str(file), *options)
    assert told.exit_code == 1 and message in told.stderr
    assert "cannot be read" in run(str(tmp_path / "none.jsonl")).stderr
