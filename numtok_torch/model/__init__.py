"""The model: an embedding and a head around any transformer. May import :mod:`numtok_torch.embeddings` and :mod:`numtok_torch.heads`."""
