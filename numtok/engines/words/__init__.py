"""``tokenizers`` with the ids of words kept: ``cuts`` says for which tokenizers, ``cache`` keeps them."""
