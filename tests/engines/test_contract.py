"""The ``[NUM]`` contract: ids are those of the source tokenizer with an added token in place of
every number, whatever stands beside it; for each kind of tokenizer, by each engine, held to
``tokenizers`` alone (``engine_oracle``).
"""

import itertools
import json
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import trained
from effort import examples
from engine_oracle import TAKES_ALL, Oracle, check, oracle, tokenizer
from hostile import FRAGMENTS, NORMALISED, NUMBERS, PRIVATE_USE, SPACES, many_rows, triples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numtok.numbers.grammar import Grammar
from numtok.representations import B1999, FP15, NUM, P10, Digits, FoNE, PlaceValue, Subword
from numtok.tokenizer.packing import NumberTokens
from numtok.tokenizer.schema import read_metadata
from numtok.tokenizer.tokenizer import Tokenizer

OWN = re.compile(r" ?\[/?NUM")
# kinds that gigatoken encodes
FAST = [*trained.BYTE_LEVEL, "gpt4o", *trained.SENTENCEPIECE]
KINDS = [*trained.KINDS, "gpt4o"]
ENGINES = [(kind, "tokenizers") for kind in KINDS] + [(kind, "gigatoken") for kind in FAST]
every_engine = pytest.mark.parametrize(("kind", "engine"), ENGINES)

# What may change with what is beside it: marks, spaces of other kinds, added tokens that strip,
# what stands in for a space or a number, line ends.
WORDS = [
    *("a", "don't", "'s", "?!", "5", "-3", "x5", "½", "[NUM]", "_", "\u2581", "a\u2581", "\u2581a", "\U00100000", "\ufdd0"),
    *("é", "e\u0301", "\u0301", "\u0301a", "ﬁ", "İ", "ς", "Å", "×", "Привет", "ʼ", "\u0483", "\u0600", "一", "\u200b", "\u200d", "\ufeff", "🙂"),
    *("<left>", "<right_1>", "<mask>", "<|0.00|>", "<extra_id_7>", "<|reserved_13|>", "</s>", "[SEP]", "<unk>"),
    *("", "", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\x00", "\x85"),
]  # fmt: skip
WHITE = ["   ", " " * 9, " " * 25, " " * 26, " " * 60, "\n    ", "\n\n\t\t", "\r\n\t", " \t "]
WHITE += ["\t" * 20, "    \n  ", ".\n\t\t", "'s\n\n  ", "   \n"]

# Texts that are listed: every two words, every two runs of white space around a number, runs longer
# than any buffer, token or word that a fast way may have in mind
PAIRS = [f"{before} {after}" for before in WORDS for after in WORDS]
AROUND = [f"a {before} b 5 {after} c" for before in WORDS for after in WORDS[::5]]
RUNS = [
    f"{word}{a}{middle}{b}{word}"
    for a, b in itertools.product([*SPACES, *WHITE], repeat=2)
    for word, middle in (("a", "5"), ("=", "-7"), ("1.2.3", "e\u0301"))
]
LONG = [
    f"{before * n}{number}{after * n}"
    for n in (63, 64, 65, 300)
    for number in ("5", "-" + "7" * 33, "12345678.9", "3" * 600)
    for before in ("a", " ", "\n", "=", "é", "½", "ab ")
    for after in ("b", " ", "\n", ".", "²", " ab")
]

# Texts that are drawn: of hostile fragments, of white space and delicate places, of words
pieces = st.one_of(
    st.sampled_from([*SPACES, *WHITE, *NORMALISED, *NUMBERS]),
    st.text(" \t\n\r\x0b\u00a0\u2028", min_size=1, max_size=5),
    st.sampled_from(FRAGMENTS),
)
# with so many runs of spaces that they are no exception, or without
white_rows = st.tuples(
    st.lists(st.lists(pieces, max_size=14).map("".join), min_size=1, max_size=4),
    st.sampled_from([[], ["a  b    c\n" * 40]]),
).map(lambda both: both[0] + both[1])
word_rows = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), max_size=4)
documents_of_any_kind = st.one_of(many_rows, white_rows, word_rows)


