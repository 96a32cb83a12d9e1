"""The drop-in Hugging Face tokenizer: a fast transformers tokenizer that knows numbers. Needs the
extra ``hf``.

May import every other room of numtok but :mod:`numtok.corpus`. Inside, from the bottom up: marks,
texts, encoding; loading, backend; general, batch, arrow, decoding, training; tokenizer. A call
walks tokenizer, then batch (the quick way) or texts, marks, encoding (the general one), then
streams.
"""

from numtok.hf.tokenizer import NumberTokenizer
from numtok.tokenizer.decode_stream import DecodeStream

__all__ = ["DecodeStream", "NumberTokenizer"]
