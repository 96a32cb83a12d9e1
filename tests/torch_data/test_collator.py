"""NumberCollator: every stream padded, truncated and packed together, from rows of either kind."""

import itertools
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from torch_rows import PAD, ROWS, assert_same, cut, dense, slow_batch, sparse, tokenizer

import numtok
from numtok.representations import B1999, P10, Digits, FloatBits, FoNE, PlaceValue, XVal

torch = pytest.importorskip("torch")
import trained
from trained import config

from numtok_torch.data import NumberCollator, NumberDataset

# cuts are what many of these are about
pytestmark = pytest.mark.filterwarnings("ignore:max_length=")


def collator(**options):
    return NumberCollator(PAD, **{"objective": "causal", **options})


SIDES = st.sampled_from(["right", "left"])
SOME = st.lists(ROWS, min_size=1, max_size=6)


@given(
    SOME,
    st.tuples(SIDES, SIDES, st.sampled_from([1, 4])),
    st.one_of(st.none(), st.integers(1, 10)),
    st.booleans(),
    st.sampled_from([None, "numpy", "lists", "tensors"]),
)
def test_batch_is_the_loop(rows, how, max_length, compact, kind):
    """And to truncate is to truncate first; from sparse rows, and dense ones of any kind."""
    made = [sparse(row, compact) for row in rows if row[0] or kind is None]
    if not made:  # lists of rows without tokens have no shape to see
        return
    side, cut_at, multiple = how
    options = {"padding_side": side, "truncation_side": cut_at, "pad_to_multiple_of": multiple}
    given = made if kind is None else [dense(row, kind) for row in made]
    found = collator(max_length=max_length, **options)(given)
    short = made if max_length is None else [cut(row, max_length, cut_at) for row in made]
    assert_same(found, slow_batch(short, side, multiple))


@given(SOME, st.integers(4, 12), SIDES)
def test_packing_keeps_every_row(rows, max_length, side):
    """Each row lies somewhere in one piece, once, with its streams, and its first label ignored."""
    made = [cut(sparse(row), max_length, "right") for row in rows]
    packer = collator(max_length=max_length, pack=True, pack_attention_mask=True, padding_side=side)
    packed = {name: tensor.numpy() for name, tensor in packer(made).items()}
    real, places = packed["attention_mask"] == 1, packed["position_ids"]
    assert real.shape[1] == max_length and real.sum() == sum(len(row["input_ids"]) for row in made)
    assert (packed["labels"][real & (places == 0)] == -100).all()
    assert (packed["labels"] == packed["input_ids"])[real & (places > 0)].all()
    found = []
    for line in range(len(real)):
        assert real[line].tolist() == sorted(real[line].tolist(), reverse=side == "right")
        begins = np.flatnonzero(real[line] & (places[line] == 0)).tolist()
        edge = np.flatnonzero(real[line])[-1] + 1 if real[line].any() else 0
        for first, last in itertools.pairwise([*begins, edge]):
            assert places[line, first:last].tolist() == list(range(last - first))
            ids = packed["input_ids"][line, first:last].tolist()
            values = packed["number_value"][line, first:last]
            found.append((ids, values[packed["number_mask"][line, first:last]].tolist()))
    expected = [(row["input_ids"].tolist(), row["number_value"].tolist()) for row in made]
    assert sorted(found) == sorted(one for one in expected if one[0])


HARD = [70000.0, 1e-9, 2049.0, 0.1, 1e300]
TYPED = {"token_type_ids": [0, 1, 1], "special_tokens_mask": [1, 0, 0]}


def by_hand(rows, mask=None, **streams):
    return {
        "input_ids": rows,
        "attention_mask": mask or [[1] * len(row) for row in rows],
        **streams,
    }


