"""Generation: texts with numbers in them, written by a model.

May import every other room but :mod:`numtok_torch.metrics`.
"""
