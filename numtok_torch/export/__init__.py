"""Number models elsewhere: as models of transformers, as ONNX graphs, and as the paper's GPT-2.

May import every other room but :mod:`numtok_torch.metrics`.
"""
