"""Text documents out of files, and encoded rows out of files.

One file for each input format (``lines`` for text, ``jsonl``, ``csv_table``,
``tables``); ``documents`` has their table and is the way in, ``find`` has the files of
what the user names; ``sources`` and ``batches`` are what the readers share. ``encoded`` reads
what numtok wrote. May import the rooms below the corpus.
"""
