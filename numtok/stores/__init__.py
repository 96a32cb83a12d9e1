"""Object stores, by way of fsspec: URLs instead of paths.

:mod:`numtok.locations` is for callers that take both. Imports ``errors`` alone.
"""
