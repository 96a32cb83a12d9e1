"""The one thing that a user of the drop-in should be told: that numbers went into a model without
their values.

In: a tokenizer, and what a call found. Out: a message of transformers' logger, once for a
    tokenizer, remembered where transformers remembers such things: ``deprecation_warnings``, which
    fingerprints of ``datasets`` leave out. ``TRANSFORMERS_NO_ADVISORY_WARNINGS=1`` and
    ``set_verbosity_error()`` silence it.
"""

from __future__ import annotations

from typing import Any

from transformers.utils import logging

from numtok.representations import SingleToken
from numtok.tokenizer.tokenizer import Tokenizer

KEY = "numbers-without-streams"
# below transformers' own, whose handler and verbosity it takes
logger: Any = logging.get_logger("transformers.numtok")


def advise_streams(told: dict[str, bool], numtok: Tokenizer) -> None:
    """Numbers were encoded, and no streams were asked for: say so if nothing else holds their
    values. ``told`` is what was said already.
    """
    first = numtok.representations[0]
    if not isinstance(first, SingleToken) or told.get(KEY):
        return
    told[KEY] = True
    logger.warning_advice(
        f"Numbers are encoded as bare [NUM] (numbers=[{type(first).__name__}(...)]), so 5 and 11"
        " get the same ids: their values are in the number streams, which this call did not ask"
        " for. A stock model never sees them. Either train a numtok_torch.NumberModel with"
        " return_numbers=True, or spell numbers out: NumberTokenizer.from_pretrained(...,"
        " numbers=[numtok.PlaceValue()]), P10(), FP15() and the like. (You are told once.)"
    )
