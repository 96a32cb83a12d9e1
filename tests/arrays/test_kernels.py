"""Compiled functions are never stale: a change in a module that a kernel takes something from is seen, whatever the cache and the files' times say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import numtok
from numtok.arrays.kernels import ROOMS, content_stamp

PACKAGE = Path(numtok.__file__).parent
FIND = "import numtok, sys; print([number.text for number in numtok.extract('5 of 7R32 and 1.2.3')])"


def found(folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, "-c", FIND], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_a_change_in_an_imported_rule_is_seen(tmp_path: Path) -> None:
    """Without rule D, runs are cut in the middle; the file keeps its times, as in a wheel built with constant times."""
    shutil.copytree(PACKAGE, tmp_path / "numtok", ignore=shutil.ignore_patterns("__pycache__"))
    assert found(tmp_path) == found(tmp_path) == "['5']"
    rules = tmp_path / "numtok" / "numbers" / "rules.py"
    before, times = rules.read_text("utf-8"), rules.stat()
    first, rest = before.split("def glued_end(", 1)
    without_rule = first + "def glued_end(" + rest.replace("    while True:\n", "    return at\n    while True:\n", 1)
    rules.write_text(without_rule, "utf-8")
    os.utime(rules, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "'7'" in found(tmp_path)


def test_every_kernel_is_in_a_room_that_the_key_covers() -> None:
    holders = {path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py") if "arrays.kernels import" in path.read_text("utf-8")}
    assert holders <= set(ROOMS)
    assert len(content_stamp()) == 64
