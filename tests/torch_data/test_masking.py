"""Masked language modelling: what is chosen, that nothing of a hidden number can be seen, and what
the labels are.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_rows import ROWS, SHAPES, dense, sparse, tokenizer
from trained import config

import numtok
from numtok.representations import FP15, P10, PlaceValue, XVal

torch = pytest.importorskip("torch")

from numtok.tokenizer.packing import NumberTokens
from numtok_torch.data import NumberCollator, NumberDataset
from numtok_torch.data.rows import number_streams

PAD, MASK, VOCAB = 900, 901, 1000
NUMBERS = NumberTokens(ids=(902, 903), own=(902, 903))


def masker(**options):
    known = {"mask_token_id": MASK, "vocab_size": VOCAB, "tokens": NUMBERS}
    return NumberCollator(PAD, "masked", **{"seed": 0} | known | options)


def of_schema(data, **options):
    known = {"objective": "masked", "mask_token_id": 1, "mlm_probability": 1.0}
    return NumberCollator.from_schema(data.schema, PAD, **known | options)


def encoded(representation, texts):
    data = NumberDataset(tokenizer(representation).encode_batch(texts))
    return data, list(data)


@settings(max_examples=40)
@given(
    st.lists(ROWS, min_size=1, max_size=6),
    st.integers(0, 2**20),
    st.sampled_from(["all", "numbers", "words"]),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.booleans(),
)
def test_what_is_hidden_and_what_is_not(rows, seed, mask, probability, as_dense):
    made = [sparse(row) for row in rows if row[0]] or [sparse(([1], [0], 0))]
    for row in made:
        row["place_value"][:] = 0
    before = NumberCollator(PAD, objective=None)([dense(row) for row in made] if as_dense else made)
    after = masker(seed=seed, mask=mask, mlm_probability=probability)(made)
    real, was_number = before["attention_mask"] == 1, before["number_mask"]
    chosen = after["labels"] != -100
    assert not chosen[~real].any()
    assert torch.equal(after["labels"][chosen], before["input_ids"][chosen])
    assert torch.equal(after["input_ids"][~chosen], before["input_ids"][~chosen])
    assert torch.equal(after["number_labels_mask"], chosen & was_number)
    candidates = real & {"all": real, "numbers": was_number, "words": ~was_number}[mask]
    assert not chosen[~candidates].any()
    if probability == 1.0:
        assert torch.equal(chosen, candidates)
    assert bool(chosen.any()) == (probability > 0 and bool(candidates.any()))
    shown = after["number_mask"]
    assert not (shown & ~was_number).any()
    assert torch.equal(shown | chosen, was_number | chosen)  # only chosen ones are hidden
    assert (after["input_ids"][shown] == before["input_ids"][shown]).all()
    for name in SHAPES:
        # the labels are the streams as they were
        assert torch.equal(after[f"{name}_labels"], before[name]), name
        assert torch.equal(after[name][shown], before[name][shown])
        # nothing is left of hidden ones
        assert (after[name][~shown] == number_streams()[name][0].fill).all(), name


def test_shares_are_80_10_10():
    count = 40_000
    ids = np.where(np.arange(count) % 4 == 0, 902, np.arange(count) % 900)
    numbers = np.flatnonzero(ids == 902)
    row = {"input_ids": ids, "number_index": numbers, "number_scaled": np.full(len(numbers), 5.0)}
    batch = masker(mlm_probability=0.5)([row])
    new, chosen = batch["input_ids"][0].numpy(), (batch["labels"][0] != -100).numpy()
    assert abs(chosen.mean() - 0.5) < 0.02
    for kind in (ids == 902, ids != 902):
        of_kind = chosen & kind
        assert abs((new[of_kind] == MASK).mean() - 0.8) < 0.02
        assert abs((new[of_kind] == ids[of_kind]).mean() - 0.1) < 0.015
    drawn = set(new[chosen & (new != MASK) & (new != ids)].tolist())
    # never a number, which would have no value, nor a special token
    assert not drawn & {PAD, MASK, 902, 903} and len(drawn) > 800
    # A number that stays keeps its value, every other is gone.
    stays = (ids == 902) & (new == 902)
    assert (batch["number_mask"][0].numpy() == stays).all()
    assert (batch["number_scaled"][0].numpy() == np.where(stays, 5.0, 1.0)).all()


def test_every_batch_has_something_to_learn():
    row = {"input_ids": [1] * 3 + [902], "number_index": [3], "number_value": [0.0]}
    for seed in range(20):
        few = {"seed": seed, "mlm_probability": 1e-9}
        assert (masker(**few)([row, row])["labels"] != -100).sum() == 1
        assert masker(**few, mask="numbers")([row, row])["number_labels_mask"].sum() == 1
    assert (masker(mlm_probability=0.0)([row])["labels"] == -100).all()
    none = {"input_ids": [1], "number_index": [], "number_value": []}
    assert (masker(mlm_probability=1.0, mask="numbers")([none])["labels"] == -100).all()


def test_special_tokens_and_padding_are_never_masked():
    row = {"input_ids": [7, 5, 902, 8, PAD], "special_tokens_mask": [1, 0, 0, 0, 0]}
    row |= {"attention_mask": [1, 1, 1, 1, 0], "number_index": [2], "number_value": [0.0]}
    short = {name: part[:3] for name, part in row.items()}
    batch = masker(mlm_probability=1.0, special_token_ids=(8,))([row, short])
    assert (batch["labels"] != -100).tolist() == [[False, True, True, False, False]] * 2
    assert "special_tokens_mask" not in batch
    tok = numtok.Tokenizer(config("bert"), [XVal()])
    data = NumberDataset(tok.encode_batch(["The mass 5 is"], add_special_tokens=True))
    chosen = (of_schema(data)([data[0]])["labels"] != -100)[0].tolist()
    assert chosen == [False, *[True] * (len(chosen) - 2), False]


@pytest.mark.parametrize(
    ("representation", "mask"),
    [
        *((PlaceValue(), mask) for mask in ("all", "numbers", "words")),
        *((one, "all") for one in (PlaceValue(brackets=False), P10(), FP15())),
        (PlaceValue(order="lsd"), "numbers"),
    ],
)
def test_spelled_out_numbers_are_masked_as_a_unit(representation, mask):
    data, rows = encoded(representation, ["ab 123 cd -45.6, 7 8 ef B2B 0"] * 40)
    make = of_schema(data, mlm_probability=0.5, mask=mask, seed=3, mask_share=1.0, random_share=0.0)
    batch, tokens = make(rows), NumberTokens.from_schema(data.schema)
    found = 0
    for number, row in enumerate(rows):
        one = {name: stream[number].numpy() for name, stream in batch.items()}
        ids, index = row["input_ids"].astype(np.int64), row["number_index"].astype(np.int64)
        stops = tokens.stops(ids, index, np.full(len(index), len(ids)))
        chosen, inside = one["labels"] != -100, np.zeros(len(ids), np.bool_)
        for k, (first, last) in enumerate(zip(index.tolist(), stops.tolist(), strict=True)):
            inside[first:last] = True
            assert chosen[first:last].all() or not chosen[first:last].any()
            assert one["number_labels_mask"][first] == chosen[first]
            assert one["number_mask"][first] != chosen[first]
            assert one["number_value_labels"][first] == row["number_value"][k]
            assert not chosen[first] or (one["input_ids"][first:last] == 1).all()
            found += bool(chosen[first])
        if "place_value" in row:
            assert (one["place_value"] == np.where(chosen, 0, row["place_value"])).all()
            assert (one["place_value_labels"] == row["place_value"]).all()
        assert not chosen[~inside].any() or mask != "numbers"
        assert not chosen[inside].any() or mask != "words"
    assert (found == 0) == (mask == "words")


def test_what_is_left_of_a_cut_number_is_neither_number_nor_word():
    data, rows = encoded(PlaceValue(), ["12345 ab"])
    options = {"max_length": 5, "truncation_side": "left"}
    options |= {"mask_share": 1.0, "random_share": 0.0}
    for mask, chosen in (("numbers", 0), ("words", 1), ("all", 5)):
        batch = of_schema(data, mask=mask, **options)(rows)
        labelled = batch["labels"] != -100
        assert not batch["number_labels_mask"].any()
        assert int(labelled.sum()) == chosen
        assert (batch["place_value"][labelled] == 0).all()
    assert batch["place_value_labels"].tolist() == [[3, 2, 1, 0, 0]]


def test_spans():
    data, (row,) = encoded(P10(), ["ab 123 cd"])
    first, count = int(row["number_index"][0]), len(row["input_ids"])

    def chosen(spans, **changed):
        make = of_schema(data, mask="spans", mlm_probability=0.0, **changed)
        return np.flatnonzero((make([row | {"mask_spans": spans}])["labels"] != -100)[0]).tolist()

    whole = list(range(first, first + 5))
    assert chosen([[first + 1, first + 2]]) == whole  # widened to the number
    assert chosen([[0, 1], [0, 1]]) == [0]
    assert chosen([[first - 1, first + 1]]) == [first - 1, *whole]
    assert chosen([]) == chosen([[0, 0]]) == []
    last = chosen([[first + 5, count]], max_length=2, truncation_side="left")
    assert last == list(range(2 - (count - first - 5), 2))


def test_masks_repeat_with_their_seed_and_differ_otherwise():
    rows = [{"input_ids": list(range(300))}]

    def labels(seed):
        made = masker(seed=seed)
        return [made(rows)["labels"][0].tolist() for _ in range(2)]

    assert labels(1) == labels(1) != labels(2)
    assert labels(1)[0] != labels(1)[1]  # the next epoch hides something else
    torch.manual_seed(5)
    first = labels(None)
    assert first[0] != first[1]
    torch.manual_seed(5)
    assert labels(None) == first


def test_workers_mask_differently():
    text = "the same words and 5 numbers 6 in every row of this data set, over and over again"
    data, _ = encoded(XVal(), [text] * 4)
    for seed in (None, 1):
        made = of_schema(data, mlm_probability=0.5, seed=seed)
        loader = torch.utils.data.DataLoader(data, batch_size=1, num_workers=2, collate_fn=made)
        labels = [tuple(batch["labels"][0].tolist()) for _ in range(2) for batch in loader]
        assert len(set(labels)) == 8
