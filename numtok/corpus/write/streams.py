"""Streams of encoded rows for other people's trainers: pairs of files that Megatron-LM and GPT-NeoX
map into memory, or samples, a dictionary of arrays for each row, that a loader's own package writes.
All names appear when what they name is whole. A new format is a function and a line of
:data:`FORMATS`.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import secrets
import shutil
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from numtok.errors import MissingDependencyError, OutputError
from numtok.files import new_file
from numtok.locations import is_url

Values = npt.NDArray[Any]
Dtypes = Mapping[str, np.dtype[Any]]
Put = Callable[[Mapping[str, Values]], None]  # one sample

ABOUT = "numtok.json"
MAGIC = b"MMIDIDX\x00\x00"
_COMMON = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint16": 8}
CODES = {  # of dtypes; those of the two floats are not the same in the two programs
    "megatron": {**_COMMON, "float64": 6, "float32": 7},
    "gpt-neox": {**_COMMON, "float32": 6, "float64": 7},
}
_SHARD_BYTES = 64 << 20


class Streams(ABC):
    """Streams that are being written: ``files`` says where each of them lies."""

    files: Mapping[str, str]
    bytes_written = 0

    @abstractmethod
    def write(self, streams: Mapping[str, Values], ends: npt.NDArray[np.int64]) -> None:
        """Append rows, which end after so many tokens."""

    @abstractmethod
    def finish(self, about: str) -> None:
        """Write what waits, and ``about`` beside it."""


class _Indexed(Streams):
    """For each stream ``NAME.bin``, the values of all sequences end to end, little-endian, and
    ``NAME.idx``: magic, version (uint64), code of the dtype (uint8), n (uint64), n + 1 (uint64);
    then the values of each sequence (int32[n]), the byte at which it begins (int64[n]), and the
    sequence with which each document begins, and n (int64[n + 1]). Each sequence is a document.
    """

    def __init__(
        self, prefix: str, to: str, dtypes: Dtypes, opened: Callable[[str], BinaryIO]
    ) -> None:
        self.files = {
            name: prefix if name == "input_ids" else f"{prefix}_{name}" for name in dtypes
        }
        self._dtypes, self._codes = dtypes, CODES[to]
        paths = [f"{prefix}.json"]  # the index gets its name last
        paths += [f"{base}.{kind}" for base in self.files.values() for kind in ("idx", "bin")]
        self._open = {path: opened(path) for path in paths}
        self._sizes = {name: [np.empty(0, np.int32)] for name in dtypes}

    def write(self, streams: Mapping[str, Values], ends: npt.NDArray[np.int64]) -> None:
        tokens = np.diff(ends, prepend=0)
        for name, values in streams.items():
            sizes = tokens[tokens > 0] * int(np.prod(values.shape[1:]))
            if sizes.max(initial=0) > np.iinfo(np.int32).max:
                raise OutputError(
                    f"{self.files[name]}.bin: a sequence has {sizes.max():,} values, more than the"
                    " format can tell; export shorter rows, encoded with pack=..."
                )
            self._sizes[name].append(sizes.astype(np.int32))
            self._put(f"{self.files[name]}.bin", values, self._dtypes[name].newbyteorder("<"))

    def finish(self, about: str) -> None:
        for name, base in self.files.items():
            dtype, sizes = self._dtypes[name], np.concatenate(self._sizes[name])
            header = struct.pack("<QBQQ", 1, self._codes[dtype.name], len(sizes), len(sizes) + 1)
            begins = (np.cumsum(sizes, dtype=np.int64) - sizes) * dtype.itemsize
            self._put(f"{base}.idx", np.frombuffer(MAGIC + header, np.uint8))
            self._put(f"{base}.idx", sizes, "<i4")
            self._put(f"{base}.idx", begins, "<i8")
            self._put(f"{base}.idx", np.arange(len(sizes) + 1), "<i8")
            for kind in ("bin", "idx"):
                os.fsync(self._open[f"{base}.{kind}"].fileno())
        told = np.frombuffer(about.encode(), np.uint8)
        self._put(next(iter(self._open)), told)
        self.bytes_written -= told.nbytes

    def _put(self, path: str, values: Values, dtype: npt.DTypeLike = np.uint8) -> None:
        """Write all values; OutputError if the system refuses."""
        left = np.ascontiguousarray(values, dtype).reshape(-1).view(np.uint8).data
        self.bytes_written += left.nbytes
        try:
            while left:
                left = left[self._open[path].write(left) :]
        except OSError as error:
            raise OutputError(
                f"cannot write {path}: {error.strerror or error}; nothing is left under that name:"
                " make room, then run again"
            ) from error


@contextlib.contextmanager
def _open_indexed(prefix: str, to: str, dtypes: Dtypes, overwrite: bool) -> Iterator[Streams]:
    if not is_url(prefix):  # it names several files, as a folder does, which is made too
        with contextlib.suppress(OSError):  # told with the name of the first file
            Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        yield _Indexed(
            prefix, to, dtypes, lambda path: stack.enter_context(new_file(path, overwrite))
        )


class _Samples(Streams):
    """A folder of samples; their bytes are known at the end."""

    def __init__(self, target: str, folder: Path, dtypes: Dtypes, put: Put) -> None:
        self.files = dict.fromkeys(dtypes, target)
        self._folder, self._put = folder, put

    def write(self, streams: Mapping[str, Values], ends: npt.NDArray[np.int64]) -> None:
        for start, stop in itertools.pairwise([0, *ends.tolist()]):
            if start < stop:
                self._put({name: values[start:stop] for name, values in streams.items()})

    def finish(self, about: str) -> None:
        (self._folder / ABOUT).write_text(about, "utf-8")


@contextlib.contextmanager
def _mds(streaming: Any, folder: Path, dtypes: Dtypes) -> Iterator[Put]:
    """MosaicML streaming: ``index.json`` and its shards."""
    columns = {name: f"ndarray:{dtype.name}" for name, dtype in dtypes.items()}
    with streaming.MDSWriter(out=str(folder), columns=columns, size_limit=_SHARD_BYTES) as writer:
        yield writer.write


@contextlib.contextmanager
def _webdataset(webdataset: Any, folder: Path, dtypes: Dtypes) -> Iterator[Put]:
    """Tar files with a ``.npy`` for each stream of each row."""
    writer = webdataset.ShardWriter(str(folder / "%06d.tar"), maxsize=_SHARD_BYTES, verbose=0)
    count = itertools.count()

    def write(sample: Mapping[str, Values]) -> None:
        arrays = {f"{name}.npy": values for name, values in sample.items()}
        writer.write({"__key__": f"{next(count):012}", **arrays})

    with writer:
        yield write


_PACKAGES = {
    "mds": (_mds, "streaming", "mosaicml-streaming"),
    "webdataset": (_webdataset, "webdataset", "webdataset"),
}


@contextlib.contextmanager
def _open_samples(folder: str, kind: str, dtypes: Dtypes, overwrite: bool) -> Iterator[Streams]:
    """The folder gets its name at the end, and replaces one of ours alone."""
    if is_url(folder):
        raise OutputError(f"{folder}: {kind} is written on this machine; copy it to the store then")
    target = Path(folder)
    if os.path.lexists(target) and not (overwrite and (target / ABOUT).is_file()):
        raise OutputError(
            f"{target} exists already; choose another name, or replace what an earlier export wrote"
            " with overwrite=True"
        )
    temporary = target.parent / f".{target.name}.{os.getpid()}-{secrets.token_hex(6)}.tmp"
    make, module, package = _PACKAGES[kind]
    try:
        writers = importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError(f"pip install {package}, which writes {kind}") from error
    try:
        temporary.mkdir(parents=True)
        with make(writers, temporary, dtypes) as put:
            samples = _Samples(folder, temporary, dtypes, put)
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


class StreamFormat(NamedTuple):
    """A format: what opens it; what it stores dtypes as that it has no word for, the same bits; and
    whether its program joins the documents end to end.
    """

    open: Callable[[str, str, Dtypes, bool], AbstractContextManager[Streams]]
    stored: Mapping[str, str]
    joins_documents: bool


_AS_BITS = {"bool": "uint8", "uint32": "int32", "uint64": "int64"}
FORMATS = {
    "megatron": StreamFormat(_open_indexed, _AS_BITS, True),
    "gpt-neox": StreamFormat(_open_indexed, _AS_BITS, True),
    "mds": StreamFormat(_open_samples, {"bool": "uint8"}, False),
    "webdataset": StreamFormat(_open_samples, {"bool": "uint8"}, False),
}
