"""Engines: a tokenizer.json, and the text between numbers to token ids.

They give the same ids: ``tokenizers_engine`` for every tokenizer, ``gigatoken`` for
    byte-level BPE, some fifty times faster, and ``words`` for others that cut at spaces,
    which asks ``tokenizers`` for each word once; ``choose`` takes the one that can be used. May
    import :mod:`numtok.arrays`, :mod:`numtok.numbers` and :mod:`numtok.representations`.
"""

from numtok.engines.choose import EngineWarning, make_engine

__all__ = ["EngineWarning", "make_engine"]
