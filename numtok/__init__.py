"""numtok: find the numbers in text, exactly, and hand them to language models as tokens and
tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numtok.errors import NumtokError
from numtok.numbers.grammar import Grammar
from numtok.numbers.numbers import Number, Numbers
from numtok.numbers.scan import extract, scan
from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    Subword,
    XVal,
)
from numtok.tokenizer.decode_stream import DecodeStream
from numtok.tokenizer.expand import expand
from numtok.tokenizer.results import EncodeReport, Encoding
from numtok.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numtok.corpus.calls import decode_files, encode_files, finish_job, job_status
    from numtok.corpus.export import export_files
    from numtok.corpus.stats import corpus_stats
    from numtok.statistics import Statistics

    __version__: str

__all__ = [
    "B1999",
    "FP15",
    "P10",
    "P1000",
    "DecodeStream",
    "Digits",
    "EncodeReport",
    "Encoding",
    "ExponentBins",
    "FloatBits",
    "FoNE",
    "Grammar",
    "LogFourier",
    "Number",
    "Numbers",
    "NumtokError",
    "PlaceValue",
    "Statistics",
    "Subword",
    "Tokenizer",
    "XVal",
    "corpus_stats",
    "decode_files",
    "encode_files",
    "expand",
    "export_files",
    "extract",
    "finish_job",
    "job_status",
    "scan",
]


def __getattr__(name: str) -> Any:
    """What takes longer to load than it is worth for most: the calls on whole files, which need
    more of Arrow, and the version.
    """
    if name == "__version__":
        return _version()
    if name in ("decode_files", "encode_files", "finish_job", "job_status"):
        from numtok.corpus import calls

        return getattr(calls, name)
    if name in ("corpus_stats", "Statistics"):
        from numtok.corpus import stats

        return getattr(stats, name)
    if name == "export_files":
        from numtok.corpus.export import export_files

        return export_files
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("numtok")
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"
