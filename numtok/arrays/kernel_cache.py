"""What Numba compiled, kept on disk: a file for each kernel, the types it is called with and the
kind of processor.

**No kernel is ever stale.** Numba's own cache takes a function that was compiled if the file that
defines it is unchanged, and does not see a change in a module from which that file takes another
kernel or a constant. Here the key is the content of all files in the kernel's room and in the rooms
below, from
which alone it can take something: equal in a checkout and in an installed wheel, whatever the times
    of the files. A file that is damaged, cut short or another version's is no file; it is written
    again.

Where they lie: :mod:`numtok.arrays.kernel_folders`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import multiprocessing
import pickle
import sys
import warnings
from typing import Any

import llvmlite
import numba
from numba.core import caching, compiler, runtime, serialize

from numtok.arrays import kept
from numtok.arrays.compile_beside import waited
from numtok.arrays.compiling import TRIED, config
from numtok.arrays.kernel_folders import folders_of, make, name_of

compile_result: Any = compiler.CompileResult
_dumps: Any = serialize.dumps
OPTIMISED: Any = config.OPT
COMPILING = (
    "numtok: compiling for this processor, which takes some seconds, once; `numtok warm-up` does it"
    " beforehand"
)


def keep(dispatcher: Any) -> None:
    """Keep what is compiled for a dispatcher, and load what was.

    Numba has no public way to replace its cache.
    """
    dispatcher._cache = KernelCache(dispatcher.py_func)


def _prepare(target_context: Any) -> None:
    """What it takes to load what was compiled.

    Numba's own way is to prepare for compiling, which takes longer than all the rest of a start.
    """
    if TRIED:
        rtsys: Any = runtime.rtsys  # type: ignore[attr-defined]
        rtsys.initialize(target_context)
    else:
        target_context.refresh()


class KernelCache(caching._Cache):
    """The cache of one kernel, as Numba's dispatchers call it."""

    def __init__(self, function: Any) -> None:
        self._name = name_of(function)

    @property
    def cache_path(self) -> str:
        """The first folder."""
        return str(folders_of(self._name)[0])

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for these types, or None."""
        name = self._file_name(sig, target_context.codegen())
        _prepare(target_context)
        found = self._read(name, sig, target_context)
        if found is None:
            _say_that_it_compiles()
            if waited(
                self._name,
                lambda: any((folder / name).exists() for folder in folders_of(self._name)),
            ):
                found = self._read(name, sig, target_context)
        return found

    def _read(self, name: str, sig: Any, target_context: Any) -> Any:
        for folder in folders_of(self._name):
            content = kept.read(folder / name)
            if content is not None:
                with contextlib.suppress(
                    Exception
                ):  # whatever pickle finds wrong: it is compiled anew
                    own_sig, reduced = pickle.loads(content)
                    if own_sig == sig:
                        return compile_result._rebuild(target_context, *reduced)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled function in the first folder that takes it."""
        if data.library.has_dynamic_globals:
            return _warn_uncached(f"{self._name} holds an address")
        name, content = self._file_name(sig, data.codegen), _dumps((sig, data._reduce()))
        refused = "there is no folder for them"
        for folder in folders_of(self._name):
            try:
                make(folder)
                kept.write(folder / name, content)
                return
            except OSError as error:
                refused = str(error)
        _warn_uncached(refused)

    def enable(self) -> None:
        """It always is."""

    def disable(self) -> None:
        """Not possible."""

    def flush(self) -> None:
        """Nothing waits to be written."""

    def _file_name(self, sig: Any, codegen: Any) -> str:
        made_for = (
            self._name,
            str(sig),
            codegen.magic_tuple(),
            numba.__version__,
            llvmlite.__version__,
            sys.version,
            sys.abiflags,
            OPTIMISED,
        )
        return f"{self._name}-{hashlib.sha256(repr(made_for).encode()).hexdigest()[:24]}.kernel"


_told: set[str] = set()


def _say_that_it_compiles() -> None:
    """Say once why the next seconds pass without result.

    A logger, so that a program can have it elsewhere; by default it goes to stderr.
    """
    if "compiles" not in _told and multiprocessing.parent_process() is None:
        _told.add("compiles")
        logging.getLogger("numtok").warning(COMPILING)


def _warn_uncached(why: str) -> None:
    """Say once in a process that functions are compiled anew in each."""
    if "uncached" not in _told:
        _told.add("uncached")
        message = (
            f"compiled functions cannot be kept, so that each start takes longer ({why}); set"
            " NUMBA_CACHE_DIR to a folder with room"
        )
        warnings.warn(message, UserWarning, stacklevel=2)
