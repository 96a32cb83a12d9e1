"""The drop-in Hugging Face tokenizer: a fast transformers tokenizer that knows numbers. Needs the
extra ``hf``.

May import every other room of numtok but :mod:`numtok.corpus`. A call walks ``tokenizer``, then
``batch`` (large batches, by numtok's engine) or ``general`` (the base class).
"""

from numtok.hf.tokenizer import NumberTokenizer
from numtok.tokenizer.generated_numbers import DecodeStream

__all__ = ["DecodeStream", "NumberTokenizer"]
