"""How Numba is made to compile in half the time that it takes by itself.

- What LLVM optimises and makes machine code of is what Python calls. Kernels that only other
  kernels call are optimised within those (:class:`Inner`).
- Other packages' extensions of Numba, such as awkward's, are left to the first function that is not
  ours: importing them takes a second.
- Garbage is not collected meanwhile: Numba makes millions of objects that stay.

This takes more of Numba than what it says of itself; where its version is none that is known,
kernels are compiled as Numba does it.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import numba
from numba.core import codegen, compiler
from numba.core import config as numba_config
from numba.core import entrypoints as numba_entrypoints

TRIED = numba.__version__.startswith("0.68.")
entrypoints: Any = numba_entrypoints  # Numba is hardly typed
config: Any = numba_config
_library: Any = codegen.JITCodeLibrary
_compiler: Any = compiler.Compiler


class _Unfinished(_library):  # type: ignore[misc]
    """Code to be linked into its callers': hardly optimised by itself, and no machine code."""

    def _optimize_functions(self, module: Any) -> None:
        before, config.OPT = config.OPT, config._OptLevel(1)
        try:
            super()._optimize_functions(module)
        finally:
            config.OPT = before

    def _optimize_final_module(self) -> None:
        """It is done in the callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """There is none."""
        return 0

    @property
    def codegen(self) -> Any:
        """Asked for by Numba to tell the machine code where its globals are."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Not needed by what is never called from Python."""


class Inner(_compiler):  # type: ignore[misc]
    """Numba's pipeline for a kernel that only other kernels call."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *others: Any) -> None:
        super().__init__(typingctx, targetctx, library, *others)
        self.state.library = _Unfinished(self.state.targetctx.codegen(), "inner")


def compile_quickly(dispatcher: Any) -> None:
    """What a dispatcher compiles, with the kernels that it calls, is compiled as above."""
    if TRIED:
        dispatcher._compilation_chain_init_hook = _no_extensions
    own = dispatcher._compiler
    compile_it = own.compile

    def compile_so(args: Any, return_type: Any) -> Any:  # the compiler's lock is held
        with _without_extensions(), _without_collecting():
            return compile_it(args, return_type)

    own.compile = compile_so


def _no_extensions() -> None:
    """In place of importing them before anything is compiled or loaded."""


@contextlib.contextmanager
def _without_extensions() -> Iterator[None]:
    before = entrypoints._already_initialized
    entrypoints._already_initialized = before or TRIED
    try:
        yield
    finally:
        entrypoints._already_initialized = before


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
