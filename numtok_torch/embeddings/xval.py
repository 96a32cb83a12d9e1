"""xVal in front of a model: the word vector of each number, multiplied by its value.

In: word vectors, float (batch, seq, d_model), ``number_mask`` and ``number_scaled``, (batch, seq).
    Out: the same shape and dtype. xVal: A Continuous Numerical Tokenization for Scientific Language
    Models (Golkar et al. 2023).
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from numtok.representations import XVal
from numtok_torch.embeddings.base import Batch, NumberEmbedding

FAR_BEYOND = 1e3  # |number_scaled| at which xVal's layer warns
LOOKS = 100  # batches that it looks at
WAY_OUT = (
    "training on it ends in infinite losses. Encode the text with a fitted scale (numtok encode"
    " finds one unless --scale is given; XVal.fit in Python), or take the logarithm (--numbers"
    " xval:log, XVal(log=True))"
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
    streams = ("number_mask", "number_scaled")

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

    def _factor(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        """What each vector is multiplied with, in float32 at least: values do not fit into float16.

        (batch, seq, 1 or d_model).
        """
        mask = self.read(inputs_embeds, batch, "number_mask").to(torch.bool)  # (batch, seq)
        scaled = self.read(inputs_embeds, batch, "number_scaled")  # (batch, seq)
        self._look(mask, scaled)
        wide = torch.promote_types(inputs_embeds.dtype, torch.float32)
        factor = torch.where(mask, scaled.to(wide), 1).unsqueeze(-1)  # (batch, seq, 1)
        return (
            factor if self.gain is None else 1 + self.gain.to(wide) * (factor - 1)
        )  # (batch, seq, d_model)

    def _look(self, mask: Tensor, scaled: Tensor) -> None:
        """Warn, once, of values far beyond the ±5 that xVal is made for.

        Only the first batches, as each look waits for the device.
        """
        if torch.compiler.is_compiling() or not self._looks_left or scaled.is_meta:
            return
        if scaled.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        self._looks_left -= 1
        largest = float(torch.where(mask, scaled, 0).abs().amax()) if scaled.numel() else 0.0
        if largest > FAR_BEYOND:
            self._looks_left = 0
            warnings.warn(
                f"number_scaled reaches {largest:.3g}, and xVal is made for values within about 5:"
                f" {WAY_OUT}",
                stacklevel=4,
            )

    def change(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        return (inputs_embeds * (self._factor(inputs_embeds, batch) - 1)).to(inputs_embeds.dtype)

    def forward(self, inputs_embeds: Tensor, batch: Batch) -> Tensor:
        return (inputs_embeds * self._factor(inputs_embeds, batch)).to(inputs_embeds.dtype)
