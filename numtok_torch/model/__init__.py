"""The model: an embedding in front of any transformer, and a head after it; how it is trained,
saved, and put around adapters.

May import :mod:`numtok_torch.data`, :mod:`numtok_torch.embeddings` and :mod:`numtok_torch.heads`.
"""
