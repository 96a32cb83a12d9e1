"""What Numba compiled, in Numba's own file cache: a folder for each module that holds kernels and
the content of all that it is made of, a file for each kernel, its types and the processor.

**No kernel is ever stale.** Numba takes a function from its cache if the file that defines it is
unchanged, and does not see a change in a module from which that file takes another kernel or a
constant. Here the key is the source of all of them (:func:`numtok.arrays.file_cache.source_key`).

Numba pickles, so a folder is used only if nobody else can write to it, to one above it or to a file
in it. First comes the ``__pycache__`` of the package, as readable as the code, then the user's own
folder; ``NUMBA_CACHE_DIR`` names another in place of both. Whatever goes wrong, a damaged file or
another Numba, kernels are compiled and run.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import multiprocessing
import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numba
from numba.core import caching as numba_caching
from numba.core import runtime

from numtok.arrays.file_cache import OTHERS_WRITE, make_private, source_key, trusted, user_folder

PACKAGE = Path(__file__).parent.parent
VERSIONS = 8  # of a module, whose kernels are left in a folder
# Numba prepares for compiling before it loads, which takes longer than a start; in these versions
# it is known that loading takes less.
QUICK = ("0.61.", "0.68.")
COMPILING = (
    "numtok: compiling for this processor: the first use takes some seconds longer; `numtok"
    " warm-up` does it beforehand"
)
caching: Any = numba_caching  # Numba is hardly typed
rtsys: Any = runtime.rtsys  # type: ignore[attr-defined]
_told: set[str] = set()


def places() -> list[Path]:
    """Where kernels are looked for; they are written to the first that takes them."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen).absolute() / "numtok" / "kernels"]
    user = user_folder()
    return [PACKAGE / "__pycache__" / "kernels", *([] if user is None else [user / "kernels"])]


def _make(folder: Path) -> Path:
    """The folder, made, as readable as the package beside it; OSError if it cannot be trusted."""
    beside = PACKAGE in folder.parents
    return make_private(folder, 0o700 | (PACKAGE.stat().st_mode & 0o055 if beside else 0))


def writable_place() -> Path | None:
    """The first place that takes a file."""
    for place in places():
        with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=_make(place)):
            return place
    return None


def compiled_in(place: Path) -> int:
    """How many compiled functions lie there."""
    return sum(1 for _ in place.glob("*/*.nbc"))


class _NoLocator(caching._CacheLocator):  # type: ignore[misc]
    """:class:`KernelCache` says where each file is."""

    @classmethod
    def from_function(cls, *_: Any) -> _NoLocator:
        return cls()

    def ensure_cache_path(self) -> None:
        """It is there."""

    def get_cache_path(self) -> str:
        return ""

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return ""


class _Files(caching.IndexDataCacheFile):  # type: ignore[misc]
    """Files that nobody else may write, whatever the umask."""

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BinaryIO]:
        temporary = f"{filepath}.{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(temporary, flags, 0o644), "wb") as file:
                yield file
            os.replace(temporary, filepath)
        finally:
            Path(temporary).unlink(missing_ok=True)


def _others_write(folder: Path) -> bool:
    """Whether others can reach a file in it that they may write to."""
    if not hasattr(os, "getuid") or not folder.stat().st_mode & 0o077:  # Windows has no such modes
        return False
    return any(file.stat().st_mode & OTHERS_WRITE for file in folder.iterdir())


class _Pickled(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_NoLocator,)


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of one kernel, as Numba's dispatchers call it.

    Each combination of types has an index of its own: in one that is shared, two processes can
    give two of them the same file.
    """

    _impl_class = _Pickled

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._source = source_key(function.__module__)
        self._folder = f"{function.__module__}-{self._source[:16]}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for these types, or None."""
        for place in places():
            with contextlib.suppress(Exception):  # whatever pickle finds wrong
                folder = trusted(place / self._folder)
                if folder is not None and not _others_write(folder):
                    self._look_in(folder, sig, target_context.codegen())
                    if numba.__version__.startswith(QUICK):
                        rtsys.initialize(target_context)
                        found = self._load_overload(sig, target_context)
                    else:
                        found = super().load_overload(sig, target_context)
                    if found is not None:
                        return found
        _say_that_it_compiles()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache the compiled function in the first place that takes it."""
        refused = "there is no folder for them"
        for place in places():
            try:
                new = not (place / self._folder).exists()
                folder = _make(place / self._folder)
                if _others_write(folder):
                    shutil.rmtree(folder)
                    _make(folder)
                self._look_in(folder, sig, data.codegen)
                self._cache_file.flush()  # it may be damaged
                super().save_overload(sig, data)
                if new:
                    self._remove_old(place)
            except Exception as error:
                refused = str(error)
            else:
                return
        warn_uncached(refused)

    def _look_in(self, folder: Path, sig: Any, codegen: Any) -> None:
        made_for = repr((self._index_key(sig, codegen), self._source))
        name = f"{self._impl.filename_base}{hashlib.sha256(made_for.encode()).hexdigest()[:24]}"
        self._cache_file = _Files(str(folder), name, self._source)

    def _remove_old(self, place: Path) -> None:
        """Those of the module that were made longest ago."""
        versions = place.glob(f"{self._folder.rpartition('-')[0]}-*")
        by_age = sorted(versions, key=lambda path: path.stat().st_mtime, reverse=True)
        for old in by_age[VERSIONS:]:
            shutil.rmtree(old, ignore_errors=True)


def _say_that_it_compiles() -> None:
    """Say why the next seconds pass without result: once a machine, if there is where to note it.

    A logger, so that a program can have it elsewhere; by default it goes to stderr.
    """
    if "compiles" in _told or multiprocessing.parent_process() is not None:
        return
    _told.add("compiles")
    if (place := writable_place()) is not None:
        try:
            (place / "told").open("x").close()
        except FileExistsError:
            return
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
