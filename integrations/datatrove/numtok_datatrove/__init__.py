"""numtok in datatrove: :class:`NumtokWriter`, a step that writes documents as rows of token ids and
numbers.
"""

from numtok_datatrove.writer import NumtokWriter

__all__ = ["NumtokWriter"]
