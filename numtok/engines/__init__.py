r"""Engines: a tokenizer.json, and the text between numbers to token ids.

The way of a text through this room::

    choose.make_engine        which engine gives the ids of this tokenizer, and is it right?
      |
      |  rows of UTF-8, and slots: where numbers stand, and the ids that go there (interface.Slots)
      v
    special_rows              rows with bytes or added tokens that the fast engine cannot read
      |                       go to tokenizers_engine, all others on:
      |
      +-- byte-level BPE ------------------------------------------------ gigatoken.engine
      |     unsafe_characters   where normalisation, new characters, runs of spaces or added
      |                         tokens need the complete tokenizer
      |     stand_ins.write     the rows as one text, a digit in place of each number; words
      |                         with unsafe characters are left out
      |     pool                gigatoken: text to ids
      |     stand_ins.put_in    the tokens walked by their width in bytes: slots' ids in place of
      |                         digits, words' ids where they were left out
      |     (a pre-tokenizer that is not known: each chunk between numbers by itself, pieces)
      |
      +-- tokenizers that cut at spaces (BERT, T5, SentencePiece) ------- words.engine
      |     pieces, cuts, cache words between numbers; each is asked for once
      |
      +-- any tokenizer ------------------------------------------------- tokenizers_engine
            private_use         a character that the text does not hold, as the added token
      |
      v
    interface.Encoded         ids, and where each number's first token is

All give the same ids. Beside the way: ``tokenizer_json`` reads a source, ``number_tokens`` adds the
tokens of numbers, ``protected_digits`` finds digits in added tokens, ``offsets`` tells which
characters a token covers, ``plain`` and ``train`` make a tokenizer.json. May import
:mod:`numtok.arrays`, :mod:`numtok.numbers` and :mod:`numtok.representations`.
"""

from numtok.engines.choose import EngineWarning, make_engine

__all__ = ["EngineWarning", "make_engine"]
