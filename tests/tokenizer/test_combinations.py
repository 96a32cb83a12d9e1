"""Every representation, and combinations, through the whole tokenizer: on every kind of source,
with both engines, into files and back.
"""

import dataclasses
import json
import re
import subprocess
import sys
import time
import warnings
from decimal import Decimal

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import trained
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import kept
from places import DOCS
from tokenizers import AddedToken
from tokenizers import Tokenizer as Source

import numtok
from benchmarks.spaces import measure
from numtok import Grammar, Numbers
from numtok.errors import RepresentationError
from numtok.representations import (
    B1999,
    FP15,
    P10,
    P1000,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    Subword,
    XVal,
    parse,
)
from numtok.representations.charton import Charton
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.vocabulary import OWN_SYMBOL

CASES = {
    "xval scaled": [XVal(scale=1e-3, clip=5.0)],
    "bits": [FloatBits()],
    "bits compact": [FloatBits(compact=True)],
    "fone": [FoNE(6, 4)],
    "fone compact": [FoNE(6, 4, compact=True)],
    "fone bases": [FoNE(6, 4, bases=(2, 5, 10))],
    "fone chunks compact": [FoNE(7, 5, chunk=5, compact=True)],
    "bins": [ExponentBins()],
    "logfourier": [LogFourier()],
    "place": [PlaceValue()],
    "place lsd": [PlaceValue(order="lsd", max_offset=20, seed=1)],
    "digits": [Digits(places=True)],
    "digits bare": [Digits(3, places=True, brackets=False)],
    "p10": [P10()],
    "p10 decimal": [P10(digits=5, form="decimal")],
    "p1000": [P1000()],
    "b1999": [B1999()],
    "fp15": [FP15(digits=2)],  # with three digits it has 28,802 symbols, see below
    "xval,fone,bits": [XVal(), FoNE(6, 4), FloatBits()],
    "all": [XVal(), FloatBits(compact=True), FoNE(9, 9), ExponentBins(), LogFourier()],
    "subword": [Subword()],
}
TEXT = (
    "At 5 -3.50 kg, 1,234,567 of 007 (.5e3) 5 6; <|0.00|> v1.2.3 [NUM] +7 [/NUM]½6 −0.25 [NUM:+]"
    " [NUM:602]-0 1e400\n\n(-8) 9e-30"
)


def make(kind, *numbers, **options):
    return Tokenizer(trained.config(kind), list(numbers), **options)


@kept
def tokenizer(kind, case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(kind, *CASES[case])


def ids_of(batch):
    return list(batch["input_ids"].to_pylist())


# What numbers become


@pytest.mark.parametrize("case", ["fone", "bins", "xval,fone,bits"])
@pytest.mark.parametrize("kind", ["gpt2", "bert", "metaspace_first"])
def test_sign_stays_in_the_text(kind, case):
    """If one representation lacks it, for all of them; values and surfaces are of what the token
    stands for.
    """
    tok = tokenizer(kind, case)
    documents = ["a -60.5 b", "a - 5", "(−7)", "+3", "5"]
    batch = tok.encode_batch(documents, keep_text=True)
    for name in {"number_value", "number_scaled"} & set(batch.schema.names):
        assert batch[name].to_pylist() == [[60.5], [5.0], [7.0], [3.0], [5.0]]
    assert batch["number_text"].to_pylist() == [["60.5"], ["5"], ["7"], ["3"], ["5"]]
    assert tok.decode_batch(batch).to_pylist() == documents
    minus = make(kind, Subword()).encode("a -").input_ids.tolist()
    assert ids_of(batch)[0][: len(minus)] == minus


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(CASES[case][0], Charton)])
def test_symbols(case):
    """One token per symbol, in two forms where a number begins; adjacent numbers stay apart."""
    tok = tokenizer("gpt2", case)
    first = tok.representations[0]
    assert isinstance(first, Charton)
    ids = tok.encode("5 6-7 8").input_ids.tolist()
    names = {number: content for content, number in tok.tokens.items()}
    spelled = [names.get(token) for token in ids]
    # the minus is text: a sign does not follow a digit
    assert len(ids) == 4 * (first.length or 0) + 1 and spelled.count(None) == 1
    begin = [first.token_strings[symbol] for symbol in first.first_symbols]
    firsts = [name for name in spelled if name and name.strip() in begin]
    assert [name[0] == " " for name in firsts] == [False, True, False, True]
    assert tok.decode(ids) == "5 6-7 8"
    assert len(tok.tokens) == len(first.alphabet) + len(first.first_symbols)
    for other in (make("gpt2", first, leading_space="separate"), make("bert", first)):
        assert len(other.tokens) == len(first.alphabet)
    assert tok.vocab_size == make("gpt2", Subword()).vocab_size + len(tok.tokens)


