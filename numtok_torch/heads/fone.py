"""The head that predicts a number digit by digit, in one step.

FoNE: Precise Single-Token Number Embeddings via Fourier Features (Zhou et al. 2025).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok.representations import FoNE
from numtok_torch.embeddings.fone import digit_table, digits_of_features, flat_digits
from numtok_torch.heads.base import NumberHead, NumberPrediction, mean, run

EXACT_DIGITS = 15  # integers of so many digits are exact doubles: then one division rounds once


class FoNEHead(NumberHead):
    """Digit logits h[2i:2i+2] · φ(j, 10), one pair of the hidden state for each digit (FoNE: Zhou
    et al. 2025).

    Digit i is that of 10**(i - frac_digits). The targets are digits: the head does not invert the
    encoder, whose features at i hold the lower digits too.

    Args:
        d_model: dimension of the hidden states.
        int_digits, frac_digits, bases, chunk, compact: those of the representation. With several
            bases there is a pair for each, and their logits are added. Without ``compact`` the
            target is ``number_fourier``, from which the digits are read exactly.
        layer_norm: put a LayerNorm in front; None: in a NumberModel around a pretrained backbone.
        linear: a linear map, without bias, to the pairs. None: only if they do not fit into
            ``d_model``.

    Shape:
        - target: ``number_digits``, (n, digits), or (n, chunks, chunk), least significant first;
        - or ``number_fourier``, (n, f, 2), or (n, chunks, f, 2), float.

    Example:
        >>> import torch
        >>> from numtok_torch import FoNEHead
        >>> head = FoNEHead(d_model=4, int_digits=2, frac_digits=0)
        >>> head.predict(torch.tensor([-0.31, 0.95, 0.81, 0.59])).values  # φ(3, 10), φ(1, 10)
        tensor(13., dtype=torch.float64)
    """

    name = "fone"
    target = "number_digits"

    def __init__(
        self,
        d_model: int,
        int_digits: int,
        frac_digits: int,
        bases: Sequence[int] = (10,),
        *,
        chunk: int | None = None,
        compact: bool = True,
        layer_norm: bool | None = None,
        linear: bool | None = None,
    ) -> None:
        fone = FoNE(int_digits, frac_digits, tuple(bases), chunk=chunk)
        sizes = {"int_digits": int_digits, "frac_digits": frac_digits, "bases": fone.bases}
        options = {"chunk": chunk, "compact": compact}
        super().__init__(d_model, **sizes, **options, linear=linear)
        self._representation, self._width = fone, 2 * len(fone.bases) * fone.n_digits
        if linear is False and self._width > d_model:
            raise RepresentationError(
                f"fone: {self._width} places for digits do not fit into d_model={d_model} without a"
                " linear map"
            )
        self.target = "number_digits" if compact else "number_fourier"
        mapped = linear or (linear is None and self._width > d_model)
        self.set_layer_norm(layer_norm)
        self.map = nn.Linear(d_model, self._width, bias=False) if mapped else None

    def digit_logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of the digits, float32 (..., digits, 10), of hidden states (...,
        d_model).
        """
        self.checked(hidden)
        hidden = self.normed(hidden)
        if self.map is not None:
            places = run(self.map, hidden)  # (..., width)
        else:
            wide = torch.promote_types(hidden.dtype, torch.float32)
            places = hidden[..., : self._width].to(wide)
        # (..., digits, 1, 2 * bases)
        pairs = places.unflatten(-1, (self._representation.n_digits, 1, -1))
        # no matmul: autocast and TF32 round it
        logits: Tensor = (pairs * digit_table(self._representation.bases, hidden.device)).sum(-1)
        return logits

    def _digits(self, target: Tensor) -> Tensor:
        """Convert targets of any form to int64 (n, digits)."""
        fone, count = self._representation, self._representation.n_digits
        if target.is_floating_point():
            return digits_of_features(target, count, fone.bases, fone.chunk).to(torch.int64)
        return flat_digits(target, count, "head").to(torch.int64)

    def loss(self, hidden: Tensor, target: Tensor) -> Tensor:
        self.checked(hidden, target)
        log_p, digits = self.digit_logits(hidden).log_softmax(-1), self._digits(target)
        nll = -log_p.gather(-1, digits.unsqueeze(-1)).squeeze(-1)  # (n, digits)
        return mean(nll.mean(-1))

    @torch.no_grad()
    def predict(self, hidden: Tensor) -> NumberPrediction:
        best = self.digit_logits(hidden).log_softmax(-1).max(-1)  # (..., digits) each
        digits = best.indices.to(torch.uint8)
        confidence = best.values.sum(-1).exp()  # (...)
        return NumberPrediction(self._values(digits), {"number_digits": digits}, confidence)

    def _values(self, digits: Tensor) -> Tensor:
        """Convert digits (..., digits) to the nearest float64 (...)."""
        fone = self._representation
        if fone.n_digits <= EXACT_DIGITS:
            powers = 10 ** torch.arange(fone.n_digits, device=digits.device)  # (digits,)
            return (digits.to(torch.int64) * powers).sum(-1).double() / 10.0**fone.frac_digits
        values: Tensor = nearest_doubles(digits, fone.int_digits, fone.frac_digits)
        return values


# numtok's own kernels, which a compiled graph calls as they are
@torch.library.custom_op("numtok::nearest_doubles", mutates_args=())
def nearest_doubles(digits: Tensor, int_digits: int, frac_digits: int) -> Tensor:
    """Convert digits (..., digits), least significant first, to the float64 (...) nearest to what
    they say, however many there are.
    """
    rows = digits.reshape(-1, digits.shape[-1]).cpu().numpy()  # (n, digits)
    exact = FoNE(int_digits, frac_digits).numbers(rows).to_float64()
    return torch.tensor(exact, device=digits.device).view(digits.shape[:-1])


@nearest_doubles.register_fake
def _(digits: Tensor, int_digits: int, frac_digits: int) -> Tensor:
    return digits.new_empty(digits.shape[:-1], dtype=torch.float64)
