"""The tokenizer: composes numbers, representations and an engine; a record batch out, text back.
Sources (``tokenizer_json``) are read here, trained (``train``) and exported (``export``).
``FORMAT.md`` is normative. May import :mod:`numtok.arrays`, :mod:`numtok.numbers`,
:mod:`numtok.representations` and :mod:`numtok.engines`.
"""

from numtok.tokenizer.encoder import Encoding
from numtok.tokenizer.number_selection import EncodeReport
from numtok.tokenizer.tokenizer import Tokenizer

__all__ = ["EncodeReport", "Encoding", "Tokenizer"]
