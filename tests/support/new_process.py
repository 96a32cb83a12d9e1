"""A Python script in a process of its own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

SUPPORT = Path(__file__).parent


def run(script, folder, *arguments):
    """Standard output of a new Python process, whose caches are in ``folder``."""
    environment = os.environ | {
        "HF_HOME": str(folder / "home"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path]),
    }
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
