"""Cache compiled Numba kernels between runs: a file for each kernel and argument types, in the
user's cache folder, or in the folder that ``NUMBA_CACHE_DIR`` names.

**No kernel is ever stale.** Numba's own cache goes by the times of the file that defines a
function, and does not see a change in a module from which that file takes another kernel or a
constant. Here the key is the source of all of them (:func:`numtok.arrays.file_cache.source_key`).
Numba's also takes longer to load: the second encode of one line takes 0.6 s of processor time with
these files, and 1.2 s with Numba's own (0.68, x86-64).

Numba pickles, so only a folder that nobody else can write to is read
(:mod:`numtok.arrays.file_cache`). Whatever goes wrong, a damaged file or another Numba, kernels are
compiled and run.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import multiprocessing
import os
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numba
from numba.core import caching as numba_caching
from numba.core import compiler, runtime
from numba.core import serialize as numba_serialize

from numtok.arrays import file_cache

COMPILING = (
    "numtok: compiling for this processor: the first use takes some seconds longer; `numtok"
    " warm-up` does it beforehand"
)
SUFFIX = ".kernel"
caching: Any = numba_caching  # Numba is hardly typed
serialize: Any = numba_serialize
Compiled: Any = compiler.CompileResult
rtsys: Any = runtime.rtsys  # type: ignore[attr-defined]
_told: set[str] = set()


def kernel_folder() -> Path:
    """Create the private folder where compiled functions are cached, and return it; OSError if that
    fails.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return file_cache.make_private(Path(chosen).absolute() / "numtok" / "kernels")
    if (user := file_cache.user_folder()) is None:
        raise PermissionError("there is no folder for them that is the user's alone")
    return file_cache.make_private(user / "kernels")


def compiled_in(folder: Path) -> int:
    """Return the number of compiled functions in the folder."""
    return sum(1 for _ in folder.glob(f"*{SUFFIX}"))


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of one kernel, as Numba's dispatchers call it.

    Each combination of types has a file of its own: by an index that is shared, as Numba has it,
    two processes can give two of them the same file.
    """

    def __init__(self, function: Any) -> None:
        self._py_func, self._name, self._cache_path = function, repr(function), ""
        self._source = file_cache.source_key(function.__module__)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for these types, or None.

        Numba's own way prepares for compiling first, which takes longer than a whole start.
        """
        with contextlib.suppress(Exception):  # whatever pickle finds wrong
            content = file_cache.read(self._path(sig, target_context.codegen()))
            if content is not None:
                rtsys.initialize(target_context)
                return Compiled._rebuild(target_context, *pickle.loads(content))
        _say_that_it_compiles()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache the compiled function, or warn that it cannot be."""
        try:
            if data.library.has_dynamic_globals:
                raise ValueError(f"{self._name} holds addresses of this process")
            file_cache.write(self._path(sig, data.codegen), serialize.dumps(data._reduce()))
        except Exception as error:
            warn_uncached(str(error))

    def _path(self, sig: Any, codegen: Any) -> Path:
        versions = numba.__version__, sys.implementation.cache_tag
        made_for = repr((self._index_key(sig, codegen), self._source, versions))
        digest = hashlib.sha256(made_for.encode()).hexdigest()[:40]
        return kernel_folder() / f"{self._py_func.__name__}-{digest}{SUFFIX}"


def _say_that_it_compiles() -> None:
    """Say why the next seconds pass without result: once a machine, if there is where to note it.

    A logger, so that a program can have it elsewhere; by default it goes to stderr.
    """
    if "compiles" in _told or multiprocessing.parent_process() is not None:
        return
    _told.add("compiles")
    try:
        (kernel_folder() / "told").touch(0o600, exist_ok=False)  # whatever the umask
    except FileExistsError:
        return
    except OSError:
        pass
    logging.getLogger("numtok").warning(COMPILING)


def warn_uncached(why: str) -> None:
    """Say once in a process that functions are compiled anew in each."""
    if "uncached" not in _told:
        _told.add("uncached")
        message = (
            f"compiled functions cannot be cached, so that each start takes longer ({why}); set"
            " NUMBA_CACHE_DIR to a folder that is yours alone"
        )
        warnings.warn(message, UserWarning, stacklevel=2)
