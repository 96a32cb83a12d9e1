"""From what the user names to the files behind it.

In: files, folders, globs or ``-``. Out: ``Source`` records in reading order, each with the format and the compression that its name tells.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from numtok.corpus.job_folder import OWN, refuse_unfinished
from numtok.corpus.read.formats import SUFFIXES
from numtok.corpus.read.sources import COMPRESSIONS, Source
from numtok.errors import InputError

# A folder written by the `datasets` library has these beside its .arrow files; they hold no documents.
SIDECARS = frozenset({"dataset_info.json", "dataset_dict.json", "state.json"})


def find_inputs(inputs: Sequence[str | Path], format: str | None = None) -> list[Source]:
    """The files behind ``inputs``, in the order given; folders and globs are sorted by path.

    Args:
        inputs: files; folders (read recursively: known suffixes only, names with a leading dot skipped, links to folders not
            followed; of the folder of a job, the shards); globs (``**`` works; hits that are folders are ignored); ``-`` for standard input.
        format: overrides the suffix of files, globs and standard input (JSON lines unless told); in a folder, it selects
            the files of that format.

    Raises:
        InputError: nothing is there, a format is neither known nor given, or the same file is there twice.
    """
    if format is not None and format not in SUFFIXES:
        raise InputError(f"unknown format {format!r}; known are {', '.join(SUFFIXES)}")
    asked = None if format is None else SUFFIXES[format]
    sources = [source for item in inputs for source in _expand(str(item), asked)]
    if not sources:
        raise InputError("no input given; name files, folders, globs, or - for standard input")
    _refuse_twice(sources)
    return sources


def _refuse_twice(sources: Sequence[Source]) -> None:
    """``InputError`` if a file would be read twice: by two names, through a link, or once plain and once compressed."""
    files: dict[object, Source] = {}
    stems: dict[str, Source] = {}
    for source in sources:
        status = None if source.path == "-" else os.stat(source.path)
        before = files.setdefault((status.st_dev, status.st_ino) if status else "-", source)
        if before is not source:
            same = f"is given twice (the other time as {before.path})" if before.path != source.path else "is given twice"
            raise InputError(f"{same}, so that its documents would come twice; name it once", source.name)
        if source.path == "-":
            continue
        stem = os.path.realpath(os.path.splitext(source.path)[0] if source.compression else source.path)
        before = stems.setdefault(stem, source)
        if before is not source:
            message = f"seems to hold the same as {before.path}, compressed or not; name only one of the two, or rename one"
            raise InputError(message, source.name)


def _expand(item: str, asked: str | None) -> list[Source]:
    """The sources behind one argument; a file that really has ``*`` in its name wins over the glob."""
    if item == "-":
        return [Source("-", asked or "jsonl")]
    if os.path.isdir(item):
        return _folder(item, asked)
    if os.path.lexists(item):
        return [_file(item, asked)]
    if glob.has_magic(item):
        hits = [hit for hit in sorted(glob.glob(item, recursive=True)) if not os.path.isdir(hit)]
        if hits:
            return [_file(hit, asked) for hit in hits]
        raise InputError("no file matches this pattern; check it, and quote it so that the shell leaves it alone", item)
    raise InputError("no such file or folder; check the path", item)


def _folder(folder: str, asked: str | None) -> list[Source]:
    """All files of known (or the asked) format below ``folder``."""

    def refuse(error: OSError) -> None:
        raise InputError(f"the folder cannot be read: {error.strerror}; check its permissions", error.filename or folder)

    paths: list[Path] = []
    for root, folders, files in os.walk(folder, onerror=refuse):
        if OWN in folders:
            refuse_unfinished(root)
        folders[:] = [name for name in folders if not name.startswith(".") and name != OWN]
        for name in files:
            known = suffixes(name)[0]
            hidden = name.startswith(".") or name in SIDECARS
            if known and not hidden and (asked in (None, known) or (asked, known) == ("jsonl", "json")):
                paths.append(Path(root, name))
    if not paths:
        wanted = asked or "/".join(f".{suffix}" for suffix in SUFFIXES)
        raise InputError(f"the folder holds no file of a known kind ({wanted}, plain or compressed); name files and --format", folder)
    return [_file(str(path), asked) for path in sorted(paths)]


def _file(path: str, asked: str | None) -> Source:
    """One file; its format is the asked one or that of its suffix."""
    known, compression = suffixes(path)
    if asked is None and known is None:
        raise InputError(f"unknown kind of file; rename it to one of .{', .'.join(SUFFIXES)}, or tell with --format", path)
    try:
        status = os.stat(path)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}; check the path", path) from None
    # A pipe or device (`<(command)`) has a size of 0 that means nothing.
    return Source(path, asked or known or "jsonl", compression, status.st_size if os.path.isfile(path) else None)


def suffixes(path: str) -> tuple[str | None, str | None]:
    """Format and compression by the end of the name: ``a.jsonl.gz`` is ``("jsonl", "gzip")``; None where unknown."""
    parts = os.path.basename(path).lower().split(".")[1:]
    compression = COMPRESSIONS.get(parts[-1]) if parts else None
    if compression:
        parts = parts[:-1]
    return (SUFFIXES.get(parts[-1]) if parts else None), compression
