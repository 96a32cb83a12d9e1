"""Engines: a tokenizer.json, and the text between numbers to token ids.

Two give the same ids: ``tokenizers_engine`` for every tokenizer, and ``gigatoken_engine`` for byte-level BPE, some fifty times faster; ``choose`` takes the
one that can be used. May import :mod:`numtok.arrays`, :mod:`numtok.numbers` and :mod:`numtok.representations`.
"""

from numtok.engines.choose import EngineWarning, make_engine

__all__ = ["EngineWarning", "make_engine"]
