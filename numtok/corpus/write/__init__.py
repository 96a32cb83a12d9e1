"""What is written: encoded rows as Parquet or Arrow (``encoded``), texts as JSON lines or plain
text (``texts``).
"""
