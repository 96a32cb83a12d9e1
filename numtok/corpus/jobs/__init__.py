"""Folders of shards: planned once, done by many, amended and resumed by the same call.

``planning`` turns what is asked for into a ``plan`` (``cut`` says where inputs are cut); ``run``
starts what does its shards, here, in other processes or on a Ray cluster, and each of these ``work``
s off one after the other by ``claims``; ``worker`` is the program of a process that does. A shard
is done once its receipt is there.
``job`` puts these together and adds up. ``folder`` alone knows where files lie, ``card`` writes a
README.md for the Hugging Face hub.

May import the other rooms of numtok, and those modules of :mod:`numtok.corpus` that read, encode
and write one file.
"""
