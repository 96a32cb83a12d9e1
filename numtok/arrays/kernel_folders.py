"""Where compiled kernels lie: in each of a few places a folder for each room, named after the
room's source and that of the rooms below.

They lie beside the package, in its ``__pycache__``, as trusted as the code itself; where that
cannot be written, in the user's cache folder, if nobody else
can write to it: Numba's format is pickled. Both are read. ``NUMBA_CACHE_DIR`` names another place
    for all, on the word of whoever sets it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from numtok.arrays import kept
from numtok.arrays.stamp import PACKAGE, ROOMS, content_stamp

VERSIONS = 8  # of a room, whose kernels are left in a folder


def places() -> list[Path]:
    """Where kernels are looked for, and written to the first that takes them."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen) / "numtok" / "kernels"]
    user = kept.user_folder()
    return [PACKAGE / "__pycache__" / "kernels", *([] if user is None else [user / "kernels"])]


def writable_place() -> Path | None:
    """The first place that takes a file."""
    for place in places():
        with contextlib.suppress(OSError):
            make(place)
            kept.write(place / "probe", b"")
            (place / "probe").unlink(missing_ok=True)
            return place
    return None


def compiled_in(place: Path) -> int:
    """How many compiled functions of the source as it is now lie there."""
    return sum(1 for room in ROOMS for _ in _of_room(place, room).glob("*.kernel"))


def name_of(function: object) -> str:
    """What the files of a kernel are called by."""
    return f"{function.__module__}.{function.__qualname__}"  # type: ignore[attr-defined]


def folders_of(name: str) -> list[Path]:
    """Those of the kernels of its room, as its source is now."""
    names = name.split(".")
    room = names[1] if names[0] == "numtok" and names[1] in ROOMS else ROOMS[-1]
    return [_of_room(place, room) for place in places()]


def is_compiled(name: str) -> bool:
    """Whether there is anything of this kernel, as its source is now."""
    return any(True for folder in folders_of(name) for _ in folder.glob(f"{name}-*.kernel"))


def _of_room(place: Path, room: str) -> Path:
    return place / f"{room}-{content_stamp(room)[:16]}"


def make(folder: Path) -> None:
    """Make the folder; and remove those of its room that were not used for long.

    Raises:
        OSError: if the system refuses.
    """
    if folder.is_dir():
        return
    if (user := kept.user_folder()) is not None and user in folder.parents:
        kept.make_private(user)
    folder.mkdir(parents=True, exist_ok=True)
    of_the_room = folder.name.partition("-")[0] + "-*"
    others = sorted(
        folder.parent.glob(of_the_room), key=lambda path: path.stat().st_mtime, reverse=True
    )
    for old in others[VERSIONS:]:
        shutil.rmtree(old, ignore_errors=True)
