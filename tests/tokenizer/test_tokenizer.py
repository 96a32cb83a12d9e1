"""The tokenizer as a whole: round trips, what is saved, where it can come from, and what happens to
numbers that do not fit.
"""

import copy
import itertools
import json
import pickle
import time
import warnings
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trained
from effort import examples
from hostile import many_rows
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kept import kept
from tokenizers import AddedToken
from tokenizers import Tokenizer as Source

import numtok
from numtok import Grammar
from numtok.arrays import memory
from numtok.arrays.text_rows import TextRows
from numtok.errors import (
    MissingDependencyError,
    TokenizerError,
)
from numtok.representations import (
    END_NUM,
    FP15,
    NUM,
    P10,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    Subword,
    XVal,
)
from numtok.representations.columns import numbers_from_floats
from numtok.tokenizer.inspect import inspect_text
from numtok.tokenizer.number_selection import EncodeReport
from numtok.tokenizer.tokenizer import Tokenizer

REPRESENTATIONS = [
    [XVal()],
    [FloatBits()],
    [FloatBits(compact=True), XVal()],
    [PlaceValue()],
    [Digits(1, brackets=False)],
    [Subword()],
]
MORE = [
    *REPRESENTATIONS,
    [P10()],
    [FP15(digits=2)],
    [Digits(places=True)],
    [FoNE(7, 5, chunk=5, compact=True)],
    [XVal(), FloatBits(compact=True), FoNE(9, 9), ExponentBins(), LogFourier()],
]
FLAGS = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized", "special"], False)
TEXT = "At 5 -3.50 kg, 1,234,567 of 007 (.5e3); <|0.00|> v1.2.3 [NUM] 5 [/NUM]½6"


