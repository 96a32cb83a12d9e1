"""The drop-in Hugging Face tokenizer: a fast transformers tokenizer that knows numbers. Needs the extra ``hf``.

May import every other room of numtok but :mod:`numtok.corpus`.
"""

from numtok.hf.tokenizer import NumberTokenizer

__all__ = ["NumberTokenizer"]
