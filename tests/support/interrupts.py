"""Child processes that can be interrupted, also when the tests themselves run in the background of
a shell, which ignores SIGINT there.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from typing import Any


def start(command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """``subprocess.Popen`` with text pipes for output, and SIGINT at its default."""
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # one thread, and nothing but this
        **options,
    )
