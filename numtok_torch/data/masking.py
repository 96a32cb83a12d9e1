"""Masking for masked language modelling: what is hidden, and the labels that remain of it.

In: :class:`numtok_torch.data.rows.Rows`, not padded. Out: the same rows with ids and number
    streams hidden, and labels. No padding exists yet where this works, so none is ever masked. BERT
    (Devlin et al. 2019), section 3.1: of what is chosen, 80% becomes ``[MASK]``, 10% a random word,
    10% stays.

**Units.** A number is one unit, all of its tokens, also when it is spelled out; every other token
is a unit. A unit is chosen with probability p, whatever its length, and shares one fate.

**What is hidden.** A chosen number that becomes ``[MASK]`` or random words loses its entry in every
number stream, and its mask and place values: nothing beside the ids tells that a number stood
there, nor which. One that stays keeps them, as a word that stays does.

**Labels.** ``labels`` (tokens,): the ids of all chosen tokens, the unchanged tenth included, else
-100. ``number_labels_mask``: True at the first token of each chosen number. ``S_labels`` for each
number stream S, and for ``place_value``: S as it was, in full; the loss takes the places where
``number_labels_mask`` (or ``labels != -100``, for place values) says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from numtok.arrays.cached import cached_property
from numtok.errors import SchemaError
from numtok.representations import streams
from numtok.tokenizer.packing import NumberTokens
from numtok_torch.data.packing import Ints, Mask
from numtok_torch.data.rows import Placed, Rows, number_streams

WHAT = ("all", "numbers", "words", "spans")
IGNORED = -100


@dataclass(frozen=True, eq=False)
class Units:
    """Tokens in groups that are masked together."""

    of: Ints  # int64[tokens], the unit of each token, ascending from 0
    starts: Ints  # int64[units], the first token of each
    number: Mask  # bool[units], whether it is a whole number
    # bool[units], a token that is part of a number of which the rest was cut away: neither number
    # nor word
    fragment: Mask


def find_units(rows: Rows, tokens: NumberTokens) -> Units:
    """Return the units of rows laid end to end."""
    count = len(rows.ids)
    positions = np.empty(0, np.int64) if rows.positions is None else rows.positions
    begins = np.ones(count, np.bool_)
    inside = np.zeros(count + 1, np.int64)
    stops = rows.number_stops(tokens)
    inside[positions] += 1  # numbers do not overlap, so that no index is there twice
    inside[stops] -= 1
    in_number = np.cumsum(inside[:-1]) > 0  # (tokens,)
    begins[in_number] = False
    begins[positions] = True
    starts = np.flatnonzero(begins)
    fragment = np.isin(rows.ids, np.array(tokens.own, np.int64))
    if "place_value" in rows.tokens:
        fragment |= rows.tokens["place_value"] != 0
    fragment &= ~in_number
    return Units(np.cumsum(begins) - 1, starts, in_number[starts], fragment[starts])


@dataclass(frozen=True)
class Masking:
    """Masks units of tokens, and labels them. If chance chooses nothing in a whole batch, one unit
    is chosen all the same, as the mean loss over no token is not a number.
    """

    mask_token_id: int  # the id of ``[MASK]``
    vocab_size: int  # random words have ids below it
    # ``"all"`` units; only ``"numbers"``; only ``"words"``, which are no part of a number; or the
    # ``"spans"`` that the rows give under ``mask_spans``, [k, 2] half-open spans of tokens,
    # each widened to whole units and chosen for certain
    what: str = "all"
    probability: float = 0.15  # of each unit
    mask_share: float = 0.8  # of the chosen units; what remains of 1 stays
    random_share: float = 0.1
    special_ids: tuple[int, ...] = ()  # never masked, nor drawn as random words
    # of numbers, never drawn as random words
    tokens: NumberTokens = field(default_factory=NumberTokens)

    def __post_init__(self) -> None:
        if self.what not in WHAT:
            raise SchemaError(
                f"mask={self.what!r} is unknown; use one of {', '.join(map(repr, WHAT))}"
            )
        if not 0 <= self.probability <= 1:
            raise SchemaError(f"mlm_probability={self.probability} must be from 0 to 1")
        if (
            min(self.mask_share, self.random_share) < 0
            or self.mask_share + self.random_share > 1 + 1e-9
        ):
            raise SchemaError(
                f"mask_share={self.mask_share} and random_share={self.random_share} must not be"
                " negative, nor more than 1 together"
            )
        if self.random_share and not len(self.words):
            raise SchemaError(
                f"vocab_size={self.vocab_size} leaves no word to draw at random; give the"
                " tokenizer's, or random_share=0"
            )

    @cached_property
    def words(self) -> Ints:
        """Return int64[words]: the ids that a random word can have."""
        excluded = np.array([self.mask_token_id, *self.special_ids, *self.tokens.ids], np.int64)
        return np.setdiff1d(np.arange(self.vocab_size), excluded)

    def choose(self, rows: Rows, units: Units, rng: np.random.Generator) -> Mask:
        """Draw the units that the model is to predict, bool[units]."""
        if not len(units.starts):
            return np.zeros(0, np.bool_)
        eligible = ~np.logical_or.reduceat(self._forbidden(rows), units.starts)
        if self.what == "spans":
            if rows.spans is None:
                raise SchemaError(
                    "mask='spans' needs 'mask_spans' in every row: [start, stop) pairs of places in"
                    " 'input_ids'"
                )
            edges = np.zeros(len(rows.ids) + 1, np.int64)
            np.add.at(edges, rows.spans[:, 0], 1)
            np.add.at(edges, rows.spans[:, 1], -1)
            return np.asarray(
                eligible & np.logical_or.reduceat(np.cumsum(edges[:-1]) > 0, units.starts)
            )
        if self.what == "numbers":
            eligible &= units.number
        elif self.what == "words":
            eligible &= ~units.number & ~units.fragment
        chosen = eligible & (rng.random(len(eligible)) < self.probability)
        if self.probability and not chosen.any() and eligible.any():
            chosen[rng.choice(np.flatnonzero(eligible))] = True
        return np.asarray(chosen)

    def _forbidden(self, rows: Rows) -> Mask:
        """Return bool[tokens]: special tokens, and padding that the rows already have."""
        forbidden = np.isin(rows.ids, np.array(self.special_ids, np.int64))
        if "special_tokens_mask" in rows.tokens:
            forbidden |= rows.tokens["special_tokens_mask"] != 0
        if "attention_mask" in rows.tokens:
            forbidden |= rows.tokens["attention_mask"] == 0
        return forbidden

    def __call__(self, rows: Rows, rng: np.random.Generator) -> Rows:
        """Hide and label units."""
        units = find_units(rows, self.tokens)
        chosen = self.choose(rows, units, rng)
        fate = rng.random(len(chosen))
        masked = chosen & (fate < self.mask_share)
        random = chosen & ~masked & (fate < self.mask_share + self.random_share)
        drawn = random[units.of]  # (tokens,)
        ids = np.where(masked[units.of], self.mask_token_id, rows.ids)
        if drawn.any():
            ids[drawn] = self.words[rng.integers(0, len(self.words), int(drawn.sum()))]
        hidden = (masked | random)[units.of]  # (tokens,)
        tokens = rows.tokens | {
            "input_ids": ids,
            "labels": np.where(chosen[units.of], rows.ids, IGNORED),
        }
        result = Rows(rows.lengths, tokens, None, {}, rows.whole)
        for name, (column, *_) in streams("token").items():
            if name in tokens:
                result.placed[f"{name}_labels"] = Placed(
                    np.arange(len(ids)), rows.tokens[name], column.fill
                )
                tokens[name] = np.where(
                    hidden, rows.tokens[name].dtype.type(column.fill), rows.tokens[name]
                )
        if rows.positions is not None:
            self._hide_numbers(rows, result, hidden, chosen[units.of])
        return result

    def _hide_numbers(self, rows: Rows, result: Rows, hidden: Mask, chosen: Mask) -> None:
        """Take hidden numbers out of the streams, and keep all of them as labels; ``hidden`` and
        ``chosen`` are bool[tokens].
        """
        assert rows.positions is not None
        shown = ~hidden[rows.positions]  # (numbers,)
        labelled = rows.positions[chosen[rows.positions]]
        result.positions = rows.positions[shown]
        result.numbers = {name: values[shown] for name, values in rows.numbers.items()}
        result.placed["number_labels_mask"] = Placed(labelled, np.ones(len(labelled), np.bool_), 0)
        for name, values in rows.numbers.items():
            result.placed[f"{name}_labels"] = Placed(
                rows.positions, values, number_streams()[name][0].fill
            )