def test_cut_short_and_out_of_order():
    """What a model may generate: the number so far as its symbols, the rest as the tokens say."""
    tok = make("gpt2", P10())
    ids = tok.encode("is -60.2 and 7").input_ids.tolist()
    begin = ids.index(tok.tokens[" [NUM:-]"])
    for generated, text in [
        (ids, "is -60.2 and 7"),
        (ids[: begin + 3], "is -60"),
        (ids[: begin + 1] + ids[begin:], "is - -60.2 and 7"),
        ([*ids[: begin + 5], tok.tokens["[NUM:7]"]], "is -60.2[NUM:7]"),
        ([tok.tokens["[NUM:+]"], -1, 10**6], "+"),
    ]:
        assert tok.decode(generated) == text
    place = make("gpt2", PlaceValue())
    ids = place.encode("is -60.2 and 7").input_ids.tolist()
    cut = ids[: ids.index(place.tokens["[/NUM]"])]
    assert [place.decode(some) for some in (ids, cut, cut[:-2])] == [
        "is -60.2 and 7",
        "is -60.2",
        "is -60",
    ]


@pytest.mark.parametrize("case", ["p10", "p1000", "b1999", "fp15", "fone", "place", "logfourier"])
@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5"])
@settings(max_examples=examples(5))
@given(data=st.data())
def test_decode_of_garbage(kind, case, data):
    tok = tokenizer(kind, case)
    known = sorted(tok.tokens.values())
    ours = st.sampled_from(known[:40] + known[-40:])
    any_id = st.integers(-(2**31), 2**31 - 1)
    tokens = st.one_of(ours, ours, any_id, st.integers(0, tok.vocab_size))
    text = tok.decode(data.draw(st.lists(tokens, max_size=60)))
    assert text.encode().decode() == text


# Overflow

OVERFLOWS = [  # one number beyond the range of each; what it is clipped to, tests/representations say
    (XVal(), "1e400"),
    (FloatBits(), "-1e400"),
    (FoNE(3, 2), "1234.5"),
    (FoNE(3, 2, compact=True), "-1.255"),
    (P10(), "1e9"),
    (P1000(), "-1e-9"),
    (B1999(), "9.996e8"),
    (FP15(digits=2), "-1e10"),
    (ExponentBins(), "1e7"),
    (LogFourier(), "1e500"),
    (PlaceValue(), "1e40000"),
]


@pytest.mark.parametrize(("representation", "literal"), OVERFLOWS, ids=str)
@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_overflow(kind, representation, literal):
    """Left as text, clipped or refused; counted, and never another number's loss."""

    def policy(overflow):
        return make(kind, dataclasses.replace(representation, overflow=overflow))

    text, counted = f"a {literal} and 2", {representation.name: 1}
    left, report = policy("text").encode_with_report([text], keep_text=True)
    assert left["number_value"].to_pylist() == [[2.0]]
    assert (report.numbers, report.left_as_text, report.clipped) == (2, counted, {})
    assert policy("text").decode_batch(left).to_pylist() == [text]

    clip = policy("clip")
    batch, report = clip.encode_with_report([text], keep_text=True)
    assert (report.numbers, report.left_as_text, report.clipped) == (2, {}, counted)
    assert clip.decode_batch(batch).to_pylist() == [text]
    first, second = numtok.extract(clip.decode(clip.encode(text)).replace("- ", "-"))
    assert second.value == 2
    if isinstance(representation, Charton):  # which has nothing but its tokens
        held = Numbers.parse([literal])
        (nearest,) = (
            clip.representations[0].decode(clip.representations[0].encode(held)).to_pylist()
        )
        assert first.value == Decimal(nearest)

    place = 2 + (text[2] == "-" and not clip.carries_sign)
    with pytest.raises(
        RepresentationError, match=f"document 0, byte {place}: {representation.name} cannot"
    ):
        policy("error").encode_batch([text])


