"""The fast engine for byte-level BPE, by gigatoken: the text around numbers stays in one piece
(``split``), short pieces come from a cache (``piece_cache``), and ``splice`` puts the ids together.
"""
