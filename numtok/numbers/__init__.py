"""Numbers: what counts as one (``grammar``), finding them in one text (``extract``) and in many
(``scan``), and keeping them exactly (``numbers``).

In: rows of text. Out: :class:`numtok.Numbers`, exact sign, digits, exponent and span. May import
:mod:`numtok.arrays`. Nothing is loaded here, so that one short text needs no Numba.
"""
