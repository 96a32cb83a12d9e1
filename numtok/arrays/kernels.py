"""How the compiled functions are compiled: cached on disk, without the interpreter's lock, without reference counts.

With reference counts (``_nrt``) Numba counts every array up and down inside the loops, which can cost as much as all the rest. The price of going
without is that these functions cannot allocate: they fill arrays that they are given.
"""

from __future__ import annotations

import numba

kernel = numba.njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]
inline_kernel = numba.njit(cache=True, nogil=True, _nrt=False, inline="always")  # type: ignore[call-overload]
