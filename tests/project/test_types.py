"""A user's script sees real types: what is right passes ``mypy --strict``, and a slip is told before the script runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

SCRIPT = Path(__file__).with_name("user_script.py")


@pytest.mark.slow
def test_a_users_script_sees_real_types() -> None:
    """The errors of the type checker are those that the script says, line by line; ``assert_type`` refuses Any."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", str(SCRIPT)]  # with the settings and hence the cache of `make check`
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = {(int(line), code) for line, code in re.findall(r"user_script\.py:(\d+): error: .*\[([\w-]+)\]$", told.stdout, re.M)}
    lines = SCRIPT.read_text("utf-8").splitlines()
    expected = {(number, code[1]) for number, line in enumerate(lines, 1) if (code := re.search(r"# error: ([\w-]+)$", line))}
    assert expected and found == expected, told.stdout + told.stderr
