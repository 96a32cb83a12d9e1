"""The benchmarks run, report, and refuse to time what is wrong."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest
from input_files import write_texts
from places import ROOT

import numtok

pytest.importorskip("tiktoken")


@pytest.fixture
def tiny(tmp_path):
    texts = ["The mass is -1.5e3 kg, about 3,300 pounds.", "pH 7.4 at 25 °C on 2020-01-02"]
    return write_texts(
        tmp_path / "tiny.jsonl", [*texts, "no number", "x = 0.125; y = −17; z = 602"]
    )


@pytest.fixture
def main(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    for name in ("RAYON", "OMP", "OPENBLAS"):
        monkeypatch.setenv(f"{name}_NUM_THREADS", "1")  # the benchmarks set them: put back after
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "1")
    from benchmarks.__main__ import main

    return main


def arguments(tiny, *more):
    tokenizer = str(ROOT / "numtok" / "default" / "tokenizer.json")
    return ["--quick", "--corpus", str(tiny), "--tokenizer", tokenizer, *more]


@pytest.mark.slow
def test_everything_runs_and_the_json_is_well_formed(tiny, tmp_path):
    output = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks", *arguments(tiny, "--json", str(output))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Budgets" in done.stdout
    found = json.loads(output.read_text())
    assert found["corpus"]["documents"] == 4
    assert {"processor", "cores", "system"} == set(found["machine"])
    assert {"python", "numtok", "tokenizers", "gigatoken", "regex"} <= found["versions"].keys()
    for name, section in found["sections"].items():
        assert section["error"] is None, name
        left_out = name == "next" and "make next" in str(section["notes"])
        assert left_out or (section["checks"] and section["rows"]), name
        for seconds in (row["seconds"] for row in section["rows"]):
            assert 0 < seconds["min"] <= seconds["median"] <= seconds["max"], name
        told = [budget["what"] in done.stdout for budget in section["budgets"]]
        assert all(told), "each is told"
    assert "equal those of the regular expression" in str(found["sections"]["scan"]["checks"])
    names = str([row["name"] for row in found["sections"]["encode"]["rows"]])
    assert all(peer in names for peer in ("gigatoken", "tokenizers", "tiktoken", "recipe"))


def wrong_decimals(right):
    return lambda numbers: [value + 1 if value == 25 else value for value in right(numbers)]


def wrong_ids(right):
    def wrong(*given, **options):
        batch = right(*given, **options)
        column = batch.column("input_ids")
        ids = column.values.to_numpy().copy()
        ids[3] = ids[4]
        changed = pa.ListArray.from_arrays(column.offsets, pa.array(ids))
        return pa.RecordBatch.from_arrays([changed, *batch.columns[1:]], schema=batch.schema)

    return wrong


def wrong_tensors(right):
    return lambda *given: {"number_scaled": pa.array(-right(*given)["number_scaled"].to_numpy())}


@pytest.mark.parametrize(
    ("kind", "method", "wrong", "section", "told"),
    [
        (numtok.Numbers, "to_decimal", wrong_decimals, "scan", "scan differs from the expression"),
        (numtok.Tokenizer, "encode_batch", wrong_ids, "encode", "WRONG RESULT"),
        (numtok.XVal, "encode", wrong_tensors, "encode", "number_scaled is not what"),
    ],
)
def test_a_wrong_result_is_told_and_not_timed(
    kind, method, wrong, section, told, tiny, main, monkeypatch, capsys
):
    monkeypatch.setattr(kind, method, wrong(getattr(kind, method)))
    output = tiny.with_name("found.json")
    assert main(arguments(tiny, "--only", section, "--json", str(output))) == 1
    assert told in capsys.readouterr().out
    found = json.loads(output.read_text())["sections"][section]
    assert found["error"] and not found["rows"]


@pytest.mark.parametrize(("measured", "code"), [(0.5, 0), (1.5, 0), (2.5, 2)])
def test_the_exit_status_says_whether_the_floors_hold(tiny, main, monkeypatch, measured, code):
    from benchmarks.timing import Goal, Section

    found = Section("one", goals=[Goal("a cost", measured, 2, 1, "x", at_most=True)])
    monkeypatch.setattr("benchmarks.__main__.sections", lambda: {"scan": lambda _: found})
    assert main(["--corpus", str(tiny)]) == code
    assert main(["--corpus", str(tiny), "--quick"]) == 0  # what a quick run measures means nothing
