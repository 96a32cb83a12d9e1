"""Metrics: how well numbers are predicted. May import numtok only."""
