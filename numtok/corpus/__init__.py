"""Corpora: files of text to files of encoded rows and back, in bounded memory.

``read`` has one file for each input format, ``write`` for each kind of output; ``encode`` and ``decode`` are the two ways. May import every other room
of numtok but :mod:`numtok.hf`.
"""

from numtok.corpus.encode import decode_corpus, encode_corpus, tokenizer_of

__all__ = ["decode_corpus", "encode_corpus", "tokenizer_of"]
