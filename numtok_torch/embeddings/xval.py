"""xVal in front of a model: the word vector of each number, multiplied by its value.

xVal: A Continuous Numerical Tokenization for Scientific Language Models (Golkar et al. 2023).
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from numtok.representations import XVal
from numtok_torch.embeddings.base import NumberEmbedding, readable

FAR_BEYOND = 1e3  # |number_scaled| at which xVal's layer warns
LOOKS = 100  # batches that it looks at
WAY_OUT = (
    "training on it ends in infinite losses. Encode the text with a fitted scale (encode_files"
    " finds one unless scale is given, XVal.fit one for numbers), or take the logarithm:"
    " XVal(log=True)"
)


class XValEmbedding(NumberEmbedding):
    """Multiplies the word vector of each number by its scaled value (xVal: Golkar et al. 2023,
    section 2).

    Args:
        d_model: dimension of the word vectors.
        scale, clip, log: those of the representation, for the record: the stream is scaled already.
        zero_init: e · (1 + g (x - 1)) instead, with a learned vector g that starts at 0; g = 1 is
            the paper's form.

    Shape:
        - number_scaled: (batch, seq), float.
    """

    name = "xval"
    streams = ("number_scaled",)

    def __init__(
        self,
        d_model: int,
        scale: float = 1.0,
        clip: float | None = None,
        zero_init: bool = False,
        log: bool = False,
    ) -> None:
        super().__init__(d_model, scale=scale, clip=clip, zero_init=zero_init, log=log)
        XVal(scale, clip, log)  # which refuses what it cannot be
        self.gain = nn.Parameter(torch.zeros(d_model)) if zero_init else None
        self._looks_left = LOOKS

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        """Multiply in float32 at least: values do not fit into float16."""
        self._look(rows)
        wide = torch.promote_types(words.dtype, torch.float32)
        factor = rows.to(wide).unsqueeze(-1)  # (n, 1)
        if self.gain is not None:
            factor = 1 + self.gain.to(wide) * (factor - 1)  # (n, d_model)
        return words * factor

    def _look(self, scaled: Tensor) -> None:
        """Warn, once, of values far beyond the ±5 that xVal is made for.

        Only the first batches, as each look waits for the device.
        """
        if not readable(scaled) or not self._looks_left or not scaled.numel():
            return
        self._looks_left -= 1
        largest = float(scaled.abs().amax())
        if largest > FAR_BEYOND:
            self._looks_left = 0
            warnings.warn(
                f"number_scaled reaches {largest:.3g}, and xVal is made for values within about 5:"
                f" {WAY_OUT}",
                stacklevel=5,
            )
