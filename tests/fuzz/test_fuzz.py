"""Check what fuzzing has found stays mended, and some hundred mutations of each target find nothing."""

import itertools
import os
import random
import time

import fuzz
import fuzz_targets
import pytest
from places import ROOT

CORPUS, BUILD = ROOT / "tests" / "fuzz" / "corpus", ROOT / "build" / "fuzz"
SECONDS = float(os.environ.get("NUMTOK_FUZZ_SECONDS", 0))  # for each target
SEED = os.environ.get("NUMTOK_FUZZ_SEED", "")
RUNS = {"scan": 50, "encoded": 15, "metadata": 20, "tokenizer": 20, "job": 20}  # others 100
FOUND = sorted(path for path in CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: "/".join(path.parts[-2:]))
def test_what_was_found_is_mended(path):
    assert fuzz.failure(fuzz_targets.TARGETS[path.parent.name].check, path.read_bytes()) is None


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_mutations(name, tmp_path, monkeypatch):
    """Some hundred, and more of them for as long as `make fuzz` says."""
    monkeypatch.chdir(tmp_path)
    target, generator = fuzz_targets.TARGETS[name], random.Random(f"{SEED}{name}")
    target.check(target.seeds[0])  # compiles
    BUILD.mkdir(parents=True, exist_ok=True)
    current, end = BUILD / name, time.monotonic() + SECONDS
    for run in itertools.count():
        if run >= RUNS.get(name, 100) and time.monotonic() > end:
            break
        data = fuzz.mutate(generator, target.seeds, fuzz.PIECES + target.pieces)
        current.write_bytes(data)  # it stays there if the process dies
        why = fuzz.failure(target.check, data)
        assert why is None, f"{why}; the input is {current}"
    current.unlink()


def test_a_failure_and_a_slow_input_are_told():
    def endless(data):
        while True:
            pass

    assert "Slow" in (fuzz.failure(endless, b"", seconds=0.1) or "")
    assert "JSONDecodeError" in (fuzz.failure(lambda data: fuzz.json.loads(data), b"{") or "")