def check_with_numbers(tok, reference, documents, **options):
    """Also that every number token is a number's, in order, and none other."""
    batch = check(tok, reference, documents, **options)
    ours = {tok.tokens[NUM], tok.tokens.get(f" {NUM}", -1)}
    for row, spans in zip(batch.to_pylist(), reference.numbers(documents), strict=True):
        ids, index = row["input_ids"], row["number_index"]
        if ids is None:
            assert index is None
        else:
            assert index == [k for k, token in enumerate(ids) if token in ours]
            assert len(index) == len(spans)


# One token a number


@every_engine
def test_contract_of_listed_texts(kind, engine):
    """The texts with private-use characters, of which one stands in for numbers while
    ``tokenizers`` has the text, come back too.
    """
    tok, part = tokenizer(kind, engine), len(kind) % 4
    if engine == "gigatoken":
        texts = [*triples(NUMBERS[::2])[::4], *RUNS[part::4], *LONG[part::4]]
        check_with_numbers(tok, oracle(kind), texts)
    else:
        check_with_numbers(tok, oracle(kind), triples(NUMBERS[1:2])[part::4])
        check(tok, oracle(kind), AROUND)
        check(tok, oracle(kind, parse_special=True), PAIRS[part % 2 :: 2], parse_special=True)
    batch = check(tok, oracle(kind), PRIVATE_USE, keep_text=True)
    assert tok.decode_batch(batch).to_pylist() == PRIVATE_USE


@every_engine
@pytest.mark.thorough
@settings(max_examples=examples(12, thorough=300))
@given(documents_of_any_kind, st.booleans(), st.booleans(), st.booleans())
@example(["a ", "  b"], False, False, False)  # a run of spaces over the end of a row
@example(["a " * 3000, "a   ", "   5", "  b", "a  b    c\n" * 40], False, False, False)
@example(["a\n\n\n5", "(\t\t5", "½5²", "e\u0301\n\t5   5"], False, False, True)
@example(["(年\n5\n", "m²5²", "—\n", "", "\u00a0", "'s"], False, True, False)
@example(["5", "6", " 7", "½", "8½", "9 ", " 10"], True, False, False)
@example(["a 5", " 5", "a  5  6\t 7", "a ", "5"], False, False, True)
@pytest.mark.filterwarnings("ignore::numtok.engines.choose.EngineWarning")
def test_contract(kind, engine, documents, special, frame, separate):
    space = "separate" if separate else "auto"
    tok = tokenizer(kind, engine, leading_space=space)
    options = {"add_special_tokens": frame, "parse_special": special}
    check_with_numbers(tok, oracle(kind, special, space), documents, **options)


@pytest.mark.parametrize("kind", FAST)
@settings(max_examples=examples(12))
@given(documents=many_rows, offset=st.integers(0, 6), length=st.integers(0, 8), large=st.booleans())
def test_engines_agree_on_slices(kind, documents, offset, length, large):
    array = pa.array(["0 9", *documents], pa.large_string() if large else pa.string())
    array = array.slice(offset, length)
    ours, theirs = (
        tokenizer(kind, engine).encode_batch(array) for engine in ("gigatoken", "tokenizers")
    )
    assert ours.equals(theirs, check_metadata=True)
    assert ours.equals(tokenizer(kind, "gigatoken").encode_batch(array.to_pylist()))


@pytest.mark.parametrize("kind", ["gpt2", "neox", "llama3", "qwen", "gpt4o"])
def test_many_rows(kind):
    """Then the text for gigatoken is longer than the given one, by what keeps the rows apart."""
    tok = tokenizer(kind, "gigatoken")
    for row in ("ab", "a\n", "年", "²", "", " a", "a  ", "5", "5²"):
        one = tok.encode(row).input_ids.tolist()
        for count in (2, 63, 1000):
            assert tok.encode_batch([row] * count)["input_ids"].to_pylist() == [one] * count


