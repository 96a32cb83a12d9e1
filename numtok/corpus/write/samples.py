"""Samples for loaders that stream: a dictionary of arrays for each row, written by the loader's own
package into a folder that appears when it is whole.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from numtok.errors import MissingDependencyError, OutputError
from numtok.locations import is_url

Write = Callable[[Mapping[str, npt.NDArray[Any]]], None]
ABOUT = "numtok.json"
STORED = {"bool": "uint8"}  # MDS takes no bool
_SHARD_BYTES = 64 << 20


@contextlib.contextmanager
def _mds(folder: Path, dtypes: Mapping[str, str]) -> Iterator[Write]:
    """MosaicML streaming: ``index.json`` and its shards."""
    try:
        from streaming import MDSWriter
    except ImportError as error:
        raise MissingDependencyError("pip install mosaicml-streaming, which writes MDS") from error
    columns = {name: f"ndarray:{dtype}" for name, dtype in dtypes.items()}
    with MDSWriter(out=str(folder), columns=columns, size_limit=_SHARD_BYTES) as writer:
        yield writer.write


@contextlib.contextmanager
def _webdataset(folder: Path, dtypes: Mapping[str, str]) -> Iterator[Write]:
    """Tar files with a ``.npy`` for each stream of each row."""
    try:
        from webdataset import ShardWriter
    except ImportError as error:
        raise MissingDependencyError("pip install webdataset, which writes the files") from error
    count = 0

    def write(sample: Mapping[str, npt.NDArray[Any]]) -> None:
        nonlocal count
        arrays = {f"{name}.npy": values for name, values in sample.items()}
        writer.write({"__key__": f"{count:012}", **arrays})
        count += 1

    with ShardWriter(str(folder / "%06d.tar"), maxsize=_SHARD_BYTES, verbose=0) as writer:
        yield write


WRITERS = {"mds": _mds, "webdataset": _webdataset}


class Samples:
    """A folder of samples that is being written."""

    def __init__(self, target: str, folder: Path, streams: Iterable[str], write: Write) -> None:
        self.files = dict.fromkeys(streams, target)
        self.bytes_written = 0  # known at the end
        self._folder, self._write = folder, write

    def write(self, streams: Mapping[str, npt.NDArray[Any]], ends: npt.NDArray[np.int64]) -> None:
        """Append rows, which end after so many tokens."""
        for start, stop in itertools.pairwise([0, *ends.tolist()]):
            if start < stop:
                self._write({name: values[start:stop] for name, values in streams.items()})

    def describe(self, about: str) -> None:
        """What stands beside them."""
        (self._folder / ABOUT).write_text(about, "utf-8")


@contextlib.contextmanager
def open_streams(
    folder: str, kind: str, dtypes: Mapping[str, np.dtype[Any]], overwrite: bool
) -> Iterator[Samples]:
    """A folder of samples, which gets its name at the end, and replaces one of ours alone."""
    if is_url(folder):
        raise OutputError(f"{folder}: {kind} is written on this machine; copy it to the store then")
    target = Path(folder)
    if os.path.lexists(target) and not (overwrite and (target / ABOUT).is_file()):
        raise OutputError(
            f"{target} exists already; choose another name, or replace what an earlier export wrote"
            " with overwrite=True"
        )
    temporary = target.parent / f".{target.name}.{os.getpid()}-{secrets.token_hex(6)}.tmp"
    try:
        temporary.mkdir(parents=True)
        names = {name: dtype.name for name, dtype in dtypes.items()}
        with WRITERS[kind](temporary, names) as write:
            samples = Samples(folder, temporary, dtypes, write)
            yield samples
        files = (path for path in temporary.rglob("*") if path.is_file())
        samples.bytes_written = sum(path.stat().st_size for path in files)
        if target.exists():
            shutil.rmtree(target)
        temporary.rename(target)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
