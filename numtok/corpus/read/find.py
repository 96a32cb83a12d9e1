"""The files that the user names, each with the format and the compression of its name."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from numtok import storage
from numtok.corpus.jobs.folder import MANIFEST, OWN, PLAN, shards_of
from numtok.corpus.read.documents import SUFFIXES
from numtok.corpus.read.sources import COMPRESSIONS, Source
from numtok.errors import InputError
from numtok.storage import is_url

# A folder written by the `datasets` library has these beside its .arrow files; they hold no
# documents.
SIDECARS = frozenset({"dataset_info.json", "dataset_dict.json", "state.json"})


def find_inputs(
    inputs: str | Path | Sequence[str | Path], format: str | None = None
) -> list[Source]:
    """Return the files of ``inputs``, in the order given; those of folders and globs by path.
    InputError if there are none, or one is there twice.

    Folders are read recursively: known suffixes only, names with a leading dot skipped, links to
    folders not followed; of the folder of a job, the shards. ``format`` overrides the suffix of
    files; in a folder, it selects those of that format.
    """
    if format is not None and format not in SUFFIXES:
        raise InputError(f"unknown format {format!r}; known are {', '.join(SUFFIXES)}")
    asked = None if format is None else SUFFIXES[format]
    items = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    sources = [source for item in items for source in _expand(str(item), asked)]
    if not sources:
        raise InputError("no input given; name files, folders, globs, or - for standard input")
    _refuse_twice(sources)
    return sources


def _refuse_twice(sources: Sequence[Source]) -> None:
    """Raise ``InputError`` if a file would be read twice: by a link, or plain and compressed."""
    files: dict[object, Source] = {}
    stems: dict[str, Source] = {}
    for source in sources:
        in_store = source.path == "-" or is_url(source.path)
        status = None if in_store else os.stat(source.path)
        identity = (status.st_dev, status.st_ino) if status else source.path
        before = files.setdefault(identity, source)
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


def _expand(item: str, asked: str | None) -> list[Source]:
    """Return the sources of one argument; a file that really has ``*`` in its name wins over the
    glob.
    """
    if item == "-":
        return [Source("-", asked or "jsonl")]
    status = storage.status(item)
    if status is not None and status.is_folder:
        return _folder(item.rstrip("/") if is_url(item) else storage.normalized(item), asked)
    if status is not None or os.path.lexists(item):
        return [_file(item, asked, status and status.size)]
    if glob.has_magic(item):
        if is_url(item):
            hits = storage.files_below(item, pattern=True)
        else:
            names = sorted(glob.glob(item, recursive=True))
            hits = {name: None for name in names if not os.path.isdir(name)}
        if hits:
            return [_file(hit, asked, size) for hit, size in hits.items()]
        raise InputError(
            "no file matches this pattern; check it, and quote it so that the shell leaves it"
            " alone",
            item,
        )
    raise InputError("no such file or folder; check the path or URL", item)


def _folder(folder: str, asked: str | None) -> list[Source]:
    """Return all files of known (or the asked) format below ``folder``; of a job, its shards alone."""
    sizes = storage.files_below(folder) if is_url(folder) else dict.fromkeys(_walk(folder))
    of_a_job = (file for file in sizes if file.endswith((f"/{PLAN}", f"/{MANIFEST}")))
    jobs = tuple({file.rpartition(f"/{OWN}/")[0] for file in of_a_job})
    shards = [file.replace(os.sep, "/") for job in jobs for file in shards_of(job) or ()]
    if lost := [shard for shard in shards if shard not in sizes]:
        raise InputError("is a shard that is not there any more; encode it again", lost[0])
    beside = tuple(f"{job}/" for job in jobs)  # whatever else lies there is not read
    data = [
        file
        for file in sizes
        if not file.startswith(beside) and _is_data(file[len(folder) :].split("/"), asked)
    ]
    if not data and not shards:
        wanted = asked or "/".join(f".{suffix}" for suffix in SUFFIXES)
        raise InputError(
            f"the folder holds no file of a known kind ({wanted}, plain or compressed); name files"
            " and input_format=... (--format)",
            folder,
        )
    ordered = sorted([*data, *shards], key=lambda file: file.split("/"))
    sources = [_file(file, asked, sizes[file]) for file in ordered]
    for source in sources:
        if source.size is None and not is_url(folder):  # it may wait for ever
            raise InputError("is a pipe or a device; take it out of the folder", source.path)
    return sources


def _walk(folder: str) -> Iterator[str]:
    """Yield the files below a folder of this machine, but for those in hidden folders; with slashes,
    also on Windows.
    """

    def refuse(error: OSError) -> None:
        raise InputError(
            f"the folder cannot be read: {error.strerror}; check its permissions",
            error.filename or folder,
        )

    for root, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (f"{root}/{name}".replace(os.sep, "/") for name in files)


def _is_data(inner: Sequence[str], asked: str | None) -> bool:
    """Whether a file, by its path within a folder, is one to be read."""
    hidden = any(part.startswith(".") or part == OWN for part in inner)
    file_format = None if hidden or inner[-1] in SIDECARS else suffixes(inner[-1])[0]
    return file_format is not None and (
        asked in (None, file_format) or (asked, file_format) == ("jsonl", "json")
    )


def _file(path: str, asked: str | None, size: int | None) -> Source:
    """Return one file; its format is the asked one or that of its suffix."""
    if not is_url(path):
        path = str(Path(path))
        try:
            status = os.stat(path)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}; check the path", path) from None
        # A pipe or device (`<(command)`) has a size of 0 that means nothing.
        size = status.st_size if stat.S_ISREG(status.st_mode) else None
    file_format, compression = suffixes(path)
    if asked is None and file_format is None:
        raise InputError(
            "unknown kind of file; unpack it if it is an archive, rename it to one of"
            f" .{', .'.join(SUFFIXES)}, or tell with input_format=... (--format)",
            path,
        )
    return Source(path, asked or file_format or "jsonl", compression, size)


def suffixes(path: str) -> tuple[str | None, str | None]:
    """Return (format, compression), each None if unknown: ``a.jsonl.gz`` is ``("jsonl", "gzip")``."""
    if path.startswith(("http://", "https://")):
        path = path.partition("?")[0]
    parts = os.path.basename(path).lower().split(".")[1:]
    compression = COMPRESSIONS.get(parts[-1]) if parts else None
    if compression:
        parts = parts[:-1]
    return (SUFFIXES.get(parts[-1]) if parts else None), compression
