"""Layers for numbers that are spelled out digit by digit, or in groups of digits, and what they see
while a model writes from left to right.

In: word vectors and ``place_value``, int64 (batch, seq): for a digit of 10**p, p + 1 if p >= 0,
    else p; for a group, that of its last digit; 0 for every token that is no digit. Out: word
    vectors with a vector for the place added to each digit or group. Place-value positions; the
    random offset is that of Transformers Can Do Arithmetic with the Right Embeddings (McLeish et
    al. 2024), section 3. The vectors are added to the word vectors, so that it is all one whether
    the model has learned, sinusoidal or rotary positions: there is no table of positions to edit.

**Writing left to right.** A model that writes 4, 1, 7 does not know, at the 4, that it stands for
hundreds: how many digits follow is not decided. So the layer sees, as :class:`PlaceTracker` gives
it:

==============  ======================================================  =================================================================
order           most significant first                                  least significant first
==============  ======================================================  =================================================================
integer digits  0, "not known": no vector is added                      1, 2, 3, ...
fraction        -1, -2, ... behind the point, as always; -3, -6, ...    1, 2, ... as of an integer until the point is written, then 1, 2, ...
                for groups of three
==============  ======================================================  =================================================================

The digits of the prompt keep their true places, and what a token was shown with is not revised when
the number is complete: keys that are cached stay valid, and running the text again without a cache
gives the same. Least significant first, an integer's places are known from its first digit on, and
training and writing show the same: that is why one writes sums in this order. A number with a
fraction is not known to be one until its point.

In training, the true places of the digits to be predicted would tell the model how many digits are
still to come. ``written="msd"`` or ``"lsd"`` shows these digits (``labels`` other than -100) as
they will be seen when written; the others, of a prompt, keep their places.
``embedding_from_schema`` chooses the order of the file. With ``written=None`` the layer takes the
stream as it is, which is right for texts that are only read; ``generate`` then warns. A masked
language model writes nothing from left to right: a batch of the masked objective, known by its
``place_value_labels``, is taken as it is. In exponent notation (``1.5e3``) the place also hangs on
the exponent behind: the digits that then count as integer are shown as integer digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from numtok.errors import RepresentationError
from numtok.representations import own_token
from numtok.representations.as_written import LONGEST_GROUP, groups
from numtok_torch.embeddings.base import Batch
from numtok_torch.embeddings.vectors import VectorEmbedding

ORDERS = ("msd", "lsd")


class PlaceValueEmbedding(VectorEmbedding):
    """Adds a vector for each digit's place; zero-initialised, so that a pretrained model starts
    unchanged.

    Args:
        d_model: dimension of the word vectors.
        max_place: places beyond it, in both directions, share the vector of the last one.
        max_offset: in training, all places of a row are moved away from 0 by one number from 0 to
            this, drawn anew for each row. Below ``max_place``, which leaves ``max_place -
            max_offset`` places that no offset merges.
        zero_init: start from zeros; else from a normal distribution of standard deviation 0.02.
        written: ``"msd"`` or ``"lsd"``: show digits that have a label as they will be seen when
            written in this order, see the module. None: all places are true, so that all vectors
            are trained, those of positive places too.

    Shape:
        - place_value: (batch, seq), any integer.
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
    ) -> None:
        super().__init__(
            d_model,
            max_place=max_place,
            max_offset=max_offset,
            zero_init=zero_init,
            written=written,
        )
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
        if written is not None and written not in ORDERS:
            raise RepresentationError(
                f"place: written={written!r} is unknown; use one of {', '.join(map(repr, ORDERS))},"
                " or None"
            )
        self.max_place, self.max_offset, self.written = max_place, max_offset, written
        self.vectors = nn.Embedding(
            2 * max_place + 1, d_model, padding_idx=max_place
        )  # the row of place 0 stays zero
        if zero_init:
            nn.init.zeros_(self.vectors.weight)
        else:
            nn.init.normal_(self.vectors.weight, std=0.02)
            nn.init.zeros_(self.vectors.weight[max_place])

    @classmethod
    def options_for(cls, representation: Any) -> dict[str, Any]:
        return {
            "max_place": 64 + getattr(representation, "max_offset", 0),
            "written": representation.order,
        }  # the offset merges no places

    def find(self, inputs_embeds: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        place = self.read(inputs_embeds, batch, "place_value").to(torch.int64)  # (batch, seq)
        labels = batch.get("labels")
        if (
            self.written is not None
            and labels is not None
            and batch.get("place_value_labels") is None
        ):
            place = torch.where(labels != -100, places_when_written(place, self.written), place)
        if self.training and self.max_offset:
            offset = torch.randint(
                self.max_offset + 1, (len(place), 1), device=place.device
            )  # (batch, 1)
            place = place + offset * place.sign()
        return place != 0, place

    def embed(self, stream: Tensor) -> Tensor:
        """Places (n,) to (n, d_model)."""
        vectors: Tensor = self.vectors(
            stream.clamp(-self.max_place, self.max_place) + self.max_place
        )
        return vectors


def places_when_written(place: Tensor, order: str) -> Tensor:
    """True places, int64 (batch, seq), to those that are known while the digits are written in this
    order; see the module.
    """
    if order == "msd":
        return place.clamp(max=0)
    before = nn.functional.pad(
        place[:, :-1], (1, 0)
    )  # (batch, seq), the place of the token in front
    starts = (place < 0) & (before >= 0)  # a fraction begins with its last digit
    positions = torch.arange(place.shape[1], device=place.device)  # (seq,)
    start = (
        torch.where(starts, positions, 0).cummax(1).values
    )  # (batch, seq), of the fraction at or in front
    return torch.where(place < 0, place - place.gather(1, start) + 1, place)


class PlaceTracker:
    """The places of the digits that a model writes, token by token, one state per row; see the
    module.

    Args:
        digit_ids: of the tokens ``0`` to ``9``, or a superset; or how many digits each token has,
            for groups of them.
        point_ids: of the decimal point.
        open_ids: of ``[NUM]``, in all its forms.
        inner_ids: of what else may stand within a number: signs, separators of groups.
        exponent_ids: of ``e`` and ``E``; the digits behind have no place.
        order: ``"msd"`` or ``"lsd"``.

    Any other token, ``[/NUM]`` among them, ends the number.
    """

    def __init__(
        self,
        digit_ids: Sequence[int] | Mapping[int, int],
        point_ids: Sequence[int],
        open_ids: Sequence[int],
        inner_ids: Sequence[int] = (),
        exponent_ids: Sequence[int] = (),
        order: str = "msd",
    ) -> None:
        if order not in ORDERS:
            raise RepresentationError(
                f"place: order={order!r} is unknown; use one of {', '.join(map(repr, ORDERS))}"
            )
        groups = {
            "digit": digit_ids,
            "point": point_ids,
            "open": open_ids,
            "inner": inner_ids,
            "exponent": exponent_ids,
        }
        self._ids = {name: tuple(int(token_id) for token_id in ids) for name, ids in groups.items()}
        widths = digit_ids if isinstance(digit_ids, Mapping) else {}
        self._wider = tuple(
            tuple(int(token_id) for token_id, width in widths.items() if width > more)
            for more in (1, 2)
        )
        self._order = order
        self._state: dict[str, Tensor] | None = None

    @classmethod
    def from_vocabulary(
        cls, vocabulary: dict[str, int], order: str = "msd", **options: Any
    ) -> PlaceTracker:
        """From the ids of the tokens, by content: those of numtok's PlaceValue or Digits."""

        def ids(*contents: str) -> list[int]:
            return [vocabulary[content] for content in contents if content in vocabulary]

        named = {
            "open_ids": ids("[NUM]", " [NUM]"),
            "inner_ids": ids(*"-+,_'"),
            "exponent_ids": ids("e", "E"),
        } | options
        forms = (
            (group, form) for group in groups(LONGEST_GROUP) for form in (group, own_token(group))
        )
        return cls(
            {vocabulary[form]: len(group) for group, form in forms if form in vocabulary},
            ids("."),
            **named,
            order=order,
        )

    def step(self, ids: Tensor) -> Tensor:
        """The places, int64 (rows,), of the tokens (rows,) just written."""
        kind = {
            name: torch.isin(ids, torch.tensor(known, device=ids.device))
            for name, known in self._ids.items()
        }  # (rows,) each
        none = torch.zeros_like(kind["open"])
        state = self._state or {
            "inside": none,
            "point": none,
            "exponent": none,
            "count": torch.zeros_like(ids, dtype=torch.int64),
        }
        opened = kind["open"]
        inside = opened | (
            state["inside"] & (kind["digit"] | kind["point"] | kind["inner"] | kind["exponent"])
        )
        point = inside & ~opened & (state["point"] | kind["point"])
        exponent = inside & ~opened & (state["exponent"] | kind["exponent"])
        counted = inside & kind["digit"] & ~exponent & (point if self._order == "msd" else ~none)
        count = torch.where(opened | ~inside | kind["point"], 0, state["count"]) + counted
        for wider in self._wider:  # digits beyond the first of a group
            count = count + (
                counted & torch.isin(ids, torch.tensor(wider, dtype=ids.dtype, device=ids.device))
            )
        self._state = {"inside": inside, "point": point, "exponent": exponent, "count": count}
        return torch.where(counted, -count if self._order == "msd" else count, 0)

    def reorder(self, rows: Tensor) -> None:
        """Take the states of these rows, int64 (new rows,): for beams."""
        if self._state is not None:
            self._state = {name: values[rows] for name, values in self._state.items()}
