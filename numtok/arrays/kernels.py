"""Decorators that compile functions with Numba: at their first call, without the interpreter's
lock, mostly without reference counts.

With reference counts (``_nrt``) Numba counts every array up and down inside the loops, which can
cost as much as all the rest. The price of going without is that these functions cannot allocate:
they fill arrays that they are given. Arrays that belong together travel together, as NamedTuples.

Numba itself is imported when the first of them is called. What was compiled is cached, see
:mod:`numtok.arrays.kernel_cache`.

===================== ==================================================================================================
kernel                called from Python; fills arrays that it is given
inner_kernel          called by kernels alone
inlined_kernel         copied into its callers by LLVM: for one that takes NamedTuples of arrays, which are costly to hand over
allocating_kernel     may allocate, and counts references
===================== ==================================================================================================
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any

_making = threading.RLock()


class Kernel:
    """A function of scalars, arrays and NamedTuples of them that Numba compiles for the types it is
    called with; the kernels that it calls are names in its module.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.options = function, options

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @functools.cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, which compiles at its first call and is cached on disk if Python calls
        it; with NUMBA_DISABLE_JIT the function itself.

        Numba looks for the kernels that the function calls among the globals of its module, so
        there they are replaced by their dispatchers.
        """
        import numba

        with _making:
            names = self.function.__globals__
            for name in self.function.__code__.co_names:
                if isinstance(called := names.get(name), Kernel):
                    names[name] = called.dispatcher
            dispatcher: Any = numba.njit(nogil=True, **_accepted(self.options))(self.function)
            if hasattr(dispatcher, "py_func"):
                # Other packages' extensions, such as awkward's, take a second to import.
                dispatcher._compilation_chain_init_hook = lambda: None
                if not self.options.get("no_cpython_wrapper"):  # else it is cached in its callers
                    _cache(dispatcher)
        return dispatcher


def _accepted(options: dict[str, Any]) -> dict[str, Any]:
    """Return those of the options that this Numba has: without the others kernels run too, only
    not as fast.
    """
    try:
        from numba.core.cpu import CPUTargetOptions
    except ImportError:
        return {}
    return {name: value for name, value in options.items() if hasattr(CPUTargetOptions, name)}


def _cache(dispatcher: Any) -> None:
    """Cache what is compiled for a dispatcher, if this Numba can be made to.

    It has no public way to choose the key and the folder of its cache.
    """
    try:
        from numtok.arrays.kernel_cache import KernelCache

        dispatcher._cache = KernelCache(dispatcher.py_func)
    except Exception as error:
        warnings.warn(f"compiled functions cannot be cached: {error}", UserWarning, stacklevel=2)


def _kernels(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    return functools.partial(Kernel, options=options)


# Numba's rewrites are for expressions of whole arrays, which would have to allocate.
_LEAN = {"_nrt": False, "no_cfunc_wrapper": True, "no_rewrites": True}
kernel = _kernels(**_LEAN)
inner_kernel = _kernels(**_LEAN, no_cpython_wrapper=True)
inlined_kernel = _kernels(**_LEAN, no_cpython_wrapper=True, forceinline=True)
allocating_kernel = _kernels(no_cfunc_wrapper=True)
