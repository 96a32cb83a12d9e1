"""Places of digits: what is shown in training, and while a model writes from left to right."""

import numpy as np
import pytest
import torch
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import numtok
from numtok import Numbers
from numtok.representations import Digits, PlaceValue, symbol_token
from numtok_torch import PlaceTracker, PlaceValueEmbedding, embedding_from_config
from numtok_torch.embeddings.place_values import places_when_written

SYMBOLS = {symbol: 10 + k for k, symbol in enumerate(Digits().alphabet)}
SYMBOLS |= {"[NUM]": 1, " [NUM]": 2, "[/NUM]": 3}


def telling(**options):
    """A layer whose vectors are their places."""
    layer = PlaceValueEmbedding(1, **options)
    with torch.no_grad():
        places = torch.arange(-layer.max_place, layer.max_place + 1.0)
        layer.vectors.weight.copy_(places.unsqueeze(1))
    return layer


def seen(layer, place, **more):
    """The places that the layer shows, (batch, seq)."""
    place = torch.as_tensor(place)
    return layer(torch.zeros(*place.shape, 1), {"place_value": place, **more})[..., 0].detach()


def test_places_move_in_training_only_each_row_by_its_own_offset():
    torch.manual_seed(0)
    layer = telling(max_place=40, max_offset=30)
    place = torch.tensor([[3, 2, 1, 0, -1, -2]]).repeat(64, 1)
    found = seen(layer, place)
    offsets = found[:, 2] - 1
    assert torch.equal(found, place + offsets.unsqueeze(1) * place.sign())
    assert len(offsets.unique()) > 10 and offsets.min() >= 0 and offsets.max() <= 30
    assert torch.equal(seen(layer.eval(), place), place.float())


def test_an_offset_leaves_places_apart_and_those_beyond_the_table_share_the_last():
    """Of the longest number that the table has room for, no two digits ever share a place."""
    layer = telling(max_place=164, max_offset=100)
    place = torch.tensor([[*range(64, 0, -1), 0, *range(-1, -65, -1)]]).repeat(64, 1)
    assert all(len(row.unique()) == 129 for row in seen(layer, place))
    assert seen(telling(max_place=2), [[2, 900, -900, -2]]).tolist() == [[2, 2, -2, -2]]


def test_coupled_positions_are_those_of_the_authors():
    """``AdditionDatasetWithCoupledPositions`` of src/data/addition.py, which counts them down from
    ``end``, the position of the marks; ours are counted up from it.
    """
    a, b, total = "71", "9", "80"
    end = 1 + max(len(a), len(b)) + 1
    theirs = [*range(end - len(a), end + 1), *range(end - len(b), end + 1)]
    theirs += range(end - len(total), end)
    tokenizer = numtok.Tokenizer.from_pretrained(None, [PlaceValue()])
    batch = tokenizer.encode_batch([f"{a}+{b}={total}"])
    brackets = [tokenizer.tokens["[NUM]"], tokenizer.tokens["[/NUM]"]]
    place = torch.tensor(batch["place_value"].to_pylist())
    shown = ~np.isin(batch["input_ids"][0].as_py(), brackets)
    torch.manual_seed(0)
    layer = telling(max_place=40, max_offset=30, coupled=True)
    found = seen(layer, place.repeat(64, 1))
    offsets = found[:, 0]  # of a bracket
    moved = found[:, shown] - offsets[:, None]
    assert torch.equal(moved, (end - torch.tensor(theirs)).repeat(64, 1))
    assert len(offsets.unique()) > 20 and offsets.min() >= 0 and offsets.max() <= 30
    assert torch.equal(seen(layer.eval(), place), place.float())


@pytest.mark.parametrize(
    ("options", "shown", "labelled"),
    [
        ({"written": None}, [3, 2, 1, 0, -2, -1], [3, 2, 1, 0, -2, -1]),
        ({"written": "msd"}, [3, 2, 1, 0, -2, -1], [3, 0, 0, 0, -2, -1]),
        ({"written": "lsd"}, [3, 2, 1, 0, -2, -1], [3, 2, 1, 0, 1, 2]),
        ({"written": "lsd", "read_as_written": True}, [3, 2, 1, 0, 1, 2], [3, 2, 1, 0, 1, 2]),
        ({"written": "msd", "read_as_written": True}, [0, 0, 0, 0, -2, -1], [0, 0, 0, 0, -2, -1]),
    ],
)
def test_digits_with_a_label_are_shown_as_written(options, shown, labelled):
    """And all of them if asked for; a masked model does not write from left to right."""
    layer = telling(max_place=9, **options)
    layer = embedding_from_config(layer.config(), 1)
    layer.load_state_dict(telling(max_place=9).state_dict())
    place, labels = torch.tensor([[3, 2, 1, 0, -2, -1]]), torch.tensor([[-100, 7, 7, 7, 7, 7]])
    assert seen(layer, place).tolist() == [shown]
    assert seen(layer, place, labels=labels).tolist() == [labelled]
    assert torch.equal(seen(layer, place, labels=labels, place_value_labels=place), place.float())


def spelled(literals, representation):
    """(ids, places) of a text of these numbers, with words between."""
    ids, places = [5], [0]
    for literal in literals:
        found = representation.encode(Numbers.parse([literal]))
        ids += [1, *(SYMBOLS[representation.alphabet[symbol]] for symbol in found.symbols), 3, 5]
        places += [0, *found.stream.tolist(), 0, 0]
    return ids, places


LITERAL = st.from_regex(r"-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?", fullmatch=True)


@pytest.mark.parametrize(
    "representation",
    [PlaceValue(), PlaceValue(order="lsd"), Digits(places=True), Digits(2, "left", places=True)],
)
@pytest.mark.thorough
def test_what_is_seen_in_training_is_what_is_seen_when_writing(representation):
    """By the digits of the vocabulary, and by tokens of their own."""
    own = {symbol_token(one) if one.isdigit() else one: token for one, token in SYMBOLS.items()}

    @settings(max_examples=examples(25, thorough=100))
    @given(st.lists(LITERAL, max_size=4))
    def check(literals):
        ids, places = spelled(literals, representation)
        known = places_when_written(torch.tensor([places]), representation.order)[0].tolist()
        for vocabulary in (SYMBOLS, own):
            tracker = PlaceTracker(vocabulary, representation.order)
            assert [int(tracker.step([one])[0]) for one in ids] == known

    check()


def test_the_tracker_keeps_a_state_for_each_row_and_beam():
    tracker = PlaceTracker(SYMBOLS, "lsd")
    one, dot, word = SYMBOLS["1"], SYMBOLS["."], 5
    for ids, places in (
        ([1, 2, one], [0, 0, 0]),  # a digit outside a number has no place
        ([one, one, one], [1, 1, 0]),
        ([one, dot, one], [2, 0, 0]),
        (None, [1, 0, 0]),
        ([one, one, word], [1, 3, 0]),
        ([SYMBOLS["e"], one, one], [0, 4, 0]),
        ([one, 3, one], [0, 0, 0]),
        ([2, 2, 2], [0, 0, 0]),
        ([one, -100, 9999], [1, 0, 0]),  # no tokens of the vocabulary
        ([one, one, one], [2, 0, 0]),
    ):
        if ids is None:
            tracker.reorder(places)
        else:
            assert tracker.step(ids).tolist() == places
    assert PlaceTracker(SYMBOLS).step([]).tolist() == []
