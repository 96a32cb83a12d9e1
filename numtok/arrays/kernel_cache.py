"""What Numba compiled, kept on disk: a file for each kernel, the types it is called with and the kind of processor.

**No kernel is ever stale.** Numba's own cache takes a function that was compiled if the file that defines it is unchanged, and does not see a change in a
module from which that file takes another kernel or a constant. Here the key is the content of all files in the kernel's room and in the rooms below, from
which alone it can take something: equal in a checkout and in an installed wheel, whatever the times of the files. A file that is damaged, cut short or
another version's is no file; it is written again.

They lie beside the package, in its ``__pycache__``, as trusted as the code itself; where that cannot be written, in the user's cache folder, if nobody else
can write to it: Numba's format is pickled. Both are read. ``NUMBA_CACHE_DIR`` names another folder for all, on the word of whoever sets it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import multiprocessing
import os
import pickle
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import caching, compiler, runtime, serialize

from numtok.arrays import kept
from numtok.arrays.compiling import TRIED, config
from numtok.arrays.stamp import PACKAGE, ROOMS, content_stamp

compile_result: Any = compiler.CompileResult
_dumps: Any = serialize.dumps
OPTIMISED: Any = config.OPT
COMPILING = "numtok: compiling for this processor, which takes some seconds, once; `numtok warm-up` does it beforehand"
VERSIONS = 8  # of a room, whose kernels are left in a folder


def keep(dispatcher: Any) -> None:
    """Keep what is compiled for a dispatcher, and load what was. Numba has no public way to replace its cache."""
    dispatcher._cache = KernelCache(dispatcher.py_func)


def _prepare(target_context: Any) -> None:
    """What it takes to load what was compiled. Numba's own way is to prepare for compiling, which takes longer than all the rest of a start."""
    if TRIED:
        rtsys: Any = runtime.rtsys  # type: ignore[attr-defined]
        rtsys.initialize(target_context)
    else:
        target_context.refresh()


class KernelCache(caching._Cache):
    """The cache of one kernel, as Numba's dispatchers call it."""

    def __init__(self, function: Any) -> None:
        self._name = f"{function.__module__}.{function.__qualname__}"
        names = function.__module__.split(".")
        self._room = names[1] if names[0] == "numtok" and names[1] in ROOMS else ROOMS[-1]

    @property
    def cache_path(self) -> str:
        """The first folder."""
        return str(self._folders()[0])

    def _folders(self) -> list[Path]:
        """Those of the kernels of its room, as its source is now."""
        return [_of_room(folder, self._room) for folder in folders()]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for these types, or None."""
        name = self._file_name(sig, target_context.codegen())
        _prepare(target_context)
        for folder in self._folders():
            content = kept.read(folder / name)
            if content is not None:
                with contextlib.suppress(Exception):  # whatever pickle finds wrong: it is compiled anew
                    own_sig, reduced = pickle.loads(content)
                    if own_sig == sig:
                        return compile_result._rebuild(target_context, *reduced)
        _say_that_it_compiles()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled function in the first folder that takes it."""
        if data.library.has_dynamic_globals:
            return _warn_uncached(f"{self._name} holds an address")
        name, content = self._file_name(sig, data.codegen), _dumps((sig, data._reduce()))
        refused = "there is no folder for them"
        for folder in self._folders():
            try:
                _make(folder)
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


def folders() -> list[Path]:
    """Where kernels are looked for, and written to the first that takes them: in each, a folder for each room as its source is."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen) / "numtok" / "kernels"]
    user = kept.user_folder()
    return [PACKAGE / "__pycache__" / "kernels", *([] if user is None else [user / "kernels"])]


def writable_folder() -> Path | None:
    """The first folder that takes a file."""
    for folder in folders():
        with contextlib.suppress(OSError):
            _make(folder)
            kept.write(folder / "probe", b"")
            (folder / "probe").unlink(missing_ok=True)
            return folder
    return None


def compiled_in(folder: Path) -> int:
    """How many compiled functions of the source as it is now lie there."""
    return sum(1 for room in ROOMS for _ in _of_room(folder, room).glob("*.kernel"))


def _of_room(folder: Path, room: str) -> Path:
    return folder / f"{room}-{content_stamp(room)[:16]}"


def _make(folder: Path) -> None:
    """Make the folder; and remove those of its room that were not used for long."""
    if folder.is_dir():
        return
    if (user := kept.user_folder()) is not None and user in folder.parents:
        kept.make_private(user)
    folder.mkdir(parents=True, exist_ok=True)
    of_the_room = folder.name.partition("-")[0] + "-*"
    others = sorted(folder.parent.glob(of_the_room), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in others[VERSIONS:]:
        shutil.rmtree(old, ignore_errors=True)


_told: set[str] = set()


def _say_that_it_compiles() -> None:
    """Say once why the next seconds pass without result. A logger, so that a program can have it elsewhere; by default it goes to stderr."""
    if "compiles" not in _told and multiprocessing.parent_process() is None:
        _told.add("compiles")
        logging.getLogger("numtok").warning(COMPILING)


def _warn_uncached(why: str) -> None:
    """Say once in a process that functions are compiled anew in each."""
    if "uncached" not in _told:
        _told.add("uncached")
        message = f"compiled functions cannot be kept, so that each start takes longer ({why}); set NUMBA_CACHE_DIR to a folder with room"
        warnings.warn(message, UserWarning, stacklevel=2)
