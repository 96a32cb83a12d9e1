"""Another name of :mod:`numtok.score.tasks`, which needs no torch."""

from numtok.score.tasks import TASKS, Tasks, is_right

__all__ = ["TASKS", "Tasks", "is_right"]
