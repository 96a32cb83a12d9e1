"""The experiments of benchmarks/evidence: each runs, learns, is kept, and comes into the page; and what the kept results say."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest

import numtok
from benchmarks.evidence import fone_addition, report
from benchmarks.evidence.__main__ import main
from benchmarks.evidence.arithmetic import TASKS, questions
from benchmarks.evidence.experiments import EXPERIMENTS
from benchmarks.evidence.expressions import BEYOND, GAP, LARGEST, expressions
from benchmarks.evidence.store import Store


def results(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text())["found"] for path in sorted((folder / name).glob("*.json"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_it_learns_in_a_few_steps_and_is_kept(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = [name, "--smoke", "--results", str(tmp_path), "--docs", str(tmp_path)]
    assert main(command) == 0, capfd.readouterr().err
    for found in results(tmp_path, name):
        for losses in [found["losses"]] if "losses" in found else []:
            assert all(math.isfinite(loss) for loss in losses)
            assert losses[-1] < losses[0]
    expected = sum(len(phase) for phase in EXPERIMENTS[name].phases("smoke"))
    assert len(results(tmp_path, name)) == expected > 0

    capfd.readouterr()
    assert main(command) == 0  # nothing is missing: nothing runs
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_fone_beats_digits_at_the_smallest_size(tmp_path: Path) -> None:
    assert main(["fone_addition", "--smoke", "--results", str(tmp_path)]) == 0
    found = {settings["numbers"]: result for settings, result in Store(tmp_path).all("fone_addition")}
    assert found["fone"]["exact"] > found["digits:1"]["exact"] + 0.1


def test_questions_are_those_of_the_paper() -> None:
    """FoNE, section 4.1: "[operand a][operator][operand b]=", a <= b but a >= b where they are subtracted; none comes twice."""
    for task in TASKS.values():
        found = questions(task, 200, seed=3)
        assert len({one.text for one in found}) == 200
        for one in found:
            a, b = (number.value for number in numtok.extract(one.text))
            assert one.text == f"{a}{task.sign}{b}="
            assert (a >= b) if task.sign == "-" else (a <= b)
            assert one.answer == {"+": a + b, "-": a - b, "*": a * b}[task.sign]
            assert max(a, b) < 10 ** (task.digits - task.decimals)
            assert len(str(int(one.answer))) <= task.answer[0]


@pytest.mark.parametrize("operands", [2, 3, 4])
def test_expressions_have_the_value_that_python_gives_them(operands: int) -> None:
    for where in ("seen", "gap", "beyond"):
        for one in expressions(operands, 100, seed=1, special=where):
            assert eval(one.text.removesuffix("=")) == pytest.approx(float(one.value), abs=1e-9)
            sizes = [abs(int(number.value.scaleb(2))) for number in numtok.extract(one.text)]
            assert len(sizes) == operands
            unseen = [size for size in sizes if GAP[0] < size < GAP[1] or size > LARGEST]
            assert len(unseen) == (where != "seen")
            assert max(sizes) < BEYOND[1]


def test_the_page_is_made_of_the_kept_results(tmp_path: Path) -> None:
    """docs/evidence.md says what the results in the repository say, and nothing else."""
    report.write(EXPERIMENTS.values(), Store(), tmp_path)
    assert (tmp_path / "evidence.md").read_text() == (report.DOCS / "evidence.md").read_text(), "run python -m benchmarks.evidence report"


def test_kept_results_are_of_runs_that_there_are() -> None:
    for name, experiment in EXPERIMENTS.items():
        known = list(itertools.chain.from_iterable(experiment.phases("small") + experiment.phases("full")))
        for settings, found in Store().all(name):
            assert settings in known
            assert found


def test_what_is_missing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in EXPERIMENTS)
    assert "0 of" in said


def test_a_run_that_fails_is_an_error_and_leaves_the_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A run that needs the rates of the search, before there was one."""
    assert main(["fone_operations", "--match", "subtraction_5_digits-fone", "--results", str(tmp_path)]) == 1
    assert "run the search first" in capfd.readouterr().err
    assert results(tmp_path, fone_addition.NAME) == []