@pytest.mark.parametrize("lengths", [range(2, 25), (2, 4, 8)])
def test_many_runs_of_white_space(lengths):
    """Runs of all lengths, where those of any length are added tokens, or those of some."""
    config = trained.config("neox")
    words = [token for token in config["added_tokens"] if token["content"].strip()]
    run, first = config["added_tokens"][-1], words[-1]["id"] + 1
    runs = [run | {"content": " " * k, "id": first + n} for n, k in enumerate(lengths)]
    config["added_tokens"] = words + runs
    chance, ends = random.Random(3), ("a", "5", "\n", "-7", "½", "")
    documents = ["a" + "".join(chance.choices(" \t\n", k=12)) + "5" for _ in range(3000)]
    documents += [
        f"{before}{' ' * k}{after}"
        for k in range(80)
        for before, after in itertools.product(ends, repeat=2)
    ]
    tok = Tokenizer(config, [TAKES_ALL], engine="gigatoken")
    check_with_numbers(tok, Oracle(config, tok.tokens), documents)


def test_short_texts_in_threads():
    """gigatoken's quickest call for a short text fails while another thread uses the tokenizer."""
    tok = tokenizer("neox", "gigatoken")
    texts = [f"a {k}\n\t\t{k}  b" for k in range(400)]
    expected = tok.encode_batch(texts)["input_ids"].to_pylist()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: tok.encode(text).input_ids.tolist(), texts)) == expected


# Several tokens a number, or those of the text

SPELLED = [
    PlaceValue(overflow="clip"),
    Digits(overflow="clip"),
    P10(overflow="clip"),
    B1999(digits=2, overflow="clip"),
    FP15(digits=2, overflow="clip"),
]


@every_engine
@pytest.mark.thorough
@settings(max_examples=examples(4, thorough=20))
@given(documents=many_rows, representation=st.sampled_from(SPELLED))
@example(
    documents=["5 6-7 8", " -12.5e-3", "[NUM:+] 5 [NUM:602]6", "-0 0.0"], representation=SPELLED[2]
)
def test_contract_of_spelled_out_numbers(kind, engine, documents, representation):
    """The text around a spelled-out number has the ids that it has around ``[NUM]``; tokens of
    numbers occur in no other way.
    """
    tok, reference = tokenizer(kind, engine, representation), oracle(kind)
    batch = tok.encode_batch(documents)
    names = {number: content for content, number in tok.tokens.items()}
    own = {one for one, name in names.items() if OWN.match(name)} - {*reference.tokens.values()}
    spans, collapsed = NumberTokens.from_metadata(read_metadata(batch.schema)), []
    for row in batch.to_pylist():
        ids, index = row["input_ids"], row["number_index"]
        if ids is None:
            collapsed.append(None)
            continue
        ends = np.full(len(index), len(ids))
        stops = spans.stops(np.array(ids), np.array(index, np.int64), ends).tolist()
        for place, stop in reversed([*zip(index, stops, strict=True)]):
            form = " " * names[ids[place]].startswith(" ") + NUM
            ids[place:stop] = [reference.tokens[form]]
        assert not own & set(ids)
        collapsed.append(ids)
    assert collapsed == reference.encode(documents)


@pytest.mark.parametrize("kind", ["gpt2", "llama3", "bert", "t5", "llama_legacy"])
@settings(max_examples=examples(5))
@given(documents=many_rows)
@example(documents=["5 6-7 8", " -12.5e-3", "a − -3", None, ""])
def test_a_sign_that_is_not_carried_is_text(kind, documents):
    """As if the grammar knew no signs."""
    unsigned = tokenizer(kind, "auto", FoNE(6, 4, overflow="clip"))
    other = tokenizer(kind, "auto", grammar=Grammar(signs=False))
    ids, expected = (one.encode_batch(documents)["input_ids"] for one in (unsigned, other))
    assert ids.to_pylist() == expected.to_pylist()


