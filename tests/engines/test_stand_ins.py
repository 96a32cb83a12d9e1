"""Text in which digits stand in for numbers: nothing is encoded twice, tables are no heaps of
documents, and the ids are those of ``tokenizers``.
"""

import functools
import itertools
import json
import random
import re
from concurrent.futures import ThreadPoolExecutor

import gigatoken
import new_process
import pytest
import trained
from effort import examples
from engine_oracle import TAKES_ALL, Oracle, check, oracle, tokenizer
from hostile import FRAGMENTS, NORMALISED, NUMBERS, SPACES
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, pre_tokenizers

from numtok.engines.choose import EngineWarning
from numtok.engines.cuts import GPT2, GPT4O, LLAMA3, QWEN2, cuts_at_digits
from numtok.representations import XVal
from numtok.tokenizer.tokenizer import Tokenizer

KINDS = ["gpt2", "neox", "llama3", "qwen", "gpt4o"]
RUNS = ["   ", " " * 9, " " * 25, " " * 26, " " * 60, "\n    ", "\n\n\t\t", "\r\n\t", " \t "]
RUNS += ["\t" * 20, "    \n  ", ".\n\t\t", "'s\n\n  ", "   \n"]
whites = st.text(" \t\n\r\x0b\u00a0\u2028", min_size=1, max_size=5)
pieces = st.one_of(
    st.sampled_from([*SPACES, *RUNS, *NORMALISED, *NUMBERS]), whites, st.sampled_from(FRAGMENTS)
)
texts = st.lists(pieces, max_size=14).map("".join)


@pytest.mark.thorough
@settings(max_examples=examples(100, thorough=400))
@pytest.mark.parametrize("kind", KINDS)
@given(
    documents=st.lists(texts, min_size=1, max_size=4),
    space=st.sampled_from(["auto", "separate"]),
)
@example(documents=["a ", "  b"], space="auto")  # a run of spaces over the end of a row
@example(documents=["a " * 3000, "a   ", "   5", "  b"], space="auto")
@example(documents=["a\n\n\n5", "(\t\t5", "½5²", "e\u0301\n\t5   5"], space="separate")
@example(documents=["(年\n5\n", "m²5²", "—\n", "", "\u00a0", "'s"], space="auto")
@example(documents=["5", "6", " 7", "½", "8½", "9 ", " 10"], space="auto")
@example(documents=["a 5", " 5", "a  5  6\t 7", "a ", "5"], space="separate")
def test_contract_among_white_space_and_delicate_places(kind, documents, space):
    tok = tokenizer(kind, "gigatoken", leading_space=space)
    many = [*documents, "a  b    c\n" * 40]  # so many runs of spaces that they are no exception
    check(tok, oracle(kind, leading_space=space), documents)
    check(tok, oracle(kind, leading_space=space), many)


@pytest.mark.parametrize("kind", ["neox", "gpt4o"])
@pytest.mark.parametrize("leading_space", ["auto", "separate"])
def test_contract_between_every_two_runs(kind, leading_space):
    runs = [*SPACES, *RUNS]
    around = (("a", "5"), ("=", "-7"), ("1.2.3", "e\u0301"))
    documents = [
        f"{word}{a}{middle}{b}{word}"
        for a, b, (word, middle) in itertools.product(runs, runs, around)
    ]
    tok = tokenizer(kind, "gigatoken", leading_space=leading_space)
    check(tok, oracle(kind, leading_space=leading_space), documents)


def test_many_runs_of_white_space():
    chance = random.Random(3)
    documents = ["a" + "".join(chance.choices(" \t\n", k=12)) + "5" for _ in range(6000)]
    tok = Tokenizer(trained.config("neox"), [TAKES_ALL], engine="gigatoken")
    check(tok, oracle("neox"), documents)


