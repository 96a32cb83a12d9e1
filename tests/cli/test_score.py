"""``numtok score``: its table, its JSON, its inputs, and what goes wrong."""

import json

import pytest
from command import ok, refused, run

ROWS = [{"output": "It costs $29.00.", "answer": "#### 29"}, {"output": "?", "answer": 4}]


def test_table_and_json(tmp_path):
    file, data = tmp_path / "a.jsonl", tmp_path / "made" / "report.json"
    file.write_text("\n".join(json.dumps(row) for row in ROWS))
    fields = ["--prediction", "output", "--target", "answer"]
    told = ok("score", file, *fields, "--json", data)
    assert "exact                         1    50.0%" in told and "no number in '?'" in told
    made = json.loads(data.read_text())
    assert (made["total"], made["exact"], made["unparseable"]) == (2, 1, 1)
    assert json.loads(ok("score - --json -", *fields, input=file.read_text())) == made


def test_csv_and_deeper_fields(tmp_path):
    table, deep = tmp_path / "a.CSV", tmp_path / "b.jsonl"
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


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        (b"1072,1,072\n", "a.csv:2: "),  # and not the answer 1
        (b"5,5\n1072\n", "a.csv:3: "),
        (b'5,"never closed\n6,7\n', "a.csv:2: "),  # and not one row
        (b"5,\xe9\n", "a.csv:2:3: is not UTF-8"),
    ],
)
def test_rows_that_could_be_read_as_others_are_refused(tmp_path, rows, place):
    file = tmp_path / "a.csv"
    file.write_bytes(b"target,prediction\n" + rows)
    assert place in refused("score", file)
    assert "is not UTF-8" in refused("score -", input=b'{"prediction": "5 \xe9", "target": 5}')
    file.write_bytes(b"target,prediction,target\n5,5,6\n")
    assert "has two columns 'target'" in refused("score", file)


def test_answers_of_any_kind(tmp_path):
    """Long ones in CSV, and those with half of a surrogate pair."""
    file = tmp_path / "a.csv"
    file.write_text(f"target,prediction\n5,{'word ' * 40_000} 5\n")
    assert json.loads(ok("score --json -", file))["exact"] == 1
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"target": "5", "prediction": "\ud800 7"}))
    ok(f"score --json {tmp_path / 'out.json'}", file)
    assert json.loads(ok("score --json -", file))["exact"] == 0
    assert json.loads((tmp_path / "out.json").read_text("utf-8"))["mistakes"] == [[0, "7", "5"]]


def test_figures_of_sources(tmp_path):
    """The table, the JSON, and an exit status of its own for figures that are not there."""
    file = tmp_path / "a.jsonl"
    rows = [
        {"a": "In 2020 it sold 1.2 million, 25% online.", "docs": ["1,234,567", {"online": 0.25}]},
        {"a": "It sold 17.", "docs": 18, "question": "Is it 16?"},
        {"a": None, "docs": None},
    ]
    file.write_text("\n".join(json.dumps({"question": None} | row) for row in rows))
    words = ["score", "--grounded", "--prediction", "a", "--sources", "docs"]
    told = run("", *words, file)
    assert told.exit_code == 3 and "bug in numtok" not in told.output
    assert "figures                       3" in told.stdout and "  year" in told.stdout
    assert "  ungrounded                  1    33.3%" in told.stdout
    assert "answer 2: '17' is not in the sources: 'It sold 17.'" in told.stdout
    made = json.loads(ok("", *words, "--fail-under", "60", "--json", "-", file))
    assert made["found"] == {"rounded": 1, "percent": 1} and made["missing"][0]["answer"] == 1
    assert run("", *words, "--fail-under", "70", file).exit_code == 3
    assert run("", *words, "--tolerance", "0.1", "--fail-under", "100", file).exit_code == 0
    both = run("", *words, "--sources", "question", file)
    assert "'17' is not" in both.stdout  # 18 - 16 is not 17
    assert run("", *words, "--tolerance", "exact", file).stdout.count("is not in the sources") == 2
    assert "ignore='months' is no kind" in refused("", *words, "--ignore", "months", file)
    assert "'2020' is not" in run("", *words, "--ignore", "none", file).stdout


def test_sources_of_another_country_and_without_computing(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text('prediction,context\n"1,5 oder 4,0","1.5 und 2.5"\n')
    words = ["score", "--grounded", "--sources", "context", "--policy", "european", file]
    assert run("", *words).exit_code == 3
    assert "sum" in ok("", *words, "--target-policy", "default")
    assert run("", *words, "--target-policy", "default", "--no-compute").exit_code == 3
