"""Embedding layers: word vectors and number streams in, word vectors with numbers out.

May import numtok only.
"""
