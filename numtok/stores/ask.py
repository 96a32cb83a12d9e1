"""What every request to an object store goes through: made again if what went wrong may pass, and
told with the URL and the way out if not.

In: URLs such as ``s3://bucket/corpus/a.jsonl``. Out: what fsspec has for the store, and the answers
    that it gives.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from numtok.errors import (
    InputError,
    MissingDependencyError,
    MissingInputError,
    NumtokError,
    OutputError,
)

Answer = TypeVar("Answer")

TRIES = 5  # of a request over HTTP; the packages of stores try again by themselves
PAUSE = 0.5  # seconds before the second; each pause is about twice the one before

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_FINAL = (
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    ImportError,
    ValueError,
    TypeError,
    LookupError,
    NotImplementedError,
)
_REFUSED = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "ClientAuthenticationError",
    "DefaultCredentialsError",
)
_TOO_SOON = (408, 425, 429)  # answers of HTTP that say: later

_systems: dict[tuple[int, str, str], Any] = {}


def is_url(place: object) -> bool:
    """Whether it names something in a store, and not a path."""
    return isinstance(place, str | os.PathLike) and _URL.match(str(place)) is not None


def scheme_of(url: str) -> str:
    """``s3`` of ``s3://bucket``."""
    return url.partition("://")[0].lower()


def system_of(url: str) -> tuple[Any, str]:
    """(what speaks with the store, the path in it); one for all threads of a process."""
    try:
        import fsspec
    except ImportError as error:
        raise MissingDependencyError(
            f"{url}: URLs need fsspec, which is not installed: pip install 'numtok[remote]'"
        ) from error
    scheme = scheme_of(url)
    if scheme in ("file", "local"):
        raise InputError(
            f"is a file of this machine: give its path, {url.partition('://')[2]}", url
        )
    try:
        kind = fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        missing = getattr(error.__cause__, "name", None) or scheme
        raise MissingDependencyError(
            f"{url}: {scheme}:// needs {missing}, which is not installed: pip install {missing}"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{scheme}:// is unknown; known are paths, s3://, gs://, az://, hf://, https:// and the"
            " others of fsspec",
            url,
        ) from error
    options = kind._get_kwargs_from_urls(url)
    key = os.getpid(), scheme, repr(sorted(options.items()))
    if key not in _systems:
        _systems[key] = kind(**options)
    return _systems[key], kind._strip_protocol(url)


def tried(url: str, ask: Callable[[], Answer], doing: str = "read") -> Answer:
    """The answer; asked for again, after a pause that grows, if what went wrong may pass.

    Raises:
        InputError, OutputError: naming the URL, what is wrong, and the way out.
    """
    tries = TRIES if scheme_of(url) in ("http", "https") else 1
    for number in range(1, tries + 1):
        try:
            return ask()
        except NumtokError:
            raise
        except Exception as error:
            if number == tries or _verdict(error) != "passing":
                raise _refusal(url, error, doing) from error
            time.sleep(PAUSE * 2 ** (number - 1) * random.uniform(0.75, 1.25))
    raise AssertionError("the last try ends in an answer or an error")


def _root(error: BaseException) -> BaseException:
    """What went wrong: whatever HTTP has to say, fsspec calls it missing."""
    cause = error.__cause__
    return (
        cause
        if isinstance(error, FileNotFoundError)
        and cause is not None
        and type(cause).__module__.startswith("aiohttp")
        else error
    )


def _answer(error: BaseException) -> int:
    """The status that HTTP answered with, by whatever name the package of the store has for it; 0
    if it is not known.
    """
    for holder in (error, getattr(error, "response", None)):
        for name in ("status", "status_code", "code"):
            if isinstance(value := getattr(holder, name, None), int):
                return value
    return 0


def _verdict(error: BaseException) -> str:
    """``"missing"``, ``"refused"``, ``"changed"``, ``"final"`` or, of all that may pass,
    ``"passing"``.
    """
    error = _root(error)
    answer = _answer(error)
    if isinstance(error, FileNotFoundError) or answer in (404, 410):
        return "missing"
    if (
        isinstance(error, PermissionError)
        or answer in (401, 403)
        or type(error).__name__ in _REFUSED
    ):
        return "refused"
    if type(error).__name__ == "FileExpired":
        return "changed"
    if isinstance(error, _FINAL) or (400 <= answer < 500 and answer not in _TOO_SOON):
        return "final"
    return "passing"


def is_missing(error: FileNotFoundError) -> bool:
    """Whether it says just that, and not that the store cannot be asked."""
    return _verdict(error) == "missing"


def changed(url: str) -> MissingInputError:
    """What is told of an object that is no longer the one that was opened."""
    return MissingInputError(
        "changed while it was read; put it back, or begin anew once it stays as it is", url
    )


def _refusal(url: str, error: Exception, doing: str) -> NumtokError:
    verdict = _verdict(error)
    if verdict == "changed":
        return changed(url)
    reason = " ".join(str(_root(error)).split())[:300].rstrip(".") or type(error).__name__
    what = {
        "missing": (
            f"there is no such {'bucket or folder' if doing == 'write' else 'object'}; check"
            " the URL"
        ),
        "refused": (
            f"access is refused ({reason}); check the credentials for {scheme_of(url)}:// and what"
            " they permit"
        ),
        "final": f"{reason}; check the URL, or use a copy on this machine",
        "passing": (
            f"{reason}, however often it was tried; check the network and the store, then run the same"
            " command again"
        ),
    }[verdict]
    if doing == "read":
        return MissingInputError(f"cannot be read: {what}", url)
    return OutputError(f"cannot {doing} {url}: {what}")
