"""Arrays: memory from Arrow's pool, rows of UTF-8 text, classes of characters, and how functions
are compiled. Knows nothing of numbers. May import :mod:`numtok.errors` and nothing else of numtok.
"""
