"""``tokenizers`` with a cache of words: ``cuts`` says for which tokenizers, ``cache`` has it."""
