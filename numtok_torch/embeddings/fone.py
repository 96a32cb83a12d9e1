"""FoNE in front of a model: Fourier features of whole numbers, or of digits, added to the word
vectors or in their place.

In: word vectors, float (batch, seq, d_model), and the digits or features of each number; or the ids
    of digit tokens. Out: the same shape and dtype.
FoNE: Precise Single-Token Number Embeddings via Fourier Features (Zhou et al. 2025). The features
    are made in :mod:`numtok_torch.embeddings.fourier`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from numtok.errors import RepresentationError, SchemaError
from numtok.representations import FoNE
from numtok_torch.embeddings.base import Batch, project, projection_layer
from numtok_torch.embeddings.fourier import digit_table, features_of_digits, features_per_number
from numtok_torch.embeddings.vectors import VectorEmbedding


class FoNEEmbedding(VectorEmbedding):
    """Adds the Fourier features of each number to its word vector (FoNE: Zhou et al. 2025,
    algorithm 1).

    From compact digits the features are computed here, in float32, on the device; see ``fourier``.

    Args:
        d_model: dimension of the word vectors.
        int_digits, frac_digits, bases, chunk: those of the representation; with ``chunk``, the
            features of all chunks stand side by side.
        projection: ``"pad"``, zeros behind the features, or ``"linear"``, a linear map without
            bias.
        zero_init: start the linear map from zeros.
        compact: the form of the file, digits or features, for the record: the layer reads either.

    Shape:
        - number_digits: (batch, seq, digits), or (batch, seq, chunks, chunk), any integer, least
          significant first;
        - or number_fourier: (batch, seq, f, 2), or (batch, seq, chunks, f, 2), float.
    """

    name = "fone"
    streams = ("number_mask", "number_digits", "number_fourier")

    def __init__(
        self,
        d_model: int,
        int_digits: int,
        frac_digits: int,
        bases: Sequence[int] = (10,),
        chunk: int | None = None,
        projection: str = "pad",
        zero_init: bool = False,
        compact: bool = True,
    ) -> None:
        fone = FoNE(int_digits, frac_digits, tuple(bases), compact, "clip", chunk)
        options = {
            "int_digits": int_digits,
            "frac_digits": frac_digits,
            "bases": fone.bases,
            "chunk": chunk,
            "compact": compact,
        }
        super().__init__(d_model, **options, projection=projection, zero_init=zero_init)
        self._representation = fone
        self._width = features_per_number(fone.n_digits, fone.bases, chunk)
        self.projection = projection_layer(self.name, self._width, d_model, projection, zero_init)

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        return self.at_mask(inputs_embeds, batch, "number_digits", "number_fourier")

    def embed(self, stream: Tensor) -> Tensor:
        """Digits (n, ...) or features (n, ..., 2) to (n, d_model)."""
        fone = self._representation
        if stream.is_floating_point():
            features = stream.flatten(1)  # (n, width)
        else:
            digits = (
                stream.flatten(1)[:, : fone.n_digits] if stream.dim() == 3 else stream
            )  # (n, digits): chunks are filled up with zeros
            if digits.dim() != 2 or digits.shape[1] != fone.n_digits:
                raise SchemaError(
                    f"number_digits has the shape {tuple(stream.shape)}, the layer was made for"
                    f" {fone.n_digits} digits"
                )
            features = features_of_digits(digits, fone.bases, fone.chunk).flatten(1)  # (n, width)
        if features.shape[1] != self._width:
            raise SchemaError(
                f"number_fourier holds {features.shape[1]} features per number, the layer was made"
                f" for {self._width}"
            )
        return project(features, self.projection, self.d_model)


class FoNEDigitEmbedding(VectorEmbedding):
    """FoNE on digit tokens: φ(j, 10), the cosine and sine of 2πj/10, at each token of a digit j,
    whatever its place.

    With :class:`PlaceValueEmbedding` in a :class:`~numtok_torch.SumEmbedding` it is FoNE with
    Abacus (Zhou et al. 2025, section 5, Q3): "the embeddings for each digit (0-9) are replaced with
    their corresponding Fourier Number Embeddings" is ``combine="replace"``.

    Args:
        d_model: dimension of the word vectors.
        digit_ids: the ids of the tokens ``0`` to ``9``.
        projection: ``"pad"``, zeros behind the two features, or ``"linear"``, a linear map without
            bias.
        zero_init: start the linear map from zeros; needs ``combine="add"``, as it is to change
            nothing at first.
        combine: ``"add"`` the features to the word vector, or ``"replace"`` it by them.

    Shape:
        - input_ids: (batch, seq), any integer.
    """

    name = "fone_digits"
    streams = ("input_ids",)

    def __init__(
        self,
        d_model: int,
        digit_ids: Sequence[int],
        projection: str = "pad",
        zero_init: bool = False,
        combine: str = "add",
    ) -> None:
        super().__init__(
            d_model,
            digit_ids=tuple(digit_ids),
            projection=projection,
            zero_init=zero_init,
            combine=combine,
        )
        if len(set(digit_ids)) != 10:
            raise RepresentationError(
                f"fone_digits: digit_ids={tuple(digit_ids)} must be the ten ids of the tokens 0"
                " to 9"
            )
        if combine not in ("add", "replace"):
            raise RepresentationError(
                f"fone_digits: combine={combine!r} is unknown; use 'add' or 'replace'"
            )
        if zero_init and combine == "replace":
            raise RepresentationError(
                "fone_digits: zero_init leaves a model as it was, which combine='replace' cannot;"
                " take combine='add'"
            )
        self.projection = projection_layer(self.name, 2, d_model, projection, zero_init)
        self._digit_ids, self.combine = tuple(int(digit_id) for digit_id in digit_ids), combine
        self.replaces = combine == "replace"

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        ids = self.read(inputs_embeds, batch, "input_ids")  # (batch, seq)
        chosen = ids.unsqueeze(-1) == torch.tensor(
            self._digit_ids, device=ids.device
        )  # (batch, seq, 10)
        return chosen.any(-1), chosen.to(torch.int64).argmax(-1)  # (batch, seq) each

    def embed(self, stream: Tensor) -> Tensor:
        """Digits (n,) to (n, d_model)."""
        return project(digit_table((10,), stream.device)[stream], self.projection, self.d_model)