def test_added_tokens_with_white_space_are_found():
    """Whatever word or run of spaces they begin or end in."""
    source = trained.source("neox")
    for content in ("\n  <a>", "x é", "<b>\t"):
        source.add_tokens([AddedToken(content, special=False, normalized=True)])
    tok = Tokenizer.from_pretrained(source, [TAKES_ALL], engine="gigatoken")
    documents = ["b\n  <a> 5", "b   <a>5", "ax e\u0301 5", "x  é", "<b>\t5 <b>\t\t7"]
    check(tok, Oracle(json.loads(source.to_str()), tok.tokens), documents)


def test_added_tokens_over_the_edge_of_rows_are_none():
    source = trained.source("gpt2")
    source.add_tokens([AddedToken(one, special=False, normalized=False) for one in ("qa", "ab")])
    tok = Tokenizer.from_pretrained(source, [TAKES_ALL], engine="gigatoken")
    check(tok, Oracle(json.loads(source.to_str()), tok.tokens), ["xq", "ab 5", "", "a", "b qab"])


@pytest.mark.parametrize("absent", ["gigatoken", "awkward"])
def test_what_is_not_installed_is_not_needed(absent, tmp_path):
    """Another platform, or a release that was taken back: other ways give the same ids."""
    program = """
        import sys, warnings
        sys.modules[sys.argv[1]] = None
        import numtok
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tok = numtok.Tokenizer.from_pretrained(None, [numtok.XVal()])
            batch = tok.encode_batch(["a 5\u00b2 b"] * 100)
            tok.encode_batch(["a 5"], parse_special=True)
        print(tok.engine.name, [str(one.message).split(":")[0] for one in caught])
        print(batch["input_ids"].to_pylist())
    """
    named, ids = new_process.run(program, tmp_path, absent).splitlines()
    slow = "using the slower engine 'tokenizers', because gigatoken cannot be imported"
    expected = {"gigatoken": f'tokenizers ["{slow}"]', "awkward": "gigatoken []"}
    assert named == expected[absent]
    tok = Tokenizer.from_pretrained(None, [XVal()])
    assert ids == str(tok.encode_batch(["a 5\u00b2 b"] * 100)["input_ids"].to_pylist())


def test_short_texts_in_threads():
    """gigatoken's quickest call for a short text fails while another thread uses the tokenizer."""
    tok = tokenizer("neox", "gigatoken")
    texts = [f"a {k}\n\t\t{k}  b" for k in range(400)]
    expected = tok.encode_batch(texts)["input_ids"].to_pylist()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: tok.encode(text).input_ids.tolist(), texts)) == expected


# What gigatoken is given


@pytest.fixture
def given_to_gigatoken(monkeypatch):
    """The bytes of each document that gigatoken is given from now on."""
    sizes = []
    source = gigatoken.BytesSource

    def count(documents):
        listed = [documents] if isinstance(documents, bytes) else documents
        listed = listed if isinstance(listed, list) else listed.to_list()
        sizes.extend(len(one if isinstance(one, bytes) else one.encode()) for one in listed)

    def counted(name):
        encode = getattr(gigatoken.Tokenizer, name)

        def encode_and_count(self, documents, *given, **options):
            if not isinstance(documents, source):  # which was counted when it was made
                count(documents)
            return encode(self, documents, *given, **options)

        return encode_and_count

    def counted_source(documents):
        count(documents)
        return source(documents)

    for name in ("encode", "encode_batch", "encode_batch_list", "encode_batch_padded"):
        monkeypatch.setattr(gigatoken.Tokenizer, name, counted(name))
    monkeypatch.setattr(gigatoken, "BytesSource", counted_source)
    return sizes


