"""Kernels that another process compiles on a first run: this one takes them, and does without where
they do not come.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import numtok
from numtok.engines.gigatoken_engine import KERNELS

ROOT = Path(numtok.__file__).parent.parent
TOY = """
from numtok.arrays.kernels import kernel

@kernel
def square(x):
    return x * x

def compile_kernels():
    square(1)
"""
USE = """
import os, sys
os.sched_getaffinity = lambda process: {0, 1}
from numtok.arrays import compile_beside
import toy
compile_beside.begin(sys.argv[1], ("toy.square",))
print(compile_beside._helper is not None, toy.square(3), sum(toy.square.compiled.stats.cache_hits.values()))
"""


def use(tmp_path: Path, module: str, cache: str = "cache") -> str:
    """Whether there was another process; 3², and how many compiled functions were taken from the
    cache.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}",
        "NUMBA_CACHE_DIR": str(tmp_path / cache),
    }
    done = subprocess.run(
        [sys.executable, "-c", USE, module], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout.strip()


def test_what_another_process_compiles_is_waited_for_and_taken(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY, "utf-8")
    assert use(tmp_path, "toy") == "True 9 1"
    assert use(tmp_path, "toy") == "False 9 1"  # it is there already


def test_what_does_not_come_is_compiled_here(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY, "utf-8")
    (tmp_path / "file").write_text("no folder can be made in a file, by root neither")
    assert use(tmp_path, "not_there") == "True 9 0"
    assert use(tmp_path, "toy", "file").startswith("False 9 0")


@pytest.mark.slow
def test_the_fast_engines_kernels_are_those_that_a_run_takes(tmp_path: Path) -> None:
    """For the same types, and nothing else: what finds numbers is compiled by the run itself."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def compiled() -> list[str]:
        return sorted(path.name for path in tmp_path.rglob("*.kernel"))

    subprocess.run(
        [
            sys.executable,
            "-c",
            "from numtok.engines.compile_split import compile_kernels; compile_kernels()",
        ],
        env=environment,
    )
    made = compiled()
    assert sorted(name.rpartition("-")[0] for name in made) == sorted(KERNELS)
    encode = (
        "import numtok; print(len(numtok.Tokenizer.from_pretrained().encode_batch(['1 and  2',"
        " None])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", encode], env=environment, capture_output=True, text=True
    )
    assert done.stdout == "2\n", done.stderr
    assert [name for name in compiled() if name.startswith(KERNELS)] == made