def test_overflow_of_combinations():
    """A number that one cannot hold stays text for all, and is counted once."""
    tok, text = make("gpt2", XVal(), FoNE(3, 2), ExponentBins()), "1e400 -1234 0.00001 -12.5"
    batch, report = tok.encode_with_report([text], keep_text=True)
    assert batch["number_text"].to_pylist() == [["12.5"]]
    assert report.left_as_text == {"xval": 1, "fone": 2}
    assert tok.decode_batch(batch).to_pylist() == [text]
    # 1e400 is in no float64, which decoding needs
    both = make("gpt2", XVal(clip=10.0), FloatBits(overflow="clip"))
    _, report = both.encode_with_report(["11 -1e400 2 10"])
    assert (report.clipped, report.left_as_text) == ({"xval": 1}, {"xval": 1})


# Saving, loading, other representations


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        *(("gpt2", case) for case in CASES),
        *(("neox", "bits"), ("bert", "p10"), ("t5", "digits"), ("llama_legacy", "fone")),
    ],
)
@pytest.mark.filterwarnings("ignore::numtok.engines.choose.EngineWarning")
def test_save_and_load(kind, case, tmp_path):
    options = {"grammar": Grammar.data(), "leading_space": "separate"} if case == "bits" else {}
    tok = make(kind, *CASES[case], **options)
    tok.save_pretrained(tmp_path / "a")
    loaded = Tokenizer.from_pretrained(tmp_path / "a")
    for name in ("representations", "grammar", "leading_space", "fingerprint", "tokens"):
        assert getattr(loaded, name) == getattr(tok, name), name
    expected = tok.encode_batch([TEXT], keep_text=True)
    assert loaded.encode_batch([TEXT], keep_text=True).equals(expected, check_metadata=True)
    own = json.loads((tmp_path / "a" / "numtok.json").read_text())["tokens"]
    assert not any(map(OWN_SYMBOL.fullmatch, own))
    loaded.save_pretrained(str(tmp_path / "b"))
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in "ab"
    )
    stock = {"tokenizer_config.json", "stock_tokenizer.py"} if tok.reads_as_plain else set()
    assert first == second and first.keys() == {"numtok.json", "tokenizer.json"} | stock


@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5"])
def test_one_folder_for_all_representations(kind, tmp_path):
    """Each adds its tokens behind what is there; ids never change, and tokens not in use do not
    turn up in text.
    """
    ids = {}
    chain = [P10(), PlaceValue(), Digits(2), P10(digits=4, decades=(-9, 9))]
    chain += [FoNE(6, 4), B1999(digits=2), FP15(digits=1), Subword()]
    chain += [FP15(digits=1, decades=(-8, 8)), XVal(), P10()]
    source = trained.source(kind)
    plain = make(kind, Subword()).encode_batch([TEXT])
    for step, representation in enumerate(chain):
        tok, slow = (
            Tokenizer.from_pretrained(source, [representation], engine=engine)
            for engine in ("auto", "tokenizers")
        )
        assert {**ids, **tok.tokens} == {**tok.tokens, **ids}
        ids |= tok.tokens
        batch = tok.encode_batch([TEXT], keep_text=True)
        assert tok.decode_batch(batch).to_pylist() == [TEXT]
        # WordPiece forgets spaces
        assert tok.decode_batch(tok.encode_batch(["5 -6"]))[0].as_py().replace("- ", "-") == "5 -6"
        assert slow.encode_batch([TEXT], keep_text=True).equals(batch)
        subword = Tokenizer.from_pretrained(source, [Subword()])
        assert ids_of(subword.encode_batch([TEXT])) == ids_of(plain)
        source = tmp_path / f"{step}"
        tok.save_pretrained(source)
    user = Source.from_str(json.dumps(tok.config))  # a token of the user's behind all of ours
    user.add_tokens([AddedToken("<user_1>", normalized=False, special=False)])
    tok, slow = (
        Tokenizer.from_pretrained(user, [P10()], engine=engine) for engine in ("auto", "tokenizers")
    )
    assert tok.tokens.items() <= ids.items()
    batch, other = (one.encode_batch([f"<user_1> {TEXT}<user_1>"]) for one in (tok, slow))
    assert batch.equals(other, check_metadata=True)
    assert ids_of(batch)[0].count(user.token_to_id("<user_1>")) == 2