WORDS = "The quick brown fox jumps over the lazy dog and runs on. " * 20


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        WORDS + "two  spaces " + WORDS,
        WORDS + "cafe\u0301 " + WORDS,
        WORDS + "<|reserved_13|> " + WORDS,
        "if x:\n        return y\n" * 200,
    ],
    ids=["spaces", "mark", "token", "code"],
)
def test_nothing_is_encoded_twice(kind, text, given_to_gigatoken):
    tok = tokenizer(kind, "gigatoken")
    given_to_gigatoken.clear()
    tok.encode_batch([text] * 50)
    assert sum(given_to_gigatoken) <= 50 * (len(text.encode()) + 2)
    assert len(given_to_gigatoken) <= 50 * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_one_document(kind, given_to_gigatoken):
    text = WORDS * 10 + "\n\n\t1990\tname\t-3.5\n\t\t1991\tname\t\t7\n\n\n10 20\t\t 30" * 50
    tok = tokenizer(kind, "gigatoken")
    given_to_gigatoken.clear()
    tok.encode_batch([text] * 20)
    assert len([size for size in given_to_gigatoken if size]) == 1  # the rows too are put together


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("row", ["ab", "a\n", "年", "²", "", " a", "a  ", "5", "5²"])
def test_many_rows(kind, row):
    """Then the text for gigatoken is longer than the given one, by what keeps the rows apart."""
    tok = tokenizer(kind, "gigatoken")
    one = tok.encode(row).input_ids.tolist()
    for count in (2, 63, 1000):
        assert tok.encode_batch([row] * count)["input_ids"].to_pylist() == [one] * count


# What is relied on

characters = st.one_of(
    st.sampled_from([*" \t\n\r'sdABé½/.-_\u0301\u00a0\u2028年"]), st.characters(codec="utf-8")
)
around = st.text(characters, max_size=8)
white = st.text(" \t\n\r\x0b\x0c", max_size=4)


@functools.cache
def cut(pattern):
    pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    return lambda text: [word for word, _ in pre_tokenizer.pre_tokenize_str(text)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pattern", [GPT2, LLAMA3, QWEN2, GPT4O], ids=["gpt2", "llama3", "qwen2", "gpt4o"]
)
@given(before=around, run=white, after=around)
def test_known_patterns_cut_where_it_is_relied_on(pattern, before, run, after):
    words = cut(pattern)
    if before and not before[-1].isspace():
        # between a word and a space
        assert words(f"{before} {after}") == words(before) + words(f" {after}")
    if not after[:1].isnumeric():
        digits = words("7")
        assert words(f"x7{after}") == ["x", *digits, *words(after)]  # around a digit
        if before and not before[-1].isnumeric() and not before[-1].isspace():
            assert words(f"{before}7{after}") == words(before) + digits + words(after)
        # and around a digit with a space, behind anything
        text = before + run
        assert words(f"{text} 7{after}") == words(text) + words(" 7") + words(after)


def test_other_pre_tokenizers_are_not_taken_for_known_ones():
    prefix = '"add_prefix_space": {}'
    for kind in KINDS:
        known = trained.config(kind)["pre_tokenizer"]
        assert cuts_at_digits(known)
        changed = json.dumps(known).replace("|", "|x|", 1)
        changed = changed.replace(prefix.format("false"), prefix.format("true"))
        assert not cuts_at_digits(json.loads(changed))
    assert not cuts_at_digits({"type": "Sequence", "pretokenizers": []})
    assert not cuts_at_digits({"type": "Whitespace"})


THREES = {"type": "Split", "behavior": "Isolated", "invert": False}
THREES |= {"pattern": {"Regex": "[0-9][0-9][0-9]"}}


@pytest.mark.parametrize(
    ("part", "content", "named"),
    [
        ("pre_tokenizer", THREES, "[0-9][0-9][0-9]"),
        ("pre_tokenizer", {"type": "Digits", "individual_digits": True}, "pre_tokenizer"),
        ("normalizer", {"type": "Lowercase"}, "ormalizer"),
    ],
    ids=["falcon", "starcoder", "lowercase"],
)
def test_the_warning_names_the_part_that_gigatoken_cannot_read(part, content, named):
    config = trained.config("gpt2")
    if part == "pre_tokenizer":
        content = {"type": "Sequence", "pretokenizers": [content, config["pre_tokenizer"]]}
    with pytest.warns(EngineWarning, match=re.escape(named)):
        tok = Tokenizer(config | {part: content}, [TAKES_ALL])
    assert tok.engine.name == "tokenizers"
