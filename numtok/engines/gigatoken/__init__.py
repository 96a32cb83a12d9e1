"""The fast engine for byte-level BPE, by gigatoken: the text goes whole, a digit in place of each
number (``stand_ins``); words with ``unsafe_characters`` go by themselves; ``pool`` calls gigatoken.
"""
