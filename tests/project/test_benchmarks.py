"""The benchmarks run, report, and refuse to time what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from places import ROOT

import numtok

pytest.importorskip("tiktoken")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.jsonl"
    texts = [
        "The mass is -1.5e3 kg, about 3,300 pounds.",
        "pH 7.4 at 25 °C on 2020-01-02",
        "no number",
        "x = 0.125; y = −17; z = 602",
    ]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return path


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], int]:
    monkeypatch.syspath_prepend(ROOT)
    for name in (
        "RAYON_NUM_THREADS",
        "TOKENIZERS_PARALLELISM",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
    ):
        monkeypatch.setenv(name, "1")  # the benchmarks set them: put back afterwards
    from benchmarks.__main__ import main

    return main


def arguments(tiny: Path, *more: str) -> list[str]:
    return [
        "--quick",
        "--corpus",
        str(tiny),
        "--tokenizer",
        str(ROOT / "numtok" / "default" / "tokenizer.json"),
        *more,
    ]


@pytest.mark.slow
def test_everything_runs_and_the_json_is_well_formed(tiny: Path, tmp_path: Path) -> None:
    output = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks", *arguments(tiny, "--json", str(output))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Budgets" in done.stdout
    found = json.loads(output.read_text())
    assert found["corpus"]["documents"] == 4
    assert {"processor", "cores", "system"} == set(found["machine"])
    assert {"python", "numtok", "tokenizers", "tiktoken", "gigatoken", "regex"} <= set(
        found["versions"]
    )
    for name, section in found["sections"].items():
        assert section["error"] is None, name
        assert section["checks"] and section["rows"], name
        for row in section["rows"]:
            seconds = row["seconds"]
            assert 0 < seconds["min"] <= seconds["median"] <= seconds["max"], row["name"]
    assert any(
        "equal those of the regular expression" in check
        for check in found["sections"]["scan"]["checks"]
    )
    names = [row["name"] for row in found["sections"]["encode"]["rows"]]
    assert [
        any(peer in name for name in names)
        for peer in ("gigatoken", "tokenizers", "tiktoken", "recipe")
    ] == [True] * 4
    budgets = [budget for section in found["sections"].values() for budget in section["budgets"]]
    assert budgets and all(budget["what"] in done.stdout for budget in budgets), "each is told"


def test_a_wrong_value_of_the_scan_is_found(
    tiny: Path,
    tmp_path: Path,
    main: Callable[[list[str]], int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = numtok.Numbers.to_decimal

    def wrong(self: numtok.Numbers) -> list[Decimal]:
        return [value + 1 if value == 25 else value for value in right(self)]

    monkeypatch.setattr(numtok.Numbers, "to_decimal", wrong)
    output = tmp_path / "found.json"
    assert main(arguments(tiny, "--only", "scan", "--json", str(output))) == 1
    assert "document 1: scan reads '25' as 26" in capsys.readouterr().out
    section = json.loads(output.read_text())["sections"]["scan"]
    assert "reads '25'" in section["error"] and not section["rows"]


def test_wrong_ids_are_found(
    tiny: Path,
    main: Callable[[list[str]], int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = numtok.Tokenizer.encode_batch

    def wrong(self: numtok.Tokenizer, texts: Any, *rest: Any, **options: Any) -> pa.RecordBatch:
        batch = right(self, texts, *rest, **options)
        column = batch.column("input_ids")
        ids = column.values.to_numpy().copy()
        ids[3] = ids[4]
        changed = pa.ListArray.from_arrays(column.offsets, pa.array(ids))
        return pa.RecordBatch.from_arrays([changed, *batch.columns[1:]], schema=batch.schema)

    monkeypatch.setattr(numtok.Tokenizer, "encode_batch", wrong)
    assert main(arguments(tiny, "--only", "encode")) == 1
    assert "WRONG RESULT" in capsys.readouterr().out


def test_a_wrong_tensor_is_found(
    tiny: Path,
    main: Callable[[list[str]], int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = numtok.XVal.encode

    def wrong(self: numtok.XVal, numbers: numtok.Numbers) -> dict[str, pa.Array]:
        return {"number_scaled": pa.array(-right(self, numbers)["number_scaled"].to_numpy())}

    monkeypatch.setattr(numtok.XVal, "encode", wrong)
    assert main(arguments(tiny, "--only", "representations")) == 1
    assert "XVal: the encoding differs" in capsys.readouterr().out


@pytest.mark.parametrize(("measured", "code"), [(0.5, 0), (1.5, 0), (2.5, 2)])
def test_the_exit_status_says_whether_the_floors_hold(
    tiny: Path,
    main: Callable[[list[str]], int],
    monkeypatch: pytest.MonkeyPatch,
    measured: float,
    code: int,
) -> None:
    from benchmarks.timing import Goal, Section

    found = Section("one", goals=[Goal("a cost", measured, 2, 1, "x", at_most=True)])
    monkeypatch.setattr("benchmarks.__main__.sections", lambda: {"scan": lambda _: found})
    assert main(["--corpus", str(tiny)]) == code
    assert main(["--corpus", str(tiny), "--quick"]) == 0  # what a quick run measures means nothing


def test_the_kinds_of_text_are_what_they_are_called(
    tiny: Path, main: Callable[[list[str]], int]
) -> None:
    from benchmarks import corpus
    from benchmarks.kinds import KINDS

    loaded = corpus.load(tiny, quick=True)
    texts = {kind.name: kind.texts(loaded, 100_000) for kind in KINDS}
    # the same every time
    assert texts == {kind.name: kind.texts(loaded, 100_000) for kind in KINDS}
    bytes_per_number = {
        name: sum(map(len, some)) / max(1, len(numtok.scan(some))) for name, some in texts.items()
    }
    assert 8 <= bytes_per_number["CSV of numbers"] <= 10
    assert not any(character.isdigit() for text in texts["no numbers at all"] for character in text)
    assert all(isinstance(json.loads(text), list) for text in texts["JSON"])


def test_turns_alternate_and_ratios_are_pairwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.timing import Goal, Timing

    slow, fast = Timing((4.0, 9.0, 2.0)), Timing((1.0, 3.0, 2.0))
    assert slow.over(fast) == 3.0 and slow.median == 4.0
    assert [Goal("", value, 5, 20, "x").verdict for value in (4, 5, 20)] == [
        "NOT MET",
        "floor met",
        "aim met",
    ]
    assert [Goal("", value, 1.6, 1.2, "x", at_most=True).verdict for value in (1.7, 1.6, 1.2)] == [
        "NOT MET",
        "floor met",
        "aim met",
    ]
