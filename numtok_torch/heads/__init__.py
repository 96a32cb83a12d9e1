"""Heads and losses: hidden states in, numbers or a loss out.

May import numtok and :mod:`numtok_torch.embeddings`.
"""
