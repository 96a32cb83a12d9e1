"""Heads and losses: hidden states in, numbers or a loss out.

May import numtok, :mod:`numtok_torch.data` and :mod:`numtok_torch.embeddings`.
"""
