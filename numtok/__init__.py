"""numtok: find the numbers in text, exactly, and hand them to language models as tokens and tensors."""

from __future__ import annotations

from numtok.grammar import Grammar
from numtok.numbers import Number, Numbers
from numtok.scan import extract, scan
