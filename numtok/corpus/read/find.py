"""The files that the user names, each with the format and the compression of its name."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from numtok import locations
from numtok.corpus.jobs.folder import MANIFEST, OWN, PLAN, shards_of
from numtok.corpus.read.formats import SUFFIXES
from numtok.corpus.read.sources import COMPRESSIONS, Source
from numtok.errors import InputError
from numtok.locations import is_url

# A folder written by the `datasets` library has these beside its .arrow files; they hold no
# documents.
SIDECARS = frozenset({"dataset_info.json", "dataset_dict.json", "state.json"})


def find_inputs(
    inputs: str | Path | Sequence[str | Path], format: str | None = None
) -> list[Source]:
    """The files of ``inputs``, in the order given; those of folders and globs by path. InputError if
    there are none, or one is there twice.

    Folders are read recursively: known suffixes only, names with a leading dot skipped, links to
    folders not followed; of the folder of a job, the shards. ``format`` overrides the suffix of
    files; in a folder, it selects those of that format.
    """
    if format is not None and format not in SUFFIXES:
        raise InputError(f"unknown format {format!r}; known are {', '.join(SUFFIXES)}")
    asked = None if format is None else SUFFIXES[format]
    given = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    sources = [source for item in given for source in _expand(str(item), asked)]
    if not sources:
        raise InputError("no input given; name files, folders, globs, or - for standard input")
    _refuse_twice(sources)
    return sources


def _refuse_twice(sources: Sequence[Source]) -> None:
    """``InputError`` if a file would be read twice: by a link, or plain and compressed."""
    files: dict[object, Source] = {}
    stems: dict[str, Source] = {}
    for source in sources:
        before = files.setdefault(_identity(source.path), source)
        if before is not source:
            other = f" (the other time as {before.path})" if before.path != source.path else ""
            raise InputError(
                f"is given twice{other}, so that its documents would come twice; name it once",
                source.name,
            )
        if source.path == "-":
            continue
        stem = os.path.splitext(source.path)[0] if source.compression else source.path
        stem = stem if is_url(stem) else os.path.realpath(stem)
        before = stems.setdefault(stem, source)
        if before is not source:
            message = (
                f"seems to hold the same as {before.path}, compressed or not; name only one of the"
                " two, or rename one"
            )
            raise InputError(message, source.name)


def _identity(path: str) -> object:
    """Equal for two names of one file."""
    if path == "-" or is_url(path):
        return path
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _expand(item: str, asked: str | None) -> list[Source]:
    """The sources of one argument; a file that really has ``*`` in its name wins over the glob."""
    if item == "-":
        return [Source("-", asked or "jsonl")]
    if is_url(item):
        return _remote(item, asked)
    if os.path.isdir(item):
        return _folder(item, asked)
    if os.path.lexists(item):
        return [_file(item, asked)]
    if glob.has_magic(item):
        hits = [hit for hit in sorted(glob.glob(item, recursive=True)) if not os.path.isdir(hit)]
        if hits:
            return [_file(hit, asked) for hit in hits]
        raise InputError(
            "no file matches this pattern; check it, and quote it so that the shell leaves it"
            " alone",
            item,
        )
    raise InputError("no such file or folder; check the path", item)


def _remote(url: str, asked: str | None) -> list[Source]:
    """The same for a URL. What HTTP names is one file, whatever is in its name."""
    if not url.startswith(("http:", "https:")) and glob.has_magic(url):
        if hits := locations.files_below(url, pattern=True):
            return [_source(hit, asked, size) for hit, size in hits.items()]
        raise InputError("no file matches this pattern; check it", url)
    found = locations.status(url)
    if found is None:
        raise InputError("there is no such object or folder; check the URL", url)
    if not found.is_folder:
        return [_source(url, asked, found.size)]
    sizes, root = locations.files_below(url), url.rstrip("/")
    of_a_job = (file for file in sizes if file.endswith((f"/{PLAN}", f"/{MANIFEST}")))
    jobs = tuple({file.rpartition(f"/{OWN}/")[0] for file in of_a_job})
    shards = {file for job in jobs for file in shards_of(job) or ()}
    beside = tuple(f"{job}/" for job in jobs)  # whatever else lies there is not read
    data = [
        file
        for file in sizes
        if file in shards
        or (not file.startswith(beside) and _is_data(file[len(root) + 1 :].split("/"), asked))
    ]
    return [_source(file, asked, sizes[file]) for file in _some(data, url, asked)]


def _is_data(inner: Sequence[str], asked: str | None) -> bool:
    """Whether a file, by its path within a folder, is one to be read."""
    *folders, name = inner
    if (
        name.startswith(".")
        or name in SIDECARS
        or any(folder.startswith(".") or folder == OWN for folder in folders)
    ):
        return False
    known = suffixes(name)[0]
    return known is not None and (asked in (None, known) or (asked, known) == ("jsonl", "json"))


def _some(files: Sequence[str], folder: str, asked: str | None) -> Sequence[str]:
    """The files, of which there must be one."""
    if not files:
        wanted = asked or "/".join(f".{suffix}" for suffix in SUFFIXES)
        raise InputError(
            f"the folder holds no file of a known kind ({wanted}, plain or compressed); name files"
            " and input_format=...",
            folder,
        )
    return files


def _folder(folder: str, asked: str | None) -> list[Source]:
    """All files of known (or the asked) format below ``folder``."""

    def refuse(error: OSError) -> None:
        raise InputError(
            f"the folder cannot be read: {error.strerror}; check its permissions",
            error.filename or folder,
        )

    paths: list[str] = []
    for root, folders, files in os.walk(folder, onerror=refuse):
        if OWN in folders and (shards := shards_of(root)) is not None:
            paths += shards  # whatever else lies beside them
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".") and name != OWN]
        paths += [str(Path(root, name)) for name in files if _is_data([name], asked)]
    found = [_file(str(path), asked) for path in sorted(map(Path, _some(paths, folder, asked)))]
    for source in found:
        if source.size is None:  # it may wait for ever
            raise InputError("is a pipe or a device; take it out of the folder", source.path)
    return found


def _file(path: str, asked: str | None) -> Source:
    """One file; its format is the asked one or that of its suffix."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path", path) from None
    if asked is None and stat.S_ISFIFO(status.st_mode) and not path.startswith("/dev/fd/"):
        raise InputError(
            "is a named pipe, which waits until something writes to it; say what it holds with"
            " input_format=... if that is meant",
            path,
        )
    # A pipe or device (`<(command)`) has a size of 0 that means nothing.
    return _source(path, asked, status.st_size if os.path.isfile(path) else None)


def _source(path: str, asked: str | None, size: int | None) -> Source:
    """The same once its size is known."""
    known, compression = suffixes(path)
    if asked is None and known is None:
        raise InputError(
            f"unknown kind of file; rename it to one of .{', .'.join(SUFFIXES)}, or tell with"
            " input_format=...",
            path,
        )
    return Source(path, asked or known or "jsonl", compression, size)


def suffixes(path: str) -> tuple[str | None, str | None]:
    """Format and compression, or None: ``a.jsonl.gz`` is ``("jsonl", "gzip")``."""
    if path.startswith(("http://", "https://")):
        path = path.partition("?")[0]
    parts = os.path.basename(path).lower().split(".")[1:]
    compression = COMPRESSIONS.get(parts[-1]) if parts else None
    if compression:
        parts = parts[:-1]
    return (SUFFIXES.get(parts[-1]) if parts else None), compression
