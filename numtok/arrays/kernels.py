"""How the compiled functions are compiled: cached on disk, without the interpreter's lock, mostly without reference counts.

With reference counts (``_nrt``) Numba counts every array up and down inside the loops, which can cost as much as all the rest. The price of going
without is that these functions cannot allocate: they fill arrays that they are given. Arrays that belong together travel together, as NamedTuples.

**No kernel is ever stale.** Numba takes a compiled function from its cache if the file that defines it is unchanged, and does not see a change in
a module from which that file takes another kernel or a constant. So the key is the content of all files in the rooms that hold kernels: equal in a
checkout and in an installed wheel, whatever the times of the files.

===================== ==================================================================================================
kernel                called from Python; fills arrays that it is given
inline_kernel         short, copied into its callers before types are inferred
merged_kernel         copied into its callers by LLVM: for one that takes NamedTuples of arrays, which are costly to hand over
allocating_kernel     may allocate, and counts references
===================== ==================================================================================================
"""

from __future__ import annotations

import functools
import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher

ROOMS = ("arrays", "numbers", "representations", "engines", "tokenizer")  # that hold kernels, or what kernels are made of
PACKAGE = Path(__file__).parent.parent


@functools.cache
def content_stamp() -> str:
    """A digest of the source of every module that a kernel can depend on."""
    digest = hashlib.sha256()
    for room in ROOMS:
        for path in sorted((PACKAGE / room).glob("*.py")):
            digest.update(f"{room}/{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    def compile_lazily(function: Callable[..., Any]) -> Any:
        try:
            made: Any = numba.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError as error:  # Numba finds no folder that it can write to
            _warn_uncached(str(error))
            return numba.njit(nogil=True, **options)(function)
        if isinstance(made, Dispatcher):  # with NUMBA_DISABLE_JIT it is the function itself
            cache: Any = made._cache  # type: ignore[attr-defined]  # Numba has no public way to say what a cached function depends on
            cache._cache_file._source_stamp = content_stamp()
            cache.save_overload, cache.load_overload = _unless_refused(cache.save_overload), _unless_refused(cache.load_overload)
        return made

    return compile_lazily


def _unless_refused(access: Callable[..., Any]) -> Callable[..., Any]:
    """``access`` to the cache, where a disk that is full or refuses means that there is none: the function has been compiled, or will be."""

    def try_it(*arguments: Any) -> Any:
        try:
            return access(*arguments)
        except OSError as error:
            _warn_uncached(str(error))
            return None

    return try_it


_warned: list[str] = []


def _warn_uncached(why: str) -> None:
    """Say once in a process that functions are compiled anew in each."""
    if not _warned:
        _warned.append(why)
        message = f"compiled functions cannot be kept, so that each start takes longer ({why}); set NUMBA_CACHE_DIR to a folder with room"
        warnings.warn(message, UserWarning, stacklevel=2)


kernel = _compiled(_nrt=False)
inline_kernel = _compiled(_nrt=False, inline="always")
merged_kernel = _compiled(_nrt=False, forceinline=True)
allocating_kernel = _compiled()
