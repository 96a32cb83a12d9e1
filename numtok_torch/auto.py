"""The name by which saved folders import :mod:`numtok_torch.export.auto`."""

from numtok_torch.export.auto import *  # noqa: F403
from numtok_torch.export.auto import __all__ as __all__
