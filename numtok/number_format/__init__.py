"""Number formats: which numbers may be written, as an automaton over characters (``number_format``,
``bounded_decimals``), as grammars of other programs (``notations``), and over the tokens of a
tokenizer (``token_trie``, ``logits_processor``); and free text with figures of a prompt alone
(``written_forms``, ``grounded_text``, ``grounded_processor``).

In: bounds and other options, or figures. Out: :class:`numtok.NumberFormat`. May import
:mod:`numtok.engines` and all rooms before it. Nothing is loaded here.
"""