def test_fp15_is_fast(tmp_path):
    """28,802 symbols, nearly all of them with a second form: in seconds, small in metadata, one run
    of ids.
    """
    began = time.process_time()
    tok = make("gpt2", FP15())
    tok.save_pretrained(tmp_path)
    loaded = Tokenizer.from_pretrained(tmp_path)
    batch = loaded.encode_batch([TEXT], keep_text=True)
    assert loaded.decode_batch(batch).to_pylist() == [TEXT]
    assert time.process_time() - began < 15  # about 3 on a quiet machine
    assert len(tok.tokens) == 57_604
    assert len(batch.schema.metadata[b"numtok"]) < 600
    assert (tmp_path / "numtok.json").stat().st_size < 600
    first = make("gpt2", Subword()).vocab_size
    symbols = json.loads(batch.schema.metadata[b"numtok"])["symbols"]
    assert symbols == {"plain": [[first, 28_802]], "spaced": [[first + 28_802, 28_802]]}
    assert len(make("bert", FP15()).tokens) == 28_802


# Files


@pytest.mark.parametrize("case", CASES)
def test_files(case, tmp_path):
    """Parquet and memory-mapped Arrow give back the same batch; tensors are not copied."""
    tok = tokenizer("gpt2", case)
    batch = tok.encode_batch([TEXT, None, "", "is -28.5 or 1,234"], keep_text=len(case) % 2 == 0)
    pq.write_table(pa.Table.from_batches([batch]), tmp_path / "a.parquet")
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), batch.schema) as writer:
        writer.write_batch(batch)
    read = pq.read_table(tmp_path / "a.parquet").combine_chunks().to_batches()[0]
    with pa.memory_map(str(tmp_path / "a.arrow")) as mapped:
        before = pa.total_allocated_bytes()
        again = pa.ipc.open_file(mapped).get_batch(0)
        whole = mapped.read_buffer(mapped.size())
        for column in again.columns:
            values = getattr(column, "values", None)
            if isinstance(values, pa.FixedShapeTensorArray):
                dense = values.to_numpy_ndarray()
                address = dense.__array_interface__["data"][0]
                assert whole.address <= address < whole.address + whole.size
                assert dense.shape[1:] == tuple(column.type.value_type.shape)
        assert pa.total_allocated_bytes() - before < 4096  # nothing but bookkeeping
        decoded = tok.decode_batch(batch)
        for one in (read, again):
            assert one.equals(batch)  # Parquet calls the items of a list otherwise
            assert one.schema.metadata == batch.schema.metadata
            assert tok.decode_batch(one).equals(decoded)
            assert tok.decode_batch(one.slice(1, 2)).equals(decoded.slice(1, 2))
            assert tok.decode_batch(one.take(pa.array([3, 1]))).equals(decoded.take([3, 1]))
        del again, whole, values, column


# The shared text


@pytest.mark.parametrize(
    ("numbers", "source", "length"),
    [("xval", "neox_json", 1.0), ("place", "gpt2_json", 4.8), ("p10", "gpt2_json", 5.0)],
)
def test_spaces(numbers, source, length, wiki_texts, request):
    """With two forms a number costs its own tokens and no more, and the text keeps the ids it has
    in context.
    """
    auto, separate = (
        measure(wiki_texts[:6], request.getfixturevalue(source), parse(numbers), mode)
        for mode in ("auto", "separate")
    )
    spread = 0.4 if numbers == "place" else 0.02
    assert abs(auto.tokens_per_number - length) < spread
    assert auto.text_ids_changed < 0.002 < 0.008 < separate.text_ids_changed
    assert separate.tokens_per_number > auto.tokens_per_number + 0.15


# The documentation


@pytest.mark.slow
def test_plots(tmp_path):
    """They can be drawn, are small, and are those that the pages show."""
    pytest.importorskip("matplotlib")
    subprocess.run(
        [sys.executable, str(DOCS / "plots.py"), str(tmp_path)], check=True, capture_output=True
    )
    drawn = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    page = (DOCS / "representations.md").read_text("utf-8")
    others = "".join((DOCS / name).read_text("utf-8") for name in ("start.md", "stats.md"))
    pictures = set(re.findall(r"images/([\w.]+)", others))
    assert set(re.findall(r"\(images/(\S+)\)", page)) == set(drawn)
    # those of the evidence are .svg
    assert pictures | set(drawn) == {path.name for path in (DOCS / "images").glob("*.png")}
    assert sum(drawn.values()) < 300_000
