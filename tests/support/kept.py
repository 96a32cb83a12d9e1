"""Check what the tests of one module share, such as tokenizers: made when first asked for, and let go
when the module is done.

An engine takes some 17 MB, of a real vocabulary a hundred: kept to the end of the run they would
fill the memory of a small machine."""

import functools
import gc

_KEPT = []


def kept(function):
    """A function whose last dozen results are kept to the end of the module that runs."""
    cached = functools.lru_cache(12)(function)
    _KEPT.append(cached)
    return cached


def drop():
    """Let everything go that is kept."""
    if any(cached.cache_info().currsize for cached in _KEPT):
        for cached in _KEPT:
            cached.cache_clear()
        gc.collect()
