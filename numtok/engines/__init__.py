r"""Engines: the text between numbers to token ids, as a tokenizer.json says.

The way of a text through this room::

    choose.make_engine        which engine gives the ids of this tokenizer, and is it right?
      |
      |  rows of UTF-8, and slots: where numbers stand, and the ids that go there (engine.Slots)
      v
    special_rows              rows with bytes or added tokens that the fast engine cannot read
      |                       go to the slower one, all others on:
      |
      +-- byte-level BPE ---------------------------------------- gigatoken.byte_level
      |     unsafe characters   where normalisation, new characters, runs of spaces or added
      |                         tokens need the complete tokenizer
      |     stand_ins.write     the rows as one text, a digit in place of each number; words
      |                         with unsafe characters are left out
      |     pool                gigatoken: text to ids
      |     stand_ins.put_in    the tokens walked by their width in bytes: slots' ids in place of
      |                         digits, words' ids where they were left out
      |     (a pre-tokenizer that is not known: each chunk between numbers by itself, chunks)
      |
      +-- SentencePiece BPE (Llama 2, Phi-3) --------------------- gigatoken.sentencepiece
      |     chunks              the text between numbers, each behind a control character
      |     pool                gigatoken: text to ids
      |     chunks.interleave   slots' ids in place of the control character's
      |
      +-- any other tokenizer (BERT, T5) ------------------------- tokenizers_engine
            unused              a character that the text does not hold, as the added token
            vocabulary_rows     or as a row of the vocabulary, for numbers that are text
            chunks              the text between numbers, that character before each
            hf_tokenizers       ``tokenizers``, 0.x or 1.0
      |
      v
    engine.Encoded            ids, and where each number's first token is

All give the same ids. In which token a number of ordinary text begins, ``gigatoken.pool``
tells by bytes, and ``tokenizers_engine`` by characters. ``config`` answers questions about a
tokenizer.json. May import :mod:`numtok.arrays` and :mod:`numtok.numbers`.
"""

from numtok.engines.choose import EngineWarning, make_engine

__all__ = ["EngineWarning", "make_engine"]
