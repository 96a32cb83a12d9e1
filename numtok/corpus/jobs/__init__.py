"""Folders of shards: planned once, written shard by shard, resumed by the same call.

``job`` is the whole of a job. A ``request`` says what is asked for, and cuts the inputs; the
``plan`` is what lies in the folder; ``executors`` have the shards done that have no receipt, in
this process, in others (``worker`` is their program) or on a Ray cluster, each by ``encode_shard``,
which writes the receipt; ``finish`` adds up. ``folder`` alone knows where files lie, and keeps two
runs apart.

May import the other rooms of numtok, and those modules of :mod:`numtok.corpus` that read, encode
and write one file.
"""
