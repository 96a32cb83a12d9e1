"""FoNE in front of a model: Fourier features of whole numbers, or of digits, added to the word
vectors or in their place; and features from digits and back, on the device.

FoNE: Precise Single-Token Number Embeddings via Fourier Features (Zhou et al. 2025). Digits are any
integer (..., d), least significant first; features float32 (..., f, 2), cosine and sine of 2πx/T
with the periods T ascending, f = d for base 10 and d + 1 more for each other base.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError, SchemaError
from numtok.representations import FoNE
from numtok_torch.embeddings.base import Batch, FeatureEmbedding, check_known


class FoNEEmbedding(FeatureEmbedding):
    """Adds the Fourier features of each number to its word vector (FoNE: Zhou et al. 2025,
    algorithm 1).

    From compact digits the features are computed here, in float32, on the device.

    Args:
        d_model: dimension of the word vectors.
        int_digits, frac_digits, bases, chunk: those of the representation; with ``chunk``, the
            features of all chunks stand side by side.
        projection: ``"pad"``, zeros after the features, or ``"linear"``, a linear map without
            bias; None: ``"linear"`` with ``zero_init``, else ``"pad"``.
        zero_init: start the linear map from zeros.
        amplitude: of the features, or of the start of their linear map; None: as long as the word
            vectors (``match_norm``). 1.0 is the published form.
        compact: the form of the file, digits or features, for the record: the layer reads either.

    Shape:
        - number_digits: (batch, seq, digits), or (batch, seq, chunks, chunk), any integer, least
          significant first;
        - or number_fourier: (batch, seq, f, 2), or (batch, seq, chunks, f, 2), float.

    Example:
        >>> import torch
        >>> from numtok_torch import FoNEEmbedding
        >>> mask, digits_of_13 = torch.tensor([[1]]), torch.tensor([[[3, 1]]])
        >>> numbers = {"number_mask": mask, "number_digits": digits_of_13}
        >>> layer = FoNEEmbedding(d_model=4, int_digits=2, frac_digits=0)
        >>> layer(torch.zeros(1, 1, 4), numbers)  # cos, sin of 2π13/10 and of 2π13/100
        tensor([[[-0.3090,  0.9511,  0.6845,  0.7290]]])
    """

    name = "fone"
    streams = ("number_digits", "number_fourier")

    def __init__(
        self,
        d_model: int,
        int_digits: int,
        frac_digits: int,
        bases: Sequence[int] = (10,),
        chunk: int | None = None,
        projection: str | None = None,
        zero_init: bool = False,
        compact: bool = True,
        *,
        amplitude: float | None = None,
    ) -> None:
        fone = FoNE(int_digits, frac_digits, tuple(bases), overflow="clip", chunk=chunk)
        sizes = {"int_digits": int_digits, "frac_digits": frac_digits, "bases": fone.bases}
        options = {"chunk": chunk, "compact": compact, "projection": projection}
        start = {"zero_init": zero_init, "amplitude": amplitude}
        super().__init__(d_model, **sizes, **options, **start)
        self._representation = fone
        self._width = math.prod(fone.columns()["number_fourier"].shape)
        self.make_projection(self._width, math.sqrt(self._width / 2))

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        """Return the vectors from digits (n, ...) or features (n, ..., 2)."""
        fone = self._representation
        if not rows.is_floating_point():
            digits = flat_digits(rows, fone.n_digits, "layer")
            rows = features_of_digits(digits, fone.bases, fone.chunk)
        features = rows.flatten(1)  # (n, width)
        if features.shape[1] != self._width:
            raise SchemaError(
                f"number_fourier holds {features.shape[1]} features per number, the layer was made"
                f" for {self._width}"
            )
        return words + self.project(features)


class FoNEDigitEmbedding(FeatureEmbedding):
    """FoNE on digit tokens: φ(j, 10), the cosine and sine of 2πj/10, at each token of a digit j,
    whatever its place.

    With :class:`PlaceValueEmbedding` in a :class:`~numtok_torch.SumEmbedding` it is FoNE with
    Abacus (Zhou et al. 2025, section 5, Q3): "the embeddings for each digit (0-9) are replaced with
    their corresponding Fourier Number Embeddings" is ``combine="replace"``.

    Args:
        d_model: dimension of the word vectors.
        digit_ids: the ids of the tokens ``0`` to ``9``.
        projection: ``"pad"``, zeros after the two features, or ``"linear"``, a linear map without
            bias; None: ``"linear"`` with ``zero_init``, else ``"pad"``.
        zero_init: start the linear map from zeros; needs ``combine="add"``, as it is to change
            nothing at first.
        combine: ``"add"`` the features to the word vector, or ``"replace"`` it by them.
        amplitude: as :class:`FoNEEmbedding` has it.

    Shape:
        - input_ids: (batch, seq), any integer.

    Example:
        >>> import torch
        >>> from numtok_torch import FoNEDigitEmbedding
        >>> layer = FoNEDigitEmbedding(d_model=2, digit_ids=range(10), combine="replace")
        >>> layer(torch.ones(1, 2, 2), {"input_ids": torch.tensor([[0, 17]])}).tolist()
        [[[1.0, 0.0], [1.0, 1.0]]]
    """

    name = "fone_digits"
    streams = ("input_ids",)

    def __init__(
        self,
        d_model: int,
        digit_ids: Sequence[int],
        projection: str | None = None,
        zero_init: bool = False,
        combine: str = "add",
        amplitude: float | None = None,
    ) -> None:
        options = {"projection": projection, "zero_init": zero_init, "combine": combine}
        super().__init__(d_model, digit_ids=tuple(digit_ids), **options, amplitude=amplitude)
        if len(set(digit_ids)) != 10:
            raise RepresentationError(
                f"fone_digits: digit_ids={tuple(digit_ids)} must be the ten ids of the tokens 0"
                " to 9"
            )
        check_known("fone_digits", "combine", combine, "add", "replace")
        if zero_init and combine == "replace":
            raise RepresentationError(
                "fone_digits: zero_init leaves a model as it was, which combine='replace' cannot;"
                " take combine='add'"
            )
        self._digit_ids, self.combine = tuple(int(digit_id) for digit_id in digit_ids), combine
        self.make_projection(2, 1.0)
        self.least = 0.0  # each digit has a word vector of its own

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        ids = self.read(inputs_embeds, batch, *self.streams)  # (batch, seq)
        chosen = ids.unsqueeze(-1) == torch.tensor(self._digit_ids, device=ids.device)
        return chosen.any(-1), chosen.to(torch.int64).argmax(-1)  # (batch, seq) each

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        features = digit_table((10,), rows.device)[rows]  # (n, 2)
        vectors = self.project(features)
        return vectors if self.combine == "replace" else words + vectors


def flat_digits(rows: Tensor, count: int, part: str) -> Tensor:
    """Return ``number_digits`` of n numbers, (n, digits) or (n, chunks, chunk), without the zeros
    that fill up chunks: (n, digits). SchemaError for another count, with the part that reads them.
    """
    digits = rows
    if rows.dim() == 3 and rows.shape[1] == -(-count // rows.shape[2]):
        digits = rows.flatten(1)[:, :count]
    if digits.dim() != 2 or digits.shape[1] != count:
        raise SchemaError(
            f"number_digits has the shape {tuple(rows.shape)}, the {part} was made for {count}"
            " digits"
        )
    return digits


def features_of_digits(
    digits: Tensor, bases: Sequence[int] = (10,), chunk: int | None = None
) -> Tensor:
    """Convert digits (..., d) to features, float32 (..., f, 2) or (..., chunks, f, 2), as
    ``number_fourier`` has them, within 1e-6.

    A table of frequencies would be rounded by ``.half()`` or FSDP, and a float of the whole number
    has too few digits. The fraction of a turn at each period is the one before it after the next
    digit, divided by ten: element-wise in float32, which neither autocast nor TF32 touches.
    """
    if chunk is not None:  # from the least significant on, filled up with zeros
        filled = nn.functional.pad(digits, (0, -digits.shape[-1] % chunk))
        digits = filled.unflatten(-1, (-1, chunk))  # (..., chunks, chunk)
    width = digits.shape[-1]
    columns = list(digits.to(torch.int32).unbind(-1))  # d of (...)
    columns_by_base = {base: columns if base == 10 else _divided(columns, base) for base in bases}
    turns = {base: _turns(columns_by_base[base], base) for base in bases}
    slots = [(k, base) for k in range(width + 1) for base in bases if k < width or base < 10]
    angle = 2 * math.pi * torch.stack([turns[base][k] for k, base in slots], -1)  # (..., f)
    return torch.stack([angle.cos(), angle.sin()], -1)  # (..., f, 2)


def _turns(columns: Sequence[Tensor], base: int) -> list[Tensor]:
    """Return the fraction of a turn, -0.5 to 0.5, after each slot: 0.d, then 0.ed, then 0.fed;
    errors of one are divided by ten in the next.
    """
    turn = torch.zeros_like(columns[0], dtype=torch.float32)
    turns, radix = [], float(base)
    for column in columns:
        turn = (turn + column) / radix
        turns.append(torch.where(turn > 0.5, turn - 1, turn))  # as float32 is finer near zero
        radix = 10.0
    return turns


def _divided(columns: Sequence[Tensor], base: int) -> list[Tensor]:
    """Convert digits of X = base * J + r as r, then the digits of J: one column more."""
    remainder = torch.zeros_like(columns[0])
    quotient = []
    for column in reversed(columns):
        remainder = remainder * 10 + column
        quotient.append(torch.div(remainder, base, rounding_mode="floor"))
        remainder = remainder % base
    return [remainder, *reversed(quotient)]


def digits_of_features(
    features: Tensor, n_digits: int, bases: Sequence[int] = (10,), chunk: int | None = None
) -> Tensor:
    """Convert features, float (..., f, 2) or (..., chunks, f, 2), to digits, uint8 (..., n_digits):
    the inverse, from the least significant up.

    Every phase may be off by up to a twentieth of a turn. The paper's head does not do this: it
    reads each digit by itself, which is wrong for features that the encoder made, as the digits
    below turn the phase further.
    """
    base = bases[-1]
    # (..., slots, 2), those of the largest base
    mine = features.to(torch.float32)[..., len(bases) - 1 :: len(bases), :]
    turns = torch.atan2(mine[..., 1], mine[..., 0]) / (2 * math.pi)  # (..., slots)
    slots, below, radix = [], torch.zeros_like(turns[..., 0]), base
    for turn in turns.unbind(-1):
        slot = torch.remainder(torch.floor(turn * radix - below + 0.5), radix)
        slots.append(slot)
        below, radix = (below + slot) / radix, 10
    # (..., width), or (..., chunks, width)
    digits = torch.stack(slots if base == 10 else _multiplied(slots, base), -1)
    if chunk is not None:
        digits = digits.flatten(-2)[..., :n_digits]  # (..., n_digits)
    return digits.to(torch.uint8)


def _multiplied(slots: Sequence[Tensor], base: int) -> list[Tensor]:
    """Invert :func:`_divided`."""
    carry, digits = slots[0], []
    for slot in slots[1:]:
        carry = carry + base * slot
        digits.append(torch.remainder(carry, 10))
        carry = torch.floor(carry / 10)
    return digits


def digit_table(bases: Sequence[int], device: torch.device) -> Tensor:
    """Return φ(j, b) for each digit j, float32 (10, 2 * bases): cosine and sine of 2πj/b.

    Made anew each time, so that nothing can round it.
    """
    periods, digits = (torch.tensor([*some], device=device) for some in (bases, range(10)))
    angle = 2 * math.pi * (digits.unsqueeze(-1) / periods)  # (10, bases)
    return torch.stack([angle.cos(), angle.sin()], -1).flatten(1)  # (10, 2 * bases)
