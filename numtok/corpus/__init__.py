"""Corpora: files of text to files of encoded rows and back, in bounded memory.

``calls`` is what ``numtok encode``, ``numtok finish`` and ``numtok decode`` do, as
:func:`numtok.encode_files` and so on; ``encode`` and ``decode`` are the two ways, with a tokenizer
that is there already; ``pieces`` are what goes through their pipeline, ``flow``; ``fit`` finds
xVal's scale, ``summary`` tells. ``read`` has one file for each input format, ``write`` for each
kind of output; they share ``checksums``.

A folder of shards is the business of ``jobs``; ``jobs.folder`` says what lies in one, for those who
read it.

May import every other room of numtok but :mod:`numtok.hf`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numtok.corpus.decode import decode_corpus, tokenizer_of
    from numtok.corpus.encode import encode_corpus
    from numtok.corpus.jobs.job import encode_folder, finish_folder, job_status

__all__ = [
    "decode_corpus",
    "encode_corpus",
    "encode_folder",
    "finish_folder",
    "job_status",
    "tokenizer_of",
]


def __getattr__(name: str) -> Any:
    """Each way is loaded when it is first gone, with what it alone takes."""
    if name == "encode_corpus":
        from numtok.corpus.encode import encode_corpus

        return encode_corpus
    if name in ("decode_corpus", "tokenizer_of"):
        from numtok.corpus import decode

        return getattr(decode, name)
    if name in ("encode_folder", "finish_folder", "job_status"):
        from numtok.corpus.jobs import job

        return getattr(job, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
