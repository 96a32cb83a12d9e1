"""Benchmarks of numtok beside its peers: ``python -m benchmarks``."""
