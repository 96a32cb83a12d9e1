"""numtok: find the numbers in text, exactly, and hand them to language models as tokens and
tensors. Each name is loaded when it is first used, so that what needs little loads fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # "as" makes them names of this module
    # isort: off
    from numtok.corpus.encode_files import encode_files as encode_files
    from numtok.corpus.decode import decode_files as decode_files
    from numtok.corpus.export import export_files as export_files
    from numtok.corpus.jobs.finish import finish_job as finish_job, job_status as job_status
    from numtok.corpus.stats import corpus_stats as corpus_stats
    from numtok.errors import NumtokError as NumtokError
    from numtok.number_format.number_format import NumberFormat as NumberFormat
    from numtok.numbers.extract import extract as extract
    from numtok.numbers.grammar import Grammar as Grammar
    from numtok.numbers.number import Number as Number
    from numtok.numbers.numbers import Numbers as Numbers
    from numtok.numbers.scan import scan as scan
    from numtok.representations import (
        B1999 as B1999,
        FP15 as FP15,
        P10 as P10,
        P1000 as P1000,
        Digits as Digits,
        ExponentBins as ExponentBins,
        FloatBits as FloatBits,
        FloatDigits as FloatDigits,
        FoNE as FoNE,
        LogFourier as LogFourier,
        NumeroLogic as NumeroLogic,
        PlaceValue as PlaceValue,
        QuantileBins as QuantileBins,
        Subword as Subword,
        XVal as XVal,
    )
    from numtok.statistics import Statistics as Statistics
    from numtok.tokenizer.encoder import Encoding as Encoding
    from numtok.tokenizer.layout import expand as expand
    from numtok.tokenizer.number_selection import EncodeReport as EncodeReport
    from numtok.tokenizer.tokenizer import Tokenizer as Tokenizer
    from numtok.tokenizer.generated_numbers import DecodeStream as DecodeStream

    __version__: str

_MODULES = {  # where each name is
    "numtok.errors": ("NumtokError",),
    "numtok.number_format.number_format": ("NumberFormat",),
    "numtok.numbers.extract": ("extract",),
    "numtok.numbers.grammar": ("Grammar",),
    "numtok.numbers.number": ("Number",),
    "numtok.numbers.numbers": ("Numbers",),
    "numtok.numbers.scan": ("scan",),
    "numtok.representations": (
        "B1999", "FP15", "P10", "P1000", "Digits", "ExponentBins", "FloatBits", "FloatDigits", "FoNE",
        "LogFourier", "NumeroLogic", "PlaceValue", "QuantileBins", "Subword", "XVal",
    ),
    "numtok.tokenizer.generated_numbers": ("DecodeStream",),
    "numtok.tokenizer.encoder": ("Encoding",),
    "numtok.tokenizer.number_selection": ("EncodeReport",),
    "numtok.tokenizer.layout": ("expand",),
    "numtok.tokenizer.tokenizer": ("Tokenizer",),
    "numtok.corpus.encode_files": ("encode_files",),
    "numtok.corpus.decode": ("decode_files",),
    "numtok.corpus.export": ("export_files",),
    "numtok.corpus.jobs.finish": ("finish_job", "job_status"),
    "numtok.corpus.stats": ("corpus_stats",),
    "numtok.statistics": ("Statistics",),
}  # fmt: skip
_FOUND_IN = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_FOUND_IN)


def __getattr__(name: str) -> Any:
    """Return a public name, from where it is, or the version."""
    if name == "__version__":
        return _version()
    if name not in _FOUND_IN:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_FOUND_IN[name])
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
