"""Corpora: files of text to files of encoded rows and back, in bounded memory.

``calls`` is what ``numtok encode`` and ``numtok decode`` do, as :func:`numtok.encode_files` and :func:`numtok.decode_files`; ``encode`` and ``decode`` are the
two ways, with a tokenizer that is there already; ``pieces`` are what goes through their pipeline, ``flow``; ``fit`` finds xVal's scale, ``summary`` tells.
``read`` has one file for each input format, ``write`` for each kind of output; they share ``arrow_files``, ``parquet_footer`` and ``kept_values``. May import
every other room of numtok but :mod:`numtok.hf`.
"""

from numtok.corpus.encode import decode_corpus, encode_corpus, tokenizer_of

__all__ = ["decode_corpus", "encode_corpus", "tokenizer_of"]
