"""Rows of Parquet at random: a file is converted once, to an uncompressed Arrow file in the user's
cache folder, which is then mapped by this process and others.

In: a Parquet file and the columns that are read. Out: the path of an Arrow file with the same rows,
in batches of a quarter of a megabyte, in ``rows`` in the cache folder.

**What is cached is found** by a digest of the Parquet file's footer, its size and when it was
changed, and of the columns: a file that was changed is converted anew. Batches have checksums, as
all Arrow files of numtok. Nothing cached is needed: without room, row groups are read whole.

**Room.** All cached files together take no more than so many bytes, and leave a tenth of the disk
free. For that, files go that nobody opened for a day.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from numtok.arrays.file_cache import make_private, user_folder
from numtok.corpus.read.encoded import EncodedFile, open_encoded
from numtok.corpus.read.parquet import identity
from numtok.corpus.write.encoded import open_writer
from numtok.errors import InputError, OutputError, SchemaError
from numtok.tokenizer.stored import check_rows

FORMAT = "numtok rows 3"
DISK_BYTES = 32 << 30
BATCH_BYTES = 1 << 18  # little to check for one row
READ_BATCHES = 16  # that are read at a time while a file is converted
LEAST_BYTES = 1 << 20  # of a row group; files of smaller ones are read as they are
DAY = 86400.0  # seconds
FREE_SHARE = 10  # a tenth of the disk
NOTE = (
    "numtok: rows at random: %s is converted to Arrow, once, in %s; NUMTOK_CACHE names another"
    " folder, disk_bytes=0 converts nothing"
)
NO_ROOM = (
    "numtok: no room in %s to convert %s (%s), so that all of a row group is read for each row:"
    " make room, or raise disk_bytes"
)


def as_arrow(path: str, columns: Sequence[str], disk_bytes: int) -> str | None:
    """The path of the Arrow file for a Parquet file, converted now if need be; None if it is read
    as it is: another kind of file, one with small row groups, without a cache folder or room, or
    with damage, which whoever reads there is told of.
    """
    folder = user_folder() if disk_bytes > 0 else None
    file = open_encoded(path, at_random=True)
    sizes = [file.chunk_bytes(number, columns) for number in range(len(file.chunk_rows()))]
    if folder is None or not file.identity or max(sizes, default=0) < LEAST_BYTES:
        return None
    name = "\0".join([FORMAT, str(BATCH_BYTES), file.identity, *columns])
    place = folder / "rows" / f"{hashlib.sha256(name.encode()).hexdigest()[:40]}.arrow"
    try:
        make_private(folder)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        with _locked(place.parent):
            if not _is_whole(place):
                logging.getLogger("numtok").warning(NOTE, path, place.parent)
                _make_room(place.parent, sum(sizes), disk_bytes)
                _convert(file, columns, place)
        os.utime(place)  # when it was last of use
    except (OSError, OutputError) as error:
        logging.getLogger("numtok").warning(NO_ROOM, place.parent, path, error)
        return None
    except (InputError, SchemaError):
        return None
    return str(place)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process converts, the others wait for it; not on a file system without locks."""
    with open(folder / "lock", "w") as lock:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_whole(place: Path) -> bool:
    """Whether the file is there and ends as it should; its batches are checked when they are read."""
    with (
        contextlib.suppress(InputError, SchemaError, OSError),
        contextlib.closing(open_encoded(place, at_random=True)) as file,
    ):
        return bool(file.chunk_rows())
    return False


def _convert(file: EncodedFile, columns: Sequence[str], place: Path) -> None:
    schema = pa.schema([file.schema.field(name) for name in columns], file.schema.metadata)
    first = 0
    with open_writer(place, schema, "arrow", "none", overwrite=True) as writer:
        for number, rows in enumerate(file.chunk_rows()):
            size = max(1, file.chunk_bytes(number, columns))
            step = max(1, rows * BATCH_BYTES // size)
            for batch in file.parts(number, columns, step * READ_BATCHES):
                check_rows(batch, file.path, first)
                first += batch.num_rows
                for start in range(0, batch.num_rows, step):
                    writer.write(batch.slice(start, step))
        if identity(file.path) != file.identity:
            raise InputError("was changed while it was read; begin again", file.path)


def _make_room(folder: Path, size: int, disk_bytes: int) -> None:
    """Remove what nobody opened for a day, as far as there is need to.

    Raises:
        OSError: if that is not enough.
    """
    found = [(path.stat(), path) for path in folder.glob("*.arrow")]
    used, disk = sum(stat.st_size for stat, _ in found), shutil.disk_usage(folder)
    missing = size + max(used - disk_bytes, disk.total // FREE_SHARE - disk.free)
    for stat, path in sorted(found, key=lambda one: one[0].st_mtime):
        if missing > 0 and stat.st_mtime < time.time() - DAY:
            path.unlink(missing_ok=True)
            missing -= stat.st_size
    if missing > 0:
        raise OSError(
            f"{size >> 20} MiB are needed, {used >> 20} MiB are taken, {disk.free >> 20} MiB free"
        )
