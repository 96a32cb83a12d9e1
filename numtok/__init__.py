"""numtok: find the numbers in text, exactly, and hand them to language models as tokens and
tensors. Each name is loaded when it is first used, so that what needs little loads fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numtok.corpus.calls import encode_files
    from numtok.corpus.decode import decode_files
    from numtok.corpus.export import export_files
    from numtok.corpus.jobs.job import finish_job, job_status
    from numtok.corpus.stats import corpus_stats
    from numtok.errors import NumtokError
    from numtok.numbers.extract import extract
    from numtok.numbers.grammar import Grammar
    from numtok.numbers.number import Number
    from numtok.numbers.numbers import Numbers
    from numtok.numbers.scan import scan
    from numtok.representations import (
        B1999,
        FP15,
        P10,
        P1000,
        Digits,
        ExponentBins,
        FloatBits,
        FloatDigits,
        FoNE,
        LogFourier,
        NumeroLogic,
        PlaceValue,
        QuantileBins,
        Subword,
        XVal,
    )
    from numtok.statistics import Statistics
    from numtok.tokenizer.encode import Encoding
    from numtok.tokenizer.find import EncodeReport
    from numtok.tokenizer.layout import expand
    from numtok.tokenizer.tokenizer import Tokenizer
    from numtok.tokenizer.written import DecodeStream

    __version__: str

_MODULES = {  # of all names but the representations
    "numtok.errors": ("NumtokError",),
    "numtok.numbers.extract": ("extract",),
    "numtok.numbers.grammar": ("Grammar",),
    "numtok.numbers.number": ("Number",),
    "numtok.numbers.numbers": ("Numbers",),
    "numtok.numbers.scan": ("scan",),
    "numtok.tokenizer.written": ("DecodeStream",),
    "numtok.tokenizer.encode": ("Encoding",),
    "numtok.tokenizer.find": ("EncodeReport",),
    "numtok.tokenizer.layout": ("expand",),
    "numtok.tokenizer.tokenizer": ("Tokenizer",),
    "numtok.corpus.calls": ("encode_files",),
    "numtok.corpus.decode": ("decode_files",),
    "numtok.corpus.export": ("export_files",),
    "numtok.corpus.jobs.job": ("finish_job", "job_status"),
    "numtok.corpus.stats": ("corpus_stats",),
    "numtok.statistics": ("Statistics",),
}
_FOUND_IN = {name: module for module, names in _MODULES.items() for name in names}

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
    "FloatDigits",
    "FoNE",
    "Grammar",
    "LogFourier",
    "Number",
    "Numbers",
    "NumeroLogic",
    "NumtokError",
    "PlaceValue",
    "QuantileBins",
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
    """A public name, from where it is, or the version."""
    if name == "__version__":
        return _version()
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_FOUND_IN.get(name, "numtok.representations"))
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("numtok")
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"
