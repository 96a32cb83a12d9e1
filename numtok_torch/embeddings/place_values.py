"""Places of digits in front of a model, for numbers that are spelled out in digits, or in groups of
digits; and what a model sees of them while it writes from left to right.

``place_value``, int64 (batch, seq), is for a digit of 10**p p + 1 if p >= 0, else p; for a group,
that of its last digit; 0 for every other token.

**Writing left to right.** A model that writes 4, 1, 7 does not know, at the 4, that it stands for
hundreds: how many digits follow is not decided. So the layer sees, as
:class:`numtok.tokenizer.generated_numbers.PlaceTracker` gives it:

- most significant first, 0 for integer digits, "not known", to which no vector is added; and -1,
  -2, ... after the point, or -3, -6, ... of groups of three;
- least significant first, 1, 2, 3, ..., as of an integer until a point is written, then 1, 2, ...

A prompt's digits keep their true places, and none is revised when a number is complete: keys that
are cached stay valid. Least significant first, training and writing show the same of an integer,
which is why one writes sums so. In exponent notation (``1.5e3``) the place also hangs on the
exponent after: the digits that then count as integer are shown as integer digits.

In training, true places of the digits to be predicted would tell how many are still to come. So
digits with a label (other than -100) are shown as they will be seen when written. A batch of the
masked objective, known by its ``place_value_labels``, is taken as it is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok_torch.embeddings.base import Batch, TableEmbedding, check_known


class PlaceValueEmbedding(TableEmbedding):
    """Adds a vector for each digit's place; zero-initialised, so that a pretrained model starts
    unchanged.

    Args:
        d_model: dimension of the word vectors.
        max_place: places beyond it, in both directions, share the vector of the last one.
        max_offset: in training, all places of a row are moved away from 0 by one number from 0 to
            this, drawn anew for each row (Transformers Can Do Arithmetic with the Right Embeddings,
            McLeish et al. 2024, section 3). Below ``max_place``, which leaves ``max_place -
            max_offset`` places that no offset merges.
        zero_init: start from zeros; else from a normal distribution of standard deviation 0.02.
        amplitude: of that start; None: as long as the word vectors (``match_norm``).
        written: ``"msd"`` or ``"lsd"``, which ``embedding_from_schema`` takes from the file: show
            digits that have a label as they will be seen while a model writes in this order. None:
            all places are true, for texts that are only read; ``generate`` then warns.
        read_as_written: with ``written``: show so the digits without a label too, those of a
            prompt. Least significant first, a fraction then has the same places in a question as
            in its answer; most significant first, no integer digit has a place.
        coupled: position coupling (Cho et al. 2024), for sums and the like: every token gets a
            position, o + p for a digit of place p, o for all others, with o the row's offset; the
            backbone is to have no positions of its own. In the authors' code
            (HanseulJo/position-coupling) they are counted the other way, e - p, which renames the
            rows of a table that is learnt.

    Shape:
        - place_value: (batch, seq), any integer.

    Example:
        >>> import torch
        >>> from numtok_torch import PlaceValueEmbedding
        >>> layer = PlaceValueEmbedding(d_model=4, zero_init=False)
        >>> changed = layer(torch.zeros(1, 3, 4), {"place_value": torch.tensor([[0, 2, 1]])})
        >>> changed.any(-1).tolist()
        [[False, True, True]]
    """

    name = "place"
    streams = ("place_value",)

    def __init__(
        self,
        d_model: int,
        max_place: int = 64,
        max_offset: int = 0,
        zero_init: bool = True,
        written: str | None = None,
        coupled: bool = False,
        amplitude: float | None = None,
        read_as_written: bool = False,
    ) -> None:
        options = {"max_place": max_place, "max_offset": max_offset, "written": written}
        start = {"zero_init": zero_init, "amplitude": amplitude}
        shown = {"coupled": coupled, "read_as_written": read_as_written}
        super().__init__(d_model, **options, **start, **shown)
        if max_place < 1 or max_offset < 0:
            raise RepresentationError(
                f"place: max_place={max_place} must be positive, max_offset={max_offset} not"
                " negative"
            )
        if max_offset >= max_place:
            raise RepresentationError(
                f"place: max_offset={max_offset} must be below max_place={max_place}, else the"
                " digits of a number share the last place; take a larger max_place"
            )
        check_known("place", "written", written, "msd", "lsd", None)
        if read_as_written and written is None:
            raise RepresentationError(
                "place: read_as_written needs an order of writing; give written='lsd' or 'msd'"
            )
        self.max_place, self.max_offset, self.written = max_place, max_offset, written
        self.coupled, self.read_as_written = coupled, read_as_written
        # the row of place 0 stays zero, unless it is a position like others
        self.make_table(2 * max_place + 1, fixed=None if coupled else max_place)

    @classmethod
    def options_for(cls, representation: Any) -> dict[str, Any]:
        widest = 64 + getattr(representation, "max_offset", 0)  # the offset merges no places
        return {"max_place": widest, "written": representation.order}

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        place = self.read(inputs_embeds, batch, *self.streams).to(torch.int64)  # (batch, seq)
        labels, masked = batch.get("labels"), batch.get("place_value_labels")
        if self.written is not None and masked is None:
            if self.read_as_written:
                place = places_when_written(place, self.written)
            elif labels is not None:
                place = torch.where(labels != -100, places_when_written(place, self.written), place)
        if self.training and self.max_offset:
            size = (len(place), 1)  # one offset a row
            offset = torch.randint(self.max_offset + 1, size, device=place.device)
            place = place + (offset if self.coupled else offset * place.sign())
        return (torch.ones_like(place, dtype=torch.bool) if self.coupled else place != 0), place

    def embed(self, words: Tensor, rows: Tensor) -> Tensor:
        places = rows.clamp(-self.max_place, self.max_place) + self.max_place
        return super().embed(words, places)


def places_when_written(place: Tensor, order: str) -> Tensor:
    """Convert true places, int64 (batch, seq), to those that are known while the digits are written
    in this order; see the module.
    """
    if order == "msd":
        return place.clamp(max=0)
    before = nn.functional.pad(place[:, :-1], (1, 0))  # (batch, seq), of the token in front
    starts = (place < 0) & (before >= 0)  # a fraction begins with its last digit
    positions = torch.arange(place.shape[1], device=place.device)  # (seq,)
    # (batch, seq), of the fraction at or in front
    start = torch.where(starts, positions, 0).cummax(1).values
    return torch.where(place < 0, place - place.gather(1, start) + 1, place)
