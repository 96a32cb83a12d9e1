"""The example that a user would copy."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")


@pytest.mark.slow
def test_the_example_runs(capsys, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    path = Path(__file__).parents[2] / "examples" / "huggingface.py"
    spec = importlib.util.spec_from_file_location("example_huggingface", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys, "argv", [str(path), "--steps", "60", "--batch-size", "32"])
    module.main()
    out = capsys.readouterr().out
    assert len(re.findall(r"^\d+ \+ \d+ = ?-?[\d.]+    \(right: \d+\)$", out, re.M)) == 5
    after, before = map(
        float,
        re.search(r"off by ([\d.]+) on average, before training by ([\d.]+)$", out, re.M).groups(),
    )  # type: ignore[union-attr]
    assert after < 20 < 80 < before  # 10.3 in one run; always writing 99 is off by 33