@kept
def tokenizer(kind, representations, engine="auto"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Tokenizer(trained.config(kind), MORE[representations], engine=engine)


def make(kind="gpt2", *numbers, **options):
    return Tokenizer(trained.config(kind), list(numbers) or [XVal()], **options)


def ids_of(batch):
    return list(batch["input_ids"].to_pylist())


# Round trips


@pytest.mark.parametrize("kind", trained.KINDS)
@pytest.mark.thorough
@settings(max_examples=examples(12, thorough=100))
@given(many_rows, st.integers(0, len(MORE) - 1), st.booleans(), st.booleans())
@example(["is -28.5 or 1,234<|endoftext|>", None, "", "  none[NUM]é ", " 7 8  9.25"], 0, True, True)
@example([TEXT, None, " 5 6", "[NUM:602]6", "1e400 -0"], 5, True, False)
@example([" <mask>"], 5, False, True)
@pytest.mark.filterwarnings("ignore::numtok.engines.choose.EngineWarning")
def test_round_trip(kind, documents, numbers, frame, parse_special):
    tok = tokenizer(kind, numbers)
    options = {"add_special_tokens": frame, "parse_special": parse_special}
    batch = tok.encode_batch(documents, keep_text=True, **options)
    decoded = tok.decode_batch(batch)
    assert decoded.type == pa.string()
    assert decoded.to_pylist() == documents
    assert tok.decode_batch(batch.slice(1, 2)).to_pylist() == documents[1:3]
    tok.decode_batch(tok.encode_batch(documents))  # to other text, but to text
    # ids and the surfaces of numbers are all there is, but for the space that <mask> takes along
    if kind in ("gpt2", "llama3") or (kind == "roberta" and not parse_special):
        assert batch["text"].null_count == len(documents)
    for row, text in enumerate(documents[:3]):
        alone = tok.encode_batch([text], keep_text=True, **options)
        assert alone.equals(batch.slice(row, 1), check_metadata=True)


@pytest.mark.parametrize("kind", ["gpt2", "llama3"])
@settings(max_examples=24)
@given(documents=many_rows)
def test_without_text_numbers_become_canonical(kind, documents):
    """The text around numbers stays as it is; a number reads back as its float64, and nothing else
    changes.
    """
    for representations in (0, 1, 2):
        tok = tokenizer(kind, representations)
        numbers = tok.selector.select(TextRows.of(documents)).numbers
        spoken = numbers_from_floats(numbers.to_float64(), "number_value").format()
        expected = [text if text is None else bytearray(text.encode()) for text in documents]
        places = (numbers.document, numbers.start, numbers.stop)
        for row, start, stop, text in reversed([*zip(*places, spoken.to_pylist(), strict=True)]):
            expected[row][start:stop] = text.encode()
        decoded = tok.decode_batch(tok.encode_batch(documents)).to_pylist()
        assert decoded == [text if text is None else text.decode() for text in expected]


# One, and copies


def test_called_measured_shown_and_compared():
    tok, other = make("gpt2", FloatBits(), XVal()), make("gpt2", grammar=Grammar.data())
    encoding = tok("is -28.5 or 7", keep_text=True)
    assert encoding.batch.equals(tok.encode("is -28.5 or 7", keep_text=True).batch)
    assert encoding.number_bits.shape == (2, 32) and "2 numbers" in repr(encoding)
    assert encoding.number_scaled.tolist() == encoding.number_value.tolist() == [-28.5, 7.0]
    assert tok(["a 5", None]).equals(tok.encode_batch(["a 5", None]))
    assert len(tok) == tok.vocab_size == 1 + max(tok.tokens.values())
    assert repr(tok).startswith("Tokenizer([FloatBits(") and f"={len(tok)}" in repr(tok)
    same = make("gpt2", FloatBits(), XVal(), engine="tokenizers")
    assert tok == same and hash(tok) == hash(same) and len({tok, same, other}) == 2
    assert tok != other and tok != "a tokenizer"  # equal if ids are equal
    assert make("gpt2").with_options(XVal(2.0)).encode("4").number_scaled.tolist() == [8.0]


@pytest.mark.parametrize(
    "clone",
    [copy.copy, copy.deepcopy, lambda tok: pickle.loads(pickle.dumps(tok))],
    ids=["copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("kind", ["gpt2", "neox", "bert"])
def test_copies(clone, kind):
    tok = make(kind, XVal(), FloatBits(), grammar=Grammar.data(), leading_space="separate")
    batch = tok.encode_batch([TEXT], keep_text=True, parse_special=True)
    other = clone(tok)
    assert other.fingerprint == tok.fingerprint
    assert other.representations == tok.representations
    assert other.engine.name == tok.engine.name
    again = other.encode_batch([TEXT], keep_text=True, parse_special=True)
    assert again.equals(batch, check_metadata=True)
    assert other.decode_batch(batch).to_pylist() == [TEXT]
    encoding = tok.encode(TEXT)
    assert clone(encoding).batch.equals(encoding.batch, check_metadata=True)


def test_tokenizers_do_not_influence_each_other():
    """The second tokenizer of a process, with other options, leaves the first one as it was, and so
    does the source's dict.
    """
    config = trained.config("gpt2")
    first = Tokenizer(config, [XVal()])
    before, described = first.encode_batch([TEXT]), first.fingerprint
    for numbers in ([PlaceValue()], [FloatBits()], [Subword()]):
        other = Tokenizer(config, numbers, Grammar.data(), leading_space="separate")
        other.encode_batch([TEXT], keep_text=True, parse_special=True)
    assert config == trained.config("gpt2")
    assert first.encode_batch([TEXT]).equals(before, check_metadata=True)
    assert make("gpt2").fingerprint == described


# Literal number tokens


@pytest.mark.parametrize("representations", [*range(len(REPRESENTATIONS)), 5, 6])
@pytest.mark.parametrize("kind", trained.KINDS)
def test_literals_are_text(kind, representations):
    """What looks like one of numtok's tokens in a text is text: it gets no number token, and takes
    no other number's value.
    """
    tok, plain = tokenizer(kind, representations), tokenizer(kind, 4)
    literal = f"{NUM} 5 {NUM}{END_NUM} {END_NUM}6 {NUM}"
    batch = tok.encode_batch([literal, f"{NUM} {NUM}{END_NUM}"], parse_special=False)
    assert batch["number_value"].to_pylist() == [[5.0, 6.0], []]
    first, second = ids_of(batch)
    forms, end = {tok.tokens.get(NUM), tok.tokens.get(f" {NUM}")}, tok.tokens.get(END_NUM)
    assert sum(token in forms for token in first or []) == (2 if NUM in tok.tokens else 0)
    assert (first or []).count(end) == (2 if END_NUM in tok.tokens else 0)
    assert not {*forms, end} & set(second or [])
    # nor do characters that a spelled-out representation adds as tokens (BERT here lacks some)
    texts = ["a_b'c e E , . _ ' - + 0x1F B2B x_3", "[NUM:+] a [NUM:-] b[NUM:", "]", "[NUM:E-]"]
    assert ids_of(tok.encode_batch(texts)) == ids_of(plain.encode_batch(texts))


# Saving and loading


@pytest.mark.parametrize("numbers", ["xval", "digits", "place:bare", "p1000"])
def test_tokenizers_alone_never_read_other_ids(numbers, tmp_path):
    tok = Tokenizer.from_pretrained(numbers=numbers)
    tok.save_pretrained(tmp_path)
    file = tmp_path / "tokenizer.json"
    with pytest.raises(Exception, match=r"Unknown tokenizer version 'numtok: .*pip install numtok"):
        Source.from_file(str(file))
    file.write_text(json.dumps(tok.config))  # as it was saved before
    assert Tokenizer.from_pretrained(tmp_path).fingerprint == tok.fingerprint


def test_tokenizers_alone_read_numbers_that_stay_text(tmp_path):
    tok, file = Tokenizer.from_pretrained(numbers="subword"), str(tmp_path / "tokenizer.json")
    tok.save_pretrained(tmp_path)
    assert Source.from_file(file).encode(TEXT).ids == tok.encode(TEXT).input_ids.tolist()
    # but for a literal [NUM], which is text to numtok alone
    Tokenizer(make().config, Subword(), own=[NUM, f" {NUM}"]).save_pretrained(tmp_path)
    with pytest.raises(Exception, match="Unknown tokenizer version"):
        Source.from_file(file)
    (tmp_path / "numtok.json").unlink()
    with pytest.raises(TokenizerError, match=r"numtok\.json is missing beside it; copy both"):
        Tokenizer.from_pretrained(tmp_path)


def test_fingerprint_tells_tokenizers_apart():
    options = [{}, {"grammar": Grammar.data()}, {"leading_space": "separate"}]
    variants = [make("gpt2", **one) for one in options]
    variants += [make("gpt2", FloatBits()), make("gpt2", XVal(scale=2.0)), make("llama3")]
    assert len({tok.fingerprint for tok in variants}) == len(variants)


# Sources


@pytest.mark.parametrize("kind", ["gpt2", "bert_lower", "t5"])
def test_sources_are_equal(kind, tmp_path):
    transformers = pytest.importorskip("transformers")
    source = trained.source(kind)
    file = tmp_path / "tokenizer.json"
    source.save(str(file))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=source)
    sources = [tmp_path, str(tmp_path), file, str(file), source, fast]
    made = [Tokenizer.from_pretrained(one) for one in sources]
    assert len({tok.fingerprint for tok in made}) == 1
    assert len({str(ids_of(tok.encode_batch([TEXT]))) for tok in made}) == 1


def test_state_of_a_source_does_not_matter():
    """Truncation, padding and the settings of the moment are not part of the tokenizer."""
    source = trained.source("gpt2")
    plain = ids_of(Tokenizer.from_pretrained(source).encode_batch([TEXT, "a"]))
    source.enable_truncation(2)
    source.enable_padding(length=64)
    for engine in ("gigatoken", "tokenizers"):
        tok = Tokenizer.from_pretrained(source, engine=engine)
        assert ids_of(tok.encode_batch([TEXT, "a"])) == plain
    source = trained.source("bert")
    source.enable_padding(length=64)
    framed = Tokenizer.from_pretrained(source).encode_batch(["a"], add_special_tokens=True)
    assert len(framed["input_ids"][0]) == 3


def test_a_name_of_nothing_is_said():  # the tests are offline
    with pytest.raises((TokenizerError, MissingDependencyError), match="nobody/such-a-tokenizer"):
        Tokenizer.from_pretrained("nobody/such-a-tokenizer")


def test_slow_tokenizer_is_refused(tmp_path):
    transformers = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\n")
    slow = transformers.BertJapaneseTokenizer(
        str(tmp_path / "vocab.txt"), do_word_tokenize=False, subword_tokenizer_type="character"
    )
    with pytest.raises(TokenizerError, match=r"BertJapaneseTokenizer.*use_fast=True"):
        Tokenizer.from_pretrained(slow)


def test_ids_in_a_file_with_holes(tmp_path):
    config = trained.config("gpt2")
    config["added_tokens"].append({"id": 900, "content": "<gap_1>", **FLAGS})
    (tmp_path / "tokenizer.json").write_text(json.dumps(config))
    expected = Source.from_str(json.dumps(config)).encode("a <gap_1>").ids
    for engine in ("gigatoken", "tokenizers"):
        tok = Tokenizer.from_pretrained(tmp_path, engine=engine)
        assert ids_of(tok.encode_batch(["a <gap_1>"])) == [expected]
        assert tok.vocab_size == tok.tokens[f" {NUM}"] + 1
        assert len(ids_of(tok.encode_batch(["a 5"]))[0] or []) == 2


@pytest.mark.filterwarnings("ignore::numtok.engines.choose.EngineWarning")
@pytest.mark.parametrize("kind", ["gpt2", "bert", "t5"])
def test_digits_in_a_token_that_wants_a_word_of_its_own(kind):
    source = trained.source(kind)
    source.add_tokens([AddedToken("<9>", single_word=True, normalized=False)])
    tok, own = Tokenizer.from_pretrained(source), source.token_to_id("<9>")
    before = ["", "a ", "(", "a", "é", "_", "1 ", "\u0301", "½"]
    after = ["b", "é", "\u0903", "\u200d"]
    for text in [*(f"{one}<9>" for one in before), *(f"<9>{one}" for one in after), "a <9> b"]:
        is_token = own in source.encode(text).ids
        batch = tok.encode_batch([text, text])
        for row, values in zip(ids_of(batch), batch["number_value"].to_pylist(), strict=True):
            assert (own in (row or [])) == is_token, text
            assert (9.0 in values) != is_token, text


@pytest.mark.parametrize("rows", [["x 7", "77 y"], ["a 12", "3 b"]])
def test_digits_in_a_token_do_not_depend_on_the_row_before(rows):
    source = trained.source("gpt2")
    source.add_tokens([AddedToken(one, normalized=False) for one in ("77", "12", "123")])
    tok = Tokenizer.from_pretrained(source)
    alone = [ids_of(tok.encode_batch([row]))[0] for row in rows]
    assert ids_of(tok.encode_batch(rows)) == alone


# Numbers that do not fit


def test_report():
    tok = make("gpt2")
    batch, report = tok.encode_with_report(["é 5 <|0.00|>", None, "", "v1 6 7"])
    tokens = sum(map(len, filter(None, ids_of(batch))))
    assert report == EncodeReport(4, bytes=19, tokens=tokens, numbers=3, in_added_tokens=1)
    other = EncodeReport(1, 2, 3, 4, {"xval": 1}, {"bits": 2}, 5)
    total = report + other + EncodeReport(left_as_text={"xval": 2, "bits": 1})
    assert total == EncodeReport(5, 21, tokens + 3, 7, {"xval": 3, "bits": 1}, {"bits": 2}, 6)
    assert report.left_as_text == {}  # adding does not write to what is added


# Decoding ids


@pytest.mark.parametrize("kind", ["gpt2", "bert", "metaspace_first"])
def test_decode_ids_with_values(kind):
    tok = make(kind)
    ids = tok.encode("a 5 b 6 c 7").input_ids.tolist()
    assert tok.decode(ids, [-1.5, Decimal("0.10"), "1,000"]) == "a -1.5 b 0.10 c 1000"
    assert tok.decode(np.array(ids, np.uint64), np.array([1, 2, 3])) == "a 1 b 2 c 3"
    assert tok.decode(ids, np.array([0.1, 2, 1e30], np.float32).tolist()).startswith("a 0.1")
    assert tok.decode(ids) == f"a {NUM} b {NUM} c {NUM}" and tok.decode([]) == ""
    for mixed in ([3, -2.0, "2.0"], [np.int64(3), np.float64(-2), Decimal("2.0")]):
        assert tok.decode(ids, mixed) == "a 3 b -2 c 2.0"


# Special tokens


@pytest.mark.parametrize("kind", ["bert", "t5", "metaspace_first", "roberta", "llama3", "gpt2"])
@settings(max_examples=12)
@given(documents=many_rows)
def test_frame(kind, documents):
    """``add_special_tokens`` puts ids around each row, moves every position, and nothing else."""
    for representations in (0, 3):
        tok = tokenizer(kind, representations)
        bare = tok.encode_batch(documents)
        framed = tok.encode_batch(documents, add_special_tokens=True)
        before, after = json.loads(framed.schema.metadata[b"numtok"])["frame"] or ([], [])
        assert bool(before or after) == (kind != "gpt2")
        for row, expected in zip(framed.to_pylist(), bare.to_pylist(), strict=True):
            if expected["input_ids"] is not None:
                places = expected["number_index"]
                expected["number_index"] = [place + len(before) for place in places]
                expected["input_ids"] = [*before, *expected["input_ids"], *after]
                if "place_value" in expected:
                    zeros = [0] * len(before), [0] * len(after)
                    expected["place_value"] = [*zeros[0], *expected["place_value"], *zeros[1]]
            assert row == expected
        assert tok.decode_batch(framed).to_pylist() == tok.decode_batch(bare).to_pylist()
        # nothing lies below a null row
        assert len(framed["input_ids"].values) == sum(map(len, filter(None, ids_of(framed))))


@pytest.mark.parametrize("kind", ["bert", "t5", "metaspace_first", "gpt2"])
def test_ids_that_are_no_tokens_say_nothing(kind):
    """A model may give any: the text, and the numbers in it, are those of the others."""
    tok = tokenizer(kind, 0)
    ids, values = list(tok.encode("12 a 5 b -3").input_ids), [12.0, 5.0, -3.0]
    expected = tok.decode(ids, values)
    assert [number.value for number in numtok.extract(expected)] == [12, 5, -3]
    for place, wrong in zip(range(len(ids) + 1), itertools.cycle([-1, 2**40, -(2**40)])):
        assert tok.decode([*ids[:place], wrong, *ids[place:]], values) == expected


# Size


@pytest.mark.parametrize(
    ("kind", "representations"), [*(("gpt2", k) for k in range(5)), ("metaspace_first", 0)]
)
def test_a_million_digits(kind, representations):
    """In seconds, wherever the number goes: text, digits, or beyond the range."""
    text = "a " + "123456789." + "0123456789" * 100_000 + "e-5 b"
    tok = tokenizer(kind, representations)
    tok.encode_batch(["warm 5"], keep_text=True)
    began = time.process_time()
    batch = tok.encode_batch([text], keep_text=True)
    assert tok.decode_batch(batch).to_pylist() == [text]
    assert time.process_time() - began < 20
    fits = representations != 3  # the places of PlaceValue are int16
    assert batch["number_value"].to_pylist() == ([[1234.5678901234568]] if fits else [[]])


ONE_TOKEN = ["xval", "bits", "bits:64", "fone:6,4", "exponent_bins", "logfourier:8", "xval:log"]


def half_way(single, side, sign):
    """The decimal between this float32 and the next, or a hair's breadth beside it."""
    above = Decimal(float(np.nextafter(single, np.float32(np.inf))))
    this = Decimal(float(single))
    return sign + format((this + above) / 2 + this.scaleb(-30) * side, "f")


half_ways = st.builds(
    half_way,
    st.floats(2**-40, 2**40, width=32).map(np.float32),
    st.sampled_from([-1, 0, 1]),
    st.sampled_from(["", "-"]),
)


@kept
def default_tokenizer(numbers):
    return Tokenizer.from_pretrained(None, numbers)


@pytest.mark.parametrize("numbers", [*ONE_TOKEN, "xval,fone:6,4,bits"])
@settings(max_examples=examples(20))
@given(literals=st.lists(half_ways, min_size=1, max_size=20))
def test_decoded_text_has_the_values_that_it_was_decoded_from(numbers, literals):
    """A number so near to half-way between two float32 that float64 cannot tell may have the other
    one in columns of float32, one step away.
    """
    tok = default_tokenizer(numbers)
    batch = tok.encode_batch(literals)
    again = tok.encode_batch(tok.decode_batch(batch))
    for name in batch.schema.names:
        before, after = (memory.flat(one.column(name))[0] for one in (batch, again))
        if name == "number_bits" and numbers != "bits:64":
            floats = [FloatBits().decode({name: one}).to_float32() for one in (before, after)]
            np.testing.assert_allclose(*np.float64(floats), rtol=2**-23)
        elif name == "number_scaled":
            np.testing.assert_allclose(np.asarray(before), np.asarray(after), rtol=3e-7)
        else:
            assert before.equals(after), name


def test_digits_of_fone_are_better_than_a_float64():
    tok = Tokenizer.from_pretrained(numbers=[XVal(1e-20, 5.0), FoNE(25, 0)])
    text = "it is 1234567890123456789012345 or 7"
    assert tok.decode_batch(tok.encode_batch([text])).to_pylist() == [text]


def test_bytes_under_null_rows_are_no_text():
    offsets, data = pa.py_buffer(np.array([0, 2, 4, 6], np.int32)), pa.py_buffer(b"12345 ")
    array = pa.StringArray.from_buffers(3, offsets, data, pa.py_buffer(b"\x05"), 1)
    assert array.to_pylist() == ["12", None, "5 "]
    batch, report = Tokenizer.from_pretrained().encode_with_report(array)
    assert (report.documents, report.bytes, report.numbers) == (3, 4, 2)
    assert batch.equals(Tokenizer.from_pretrained().encode_batch(["12", None, "5 "]))
    assert numtok.scan(array).rows.nbytes == 4


# Which numbers are taken, and former names


def test_equal_numbers_of_which_only_one_is_taken():
    """The first 9 is in a token of the tokenizer itself: it is not the one that was taken."""
    source = trained.source("gpt2")
    source.add_tokens([AddedToken("<9>", normalized=False)])
    (view,) = inspect_text("a <9> and 9", [Tokenizer.from_pretrained(source)]).views
    assert view.selected == (1,)


# of ExponentBins(50) and the default tokenizer, when its name was "bins"
FORMER = "5c61e0fe5bd3c1c8"
FORMER_TEXT = "It is 12.5 or 3,000"


@pytest.mark.parametrize("numbers", ["bins:50", "exponent_bins:50", ExponentBins(50)])
def test_what_has_the_former_name_is_read(numbers, tmp_path):
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=numbers)
    assert tokenizer.fingerprint == FORMER
    tokenizer.save_pretrained(tmp_path)
    saved = tmp_path / "numtok.json"
    saved.write_text(saved.read_text("utf-8").replace("exponent_bins", "bins"), "utf-8")
    read = numtok.Tokenizer.from_pretrained(tmp_path)
    assert (read.fingerprint, read.representations) == (FORMER, (ExponentBins(50),))

    batch = tokenizer.encode_batch([FORMER_TEXT], keep_text=True)
    described = batch.schema.metadata[b"numtok"].replace(b"exponent_bins", b"bins")
    former = pa.Table.from_batches([batch]).replace_schema_metadata({"numtok": described})
    assert tokenizer.decode_batch(former.to_batches()[0]).to_pylist() == [FORMER_TEXT]
    pq.write_table(former, tmp_path / "former.parquet")
    numtok.decode_files([tmp_path / "former.parquet"], tmp_path / "texts.jsonl")
    assert json.loads((tmp_path / "texts.jsonl").read_text("utf-8")) == {"text": FORMER_TEXT}
