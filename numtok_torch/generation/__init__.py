"""Generation: texts with numbers in them, written by a model.

May import every other room but :mod:`numtok_torch.metrics`.
"""

from numtok_torch.generation.estimate import Estimate
from numtok_torch.generation.generate_texts import Generated, generate
from numtok_torch.generation.well_formed import NumberLogitsProcessor

__all__ = ["Estimate", "Generated", "NumberLogitsProcessor", "generate"]
