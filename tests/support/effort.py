"""How many examples of a property hypothesis looks at."""

from __future__ import annotations

from hypothesis import settings


def examples(count: int) -> int:
    """For a property whose examples are costly: ``count`` where others have 100, and as many times more as they have in the slow part."""
    return max(1, count * settings().max_examples // 100)
