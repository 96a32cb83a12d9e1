"""Folders of shards: planned once, done by many, resumed by the same call.

A ``request`` becomes a ``plan`` (``planning``, ``cut``); ``run`` has its shards done by this
process, by others (``pool``, ``worker``) or by a Ray cluster (``ray_run``); each ``attempt`` at one
of the ``shards`` leaves a receipt, and ``finish`` adds them up. ``job`` puts these together.
``store`` alone knows where files lie, ``gauge`` how far all are, ``config`` reads options from a
file.

May import the other rooms of numtok, and those modules of :mod:`numtok.corpus` that read, encode
and write one file.
"""
