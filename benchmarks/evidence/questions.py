"""``python -m benchmarks.evidence tasks``: questions of arithmetic as JSON lines, for any model.

Out: ``{"task", "level", "prompt", "answer"}`` a line, of those tasks of ``numtok.score.tasks`` whose
    answer is one number, so that ``numtok score --target answer`` reads the model's answers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TextIO

from numtok.score.tasks import TASKS, Tasks

NOT_A_NUMBER = ("sort", "interval")  # are judged by numtok.score.tasks.is_right
ONE_NUMBER = tuple(task for task in TASKS if task not in NOT_A_NUMBER)


def write(count: int, levels: Sequence[int], seed: int, to: TextIO) -> None:
    """As many questions, every task as often."""
    questions = Tasks(count, ONE_NUMBER, levels, seed=seed)
    to.writelines(json.dumps(questions[index]) + "\n" for index in range(count))
