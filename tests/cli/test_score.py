"""``numtok score``: its table, its JSON, its inputs, and what goes wrong."""

import json

import pytest
from command import ok, refused

ROWS = [{"output": "It costs $29.00.", "answer": "#### 29"}, {"output": "?", "answer": 4}]


def test_table_and_json(tmp_path):
    file, data = tmp_path / "a.jsonl", tmp_path / "report.json"
    file.write_text("\n".join(json.dumps(row) for row in ROWS))
    fields = ["--prediction", "output", "--target", "answer"]
    told = ok("score", file, *fields, "--json", data)
    assert "exact                         1    50.0%" in told and "no number in '?'" in told
    made = json.loads(data.read_text())
    assert (made["total"], made["exact"], made["unparseable"]) == (2, 1, 1)
    assert json.loads(ok("score - --json -", *fields, input=file.read_text())) == made


def test_csv_and_deeper_fields(tmp_path):
    table, deep = tmp_path / "a.csv", tmp_path / "b.jsonl"
    table.write_text('prediction,target\n"1,000",1000\n25%,0.25\n')
    assert "exact                         2   100.0%" in ok("score --policy finance", table)
    deep.write_text(json.dumps({"resps": [["#### 5"]], "doc": {"gold": 5}}))
    told = ok("score --prediction resps.0.0 --target doc.gold", deep)
    assert "exact                         1   100.0%" in told
    deep.write_text('\ufeff{"prediction": null, "target": 5}', encoding="utf-8")
    assert "answer 1: no number in ''" in ok("score", deep)


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
def test_errors(tmp_path, content, options, message):
    file = tmp_path / "a.jsonl"
    file.write_text(content)
    assert message in refused("score", file, *options)
    assert "cannot be read" in refused("score", tmp_path / "none.jsonl")
