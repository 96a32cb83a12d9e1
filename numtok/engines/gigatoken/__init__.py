"""The fast engines, by gigatoken: the text goes whole, with a digit (``byte_level``) or a control
character (``sentencepiece``) in place of each number; ``pool`` calls gigatoken.
"""