BY_HAND = {
    "labels of the rows are kept": (
        "causal",
        [{"input_ids": [1, 2, 3], "labels": [-100, 2, 3], **TYPED}],
        by_hand([[1, 2, 3]], labels=[[-100, 2, 3]], token_type_ids=[[0, 1, 1]]),
    ),
    "a label for each row": (
        None,
        [{"input_ids": [1, 2], "labels": 3}, {"input_ids": [1], "labels": 0}],
        by_hand([[1, 2], [1, 2]], [[1, 1], [1, 0]], labels=[3, 0]),
    ),
    "which may be a value": (
        None,
        [{"input_ids": [1, 2], "labels": 0.5}],
        by_hand([[1, 2]], labels=[0.5]),
    ),
    "no loss on padding that the rows have": (
        "causal",
        [{"input_ids": [5, 6, 2], "attention_mask": [1, 1, 0]}],
        by_hand([[5, 6, 2]], [[1, 1, 0]], labels=[[5, 6, -100]]),
    ),
    "the padding id may be a word, as the end of text is for GPT-2": (
        "causal",
        [{"input_ids": [1, 2]}, {"input_ids": [1]}],
        by_hand([[1, 2]] * 2, [[1, 1], [1, 0]], labels=[[1, 2], [1, -100]]),
    ),
    "places of the rows, and their mask, are kept": (
        None,
        [{"input_ids": [5, 6, 7], "position_ids": [4, 5, 6], "attention_mask": [1, 1, 0]}],
        by_hand([[5, 6, 7]], [[1, 1, 0]], position_ids=[[4, 5, 6]]),
    ),
    "fillers that are no numbers do not come through, and zero is a number": (
        None,
        [
            {
                "input_ids": [1, 2],
                "number_mask": [False, True],
                "number_value": np.array([np.nan, 0.0]),
                "number_scaled": [float("inf"), -0.0],
            }
        ],
        by_hand(
            [[1, 2]],
            number_mask=[[False, True]],
            number_value=[[1.0, 0.0]],
            number_scaled=[[1.0, -0.0]],
        ),
    ),
    "values keep their precision": (
        None,
        [{"input_ids": [1] * 5, "number_index": list(range(5)), "number_value": HARD}],
        by_hand([[1] * 5], number_mask=[[True] * 5], number_value=[HARD]),
    ),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_by_hand(case):
    objective, rows, expected = BY_HAND[case]
    batch = NumberCollator(2, objective)(rows)
    assert {name: tensor.tolist() for name, tensor in batch.items()} == expected


def test_rows_without_numbers_as_lists_need_the_schema():
    make = NumberCollator.from_schema(tokenizer(FoNE(6, 4)).batch_schema(), 0, objective=None)
    row = {"input_ids": [1], "number_index": [], "number_value": [], "number_fourier": []}
    assert make([row])["number_fourier"].shape == (1, 1, 10, 2)


# --- truncation of numbers of several tokens


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(
    ("representation", "lengths"),
    [
        (PlaceValue(), [5, 6]),
        (PlaceValue(brackets=False), [3, 4]),
        (P10(), [5, 5]),
        (B1999(), [2, 2]),
        (Digits(2, places=True), [4, 5]),
    ],
)
def test_numbers_that_are_cut_lose_their_entry(representation, lengths, side):
    data = NumberDataset(tokenizer(representation).encode_batch(["ab 123 cd 45.6 ef"]))
    row = data[0]
    ids, index = row["input_ids"].astype(np.int64), row["number_index"].astype(np.int64)
    count, options = len(ids), {"truncation_side": side, "objective": None}
    tokens = NumberCollator.from_schema(data.schema, PAD, objective=None).tokens
    stops = tokens.stops(ids, index, np.full(2, count))
    assert (stops - index).tolist() == lengths
    for length in range(1, count):
        make = NumberCollator.from_schema(data.schema, PAD, max_length=length, **options)
        batch = make([row])
        first = 0 if side == "right" else count - length
        kept = (index >= first) & (stops <= first + length)
        numbers = batch["number_mask"]
        assert numbers[0].nonzero().flatten().tolist() == (index[kept] - first).tolist()
        assert batch["number_value"][numbers].tolist() == row["number_value"][kept].tolist()
        for name in {"input_ids", "place_value"} & row.keys():
            assert batch[name][0].tolist() == row[name][first : first + length].tolist()


@pytest.mark.parametrize("side", ["right", "left"])
def test_truncation_keeps_the_frame(side):
    tok = numtok.Tokenizer(config("bert"), [XVal()])
    batch = tok.encode_batch(["The mass 5 is 7 of the sample"], add_special_tokens=True)
    row, options = NumberDataset(batch)[0], {"truncation_side": side, "objective": None}
    made = NumberCollator.from_schema(batch.schema, PAD, max_length=5, **options)([row])
    first, *ids, last = row["input_ids"].tolist()
    inside = ids[:3] if side == "right" else ids[-3:]
    assert made["input_ids"][0].tolist() == [first, *inside, last]


# --- from a tokenizer


def test_from_a_tokenizer():
    tok = numtok.Tokenizer(config("bert"), [XVal(), FloatBits()])
    made = NumberCollator.from_tokenizer(tok, "[PAD]", objective="masked", mask_token_id="[MASK]")
    added = {token["content"]: token["id"] for token in tok.config["added_tokens"]}
    assert (made.pad_token_id, made.mask_token_id) == (added["[PAD]"], added["[MASK]"])
    assert made.vocab_size == tok.vocab_size
    assert added["[CLS]"] in made.special_token_ids
    assert made.tokens.ids == (added["[NUM]"],)
    hf = pytest.importorskip("numtok.hf")
    names = {"pad_token": "[PAD]", "mask_token": "[MASK]", "cls_token": "[CLS]"}
    tok = hf.NumberTokenizer.from_tokenizer(trained.stock("bert", **names), numbers=[XVal()])
    of_hf = NumberCollator.from_tokenizer(tok, objective="masked")
    assert (of_hf.pad_token_id, of_hf.mask_token_id) == (made.pad_token_id, made.mask_token_id)
    assert of_hf.tokens == made.tokens and set(tok.all_special_ids) <= {*of_hf.special_token_ids}


def test_rows_of_which_no_tokenizer_is_known_are_taken():
    near, far = tokenizer(XVal()), tokenizer(XVal(0.5))
    rows = [list(NumberDataset(one.encode_batch(["it is 5"]))) for one in (near, far)]
    made = NumberCollator.from_tokenizer(near, 0, objective=None)
    assert made(rows[0])["number_scaled"].max() == 5
    made([dict(row) for row in rows[1]])  # of which nothing is known


def test_collator_can_be_pickled():
    made = NumberCollator.from_tokenizer(
        tokenizer(P10()), 0, objective="masked", mask_token_id=5, seed=1
    )
    again, row = pickle.loads(pickle.dumps(made)), {"input_ids": list(range(100, 140))}
    assert_same(again([row]), {name: tensor.numpy() for name, tensor in made([row]).items()})


@pytest.mark.parametrize(
    "numbers",
    [
        (XVal(), FloatBits(width=64, reciprocal=True), FoNE(6, 4)),
        (FloatBits(width=64, compact=True),),
        (PlaceValue(),),
    ],
)
def test_rows_of_the_hugging_face_tokenizer(numbers):
    """Its dense lists give the batch that the file's rows give."""
    hf = pytest.importorskip("numtok.hf")
    texts = ["It is 28.5 or 10,000", "no number", "7 and -0.5"]
    tok = hf.NumberTokenizer.from_pretrained(None, numbers=list(numbers))
    encoded = tok(texts, return_numbers=True, add_special_tokens=False)
    data = NumberDataset(tok.numtok.encode_batch(texts), tokenizer=tok)
    of_file = NumberCollator.from_schema(data.schema, PAD, objective=None)
    made = NumberCollator.from_tokenizer(tok, PAD, drop=("token_type_ids",), objective=None)
    assert made.tokens == of_file.tokens
    found = made([{name: encoded[name][row] for name in encoded} for row in range(len(texts))])
    assert_same(found, {name: one.numpy() for name, one in of_file(list(data)).items()})


# --- what is lost


def test_a_cut_is_told_once_with_what_is_lost():
    rows = [sparse(([k] * count, [], 0)) for k, count in ((1, 10), (2, 4), (3, 6))]
    made = collator(max_length=5)
    message = r"max_length=5 cuts 2 of the 3 rows .* 30% of its tokens.*block_size=5"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(rows[1:2])  # nothing is cut
    with pytest.warns(UserWarning, match=message) as told:
        made(rows)
    assert [Path(one.filename) for one in told] == [Path(__file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(rows)


@pytest.mark.parametrize(
    "texts",
    [["of -0.30000000000000004 or 0.1", "5e-324"], ["-1", "2"], ["-7.000000000000001", "none"]],
)
@pytest.mark.parametrize("lists", [False, True])
def test_words_of_64_bits_keep_all_of_them(texts, lists):
    """As int64 of the same bits, from a file's arrays and from Python's lists, in which NumPy would
    make floats of words with a sign beside those without.
    """
    encoded = tokenizer(FloatBits(width=64, compact=True)).encode_batch(texts)
    data = encoded.to_pylist() if lists else list(NumberDataset(encoded))
    made = NumberCollator.from_schema(encoded.schema, PAD, objective=None)(data)
    assert made["number_bits"].dtype == torch.int64
    shown = made["number_bits"][made["number_mask"]].view(torch.float64).tolist()
    assert shown == made["number_value"][made["number_mask"]].tolist()
    written = [word for text in texts for word in text.split() if word[-1].isdigit()]
    assert [repr(value).removesuffix(".0") for value in shown] == written


def test_of_numbers_that_begin_in_one_token_the_first_has_the_value(tmp_path):
    """Where numbers stay text, ``10-20`` may be one word of the vocabulary."""
    words = {word: k for k, word in enumerate(["[UNK]", "10-20", "a", "7"])}
    source = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    source.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    source.save(str(tmp_path / "tokenizer.json"))
    tokenizer = numtok.Tokenizer.from_pretrained(tmp_path, "subword")
    rows = NumberDataset(tokenizer.encode_batch(["a 10-20 a 7"]), tokenizer=tokenizer)
    batch = NumberCollator.from_schema(rows.schema, pad_token_id=0, objective=None)([rows[0]])
    assert batch["number_mask"].tolist() == [[False, True, False, True]]
    assert batch["number_value"].tolist() == [[1.0, 10.0, 1.0, 7.0]]
