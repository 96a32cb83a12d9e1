"""Check what fuzzing has found stays mended, and some hundred mutations of each target find nothing."""

import random

import fuzz
import fuzz_targets
import pytest

RUNS = {"scan": 50, "encoded": 15, "metadata": 20, "tokenizer": 20, "job": 20}  # others 100
FOUND = sorted(path for path in fuzz.CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: "/".join(path.parts[-2:]))
def test_what_was_found_is_mended(path):
    assert fuzz.failure(fuzz_targets.TARGETS[path.parent.name].check, path.read_bytes()) is None


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_mutations(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target, generator = fuzz_targets.TARGETS[name], random.Random(name)
    target.check(target.seeds[0])  # compiles
    for _ in range(RUNS.get(name, 100)):
        data = fuzz.mutate(generator, target.seeds, fuzz.PIECES + target.pieces)
        why = fuzz.failure(target.check, data)
        if why is not None:
            (tmp_path / "input").write_bytes(data)
            pytest.fail(f"{why}; the input is {tmp_path / 'input'}")


def test_a_failure_and_a_slow_input_are_told():
    def endless(data):
        while True:
            pass

    assert "Slow" in (fuzz.failure(endless, b"", seconds=0.1) or "")
    assert "JSONDecodeError" in (fuzz.failure(lambda data: fuzz.json.loads(data), b"{") or "")
