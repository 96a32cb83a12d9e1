"""A representation whose module workers cannot import."""

from dataclasses import dataclass
from typing import ClassVar

from deadly import is_worker

import numtok

if is_worker():
    raise SystemExit("no such library")


@dataclass(frozen=True)
class Unloadable(numtok.FloatBits):
    """Like the others here."""

    name: ClassVar[str] = "unloadable"