@every_engine
@settings(max_examples=examples(4))
@given(documents=many_rows)
@example(
    documents=[
        "e\u0301 5, \u212b 7; \u0958 9",
        "a 1",
        "q\u0323\u0307 2 q\u0307\u0323 3 \u0378 4",
        "5\u0301 6",
    ]
)
@example(documents=["हिन्दी 5 는 6 ά 7", "\u2260 8 =\u0338 9 \ufb1d\u05b4 10"])
def test_subword_leaves_text_alone(kind, engine, documents):
    tok, source = tokenizer(kind, engine, Subword()), oracle(kind).plain_source
    batch = tok.encode_batch(documents)
    places = oracle(kind).numbers(documents)
    for text, row, spans in zip(documents, batch.to_pylist(), places, strict=True):
        if text is None:
            assert row["input_ids"] is None and row["number_index"] is None
            continue
        encoding = source.encode(text, add_special_tokens=False)
        assert row["input_ids"] == encoding.ids, repr(text)
        # The token that holds the number's first character; a normalizer that drops characters may
        # leave it without one.
        tokens = [encoding.char_to_token(start) for start, _ in spans]
        for found, expected in zip(row["number_index"], tokens, strict=True):
            assert expected in (found, None), repr(text)


def test_the_places_of_many_numbers_in_a_long_text_take_linear_time():
    """An accent apart from its letter leaves the text to the engine that tells places."""
    text = "e\u0301 " + "it was 1,234.5 m or 7%, " * 20_000
    tok = tokenizer("neox", "gigatoken", Subword())
    started = time.process_time()
    batch = tok.encode_batch([text])
    assert time.process_time() - started < 3
    ids, index = (batch[name][0].values.to_numpy() for name in ("input_ids", "number_index"))
    assert len(index) == 40_000 and len(set(ids[index[::2]])) == 1


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_the_places_of_numbers_in_many_rows_beside_a_long_one(kind):
    """Rows times bytes of the longest are beyond 32 bits."""
    batch = tokenizer(kind, "auto", Subword()).encode_batch(["a 5 " * 30_000, *["a 5"] * 20_000])
    index = batch["number_index"].to_pylist()
    assert len(set(index[0])) == 30_000
    assert index[1:] == [index[0][:1]] * 20_000


# Real tokenizers


@pytest.fixture(scope="module", params=["gpt2_json", "neox_json"])
def real_tokenizers(request):
    path = Path(request.getfixturevalue(request.param))
    fast, slow = (
        Tokenizer.from_pretrained(path, [TAKES_ALL], engine=engine)
        for engine in ("gigatoken", "tokenizers")
    )
    return fast, slow, Oracle(json.loads(path.read_text("utf-8")), fast.tokens)


def test_contract_of_real_tokenizers(real_tokenizers):
    fast, slow, reference = real_tokenizers
    # every pair of fragments around one of four numbers
    check_with_numbers(fast, reference, triples(NUMBERS[1::2])[::8])
    few = triples(NUMBERS[:1])[::8]
    assert fast.encode_batch(few).equals(slow.encode_batch(few), check_metadata=True)


def rows_of(documents, size=2000):
    """Cut the text into rows of that many characters: the other library's time is not linear in the
    length of a row.
    """
    return [text[start : start + size] for text in documents for start in range(0, len(text), size)]


def test_contract_on_wikipedia(real_tokenizers, wiki_texts):
    fast, slow, reference = real_tokenizers
    whole = list(wiki_texts[::40])
    for documents in (rows_of(wiki_texts[::16]), whole):
        batch = check(fast, reference, documents)
    assert batch.equals(slow.encode_batch(whole), check_metadata=True)
