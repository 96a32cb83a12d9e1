"""xVal in front of a model: the word vector of each number, multiplied by its value.

xVal: A Continuous Numerical Tokenization for Scientific Language Models (Golkar et al. 2023).
"""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok.representations import XVal
from numtok_torch.embeddings.base import NumberEmbedding, readable, root_mean_square

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

    Zero gets the zero vector. Without position vectors, as in Llama, it stays zero in all layers if
    it stands first in a row, and each RMSNorm divides its gradient by nearly zero: the gradients
    overflow. ``bias`` or ``zero_init`` mends that.

    Args:
        d_model: dimension of the word vectors.
        scale, clip, log: those of the representation, for the record: the stream is scaled already.
        zero_init: e · (1 + g (x - 1)) instead, with a learned vector g that starts at 0; g = 1 is
            the paper's form.
        bias: e · x + b instead, with a learned vector b, which starts from a normal distribution of
            standard deviation 0.02.
        amplitude: of the start of b; None: as long as the word vectors (``match_norm``).

    Shape:
        - number_scaled: (batch, seq), float.

    Example:
        >>> import torch
        >>> from numtok_torch import XValEmbedding
        >>> mask, values = torch.tensor([[0, 1]]), torch.tensor([[1, 2.5]])
        >>> numbers = {"number_mask": mask, "number_scaled": values}
        >>> XValEmbedding(d_model=2)(torch.ones(1, 2, 2), numbers).tolist()
        [[[1.0, 1.0], [2.5, 2.5]]]
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
        bias: bool = False,
        amplitude: float | None = None,
    ) -> None:
        form = {"scale": scale, "clip": clip, "log": log}
        super().__init__(d_model, **form, zero_init=zero_init, bias=bias, amplitude=amplitude)
        XVal(scale, clip, log)  # which refuses what it cannot be
        if bias and zero_init:
            raise RepresentationError(
                "xval: with zero_init the vector of 0 is not zero, and needs no bias; leave one out"
            )
        self.gain = nn.Parameter(torch.zeros(d_model)) if zero_init else None
        self.bias = nn.Parameter(0.02 * torch.randn(d_model)) if bias else None
        self.set_amplitude(amplitude)
        self._looks_left = LOOKS

    @property
    def may_be_zero(self) -> bool:
        return self.gain is None and self.bias is None

    def started(self) -> list[Tensor]:
        return [] if self.bias is None else [self.bias]

    def size(self) -> float:
        return 0.0 if self.bias is None else root_mean_square(self.bias)

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        """Multiply in float32 at least: values do not fit into float16."""
        self._look(rows)
        wide = torch.promote_types(words.dtype, torch.float32)
        factor = rows.to(wide).unsqueeze(-1)  # (n, 1)
        if self.gain is not None:
            factor = 1 + self.gain.to(wide) * (factor - 1)  # (n, d_model)
        vectors = words * factor
        return vectors if self.bias is None else vectors + self.bias

    def _look(self, scaled: Tensor) -> None:
        """Warn, once, of values far beyond the ±5 that xVal is made for. Looks at the first batches
        only, as each look waits for the device.
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
