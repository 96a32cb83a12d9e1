"""How many examples of a property hypothesis looks at."""

from hypothesis import settings


def examples(count, thorough=None):
    """For a property whose examples are costly: ``count`` where others have 100, and as many times
    more as they have in the slow part, or ``thorough``.
    """
    share = settings().max_examples / 100
    return thorough if thorough is not None and share > 1 else max(1, int(count * share))
