"""A tokenizer that is exported: plain ``tokenizers`` gives the ids that numtok gives, numbers are cut
as ``Digits`` cuts them, all other text as the source cuts it; and what cannot be exported says so.
"""

from __future__ import annotations

import json
import re
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
import tokenizers
import trained
from effort import examples
from hostile import MARKS, SPACES, WORDS, texts
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from kept import kept
from tokenizers import pre_tokenizers

from numtok import P10, Digits, Grammar, Subword, Tokenizer, extract, scan
from numtok.errors import NumtokError
from numtok.testing import literals

pytestmark = pytest.mark.filterwarnings("ignore::numtok.engines.choose.EngineWarning")
FORMS = [Digits(1), Digits(3), Digits(3, align="left"), Subword()]
IDS = ["1", "3", "3 left", "subword"]
REVERSIBLE = ["gpt2", "llama3", "gpt4o", "roberta"]  # and no normalizer
# What the cuts depend on: marks and digits in every order.
PIECES = [*"0123456789.,-+−eEx_'() ", "1234567", "0.123456", ".12345", "e-", "12,345.6789"]


PARTS = st.one_of(
    literals(),
    st.sampled_from(PIECES),
    st.sampled_from(PIECES),
    st.sampled_from(SPACES + MARKS + WORDS),
)


class Exported(NamedTuple):
    """A tokenizer that was exported and read back by numtok, by ``tokenizers``; and its source."""

    numtok: Tokenizer
    plain: tokenizers.Tokenizer
    source: tokenizers.Tokenizer
    added: tuple[str, ...]


@kept
def exported(kind, form, grammar=None):
    with TemporaryDirectory() as folder:
        added = Tokenizer(trained.config(kind), [form], grammar).export(folder)
        back = Tokenizer.from_pretrained(folder)
        plain = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    return Exported(back, plain, trained.source(kind), added)


def ids(tokenizer, documents):
    return [one.ids for one in tokenizer.encode_batch(documents, add_special_tokens=False)]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", trained.KINDS)
@settings(max_examples=examples(10, thorough=40))
@given(documents=st.lists(texts, max_size=8), form=st.sampled_from(FORMS))
@example(documents=["-1234567.8901e-10 .12345 B2B <|0.00|>12 [NUM] 1,234"], form=Digits(3))
def test_plain_tokenizers_give_our_ids_and_without_digits_the_sources(kind, documents, form):
    made = exported(kind, form)
    ours = made.numtok.encode_batch(documents, parse_special=True)
    assert ours["input_ids"].to_pylist() == ids(made.plain, documents)
    normalize = made.plain.normalizer.normalize_str if made.plain.normalizer else str
    without = [re.sub("[0-9]", "", document) for document in documents]
    without = [text for text in without if not re.search("[0-9]", normalize(text))]  # NFKC: ½, ²
    assert ids(made.plain, without) == ids(made.source, without)


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS[:3], ids=IDS[:3])
@pytest.mark.parametrize("kind", ["gpt2", "qwen", "bert", "metaspace_first"])
@settings(max_examples=examples(25, thorough=100))
@given(st.lists(PARTS, max_size=12).map("".join))
@example("1234567.8901 (-.12345) wait...12345 F.23456 2.e+3456 x-1234 12..34567 1,23456")
@example("0\x850")
def test_numbers_are_cut_as_digits_cuts_them(kind, form, text):
    plain, spelled = exported(kind, form).plain, form.encode(scan([text]))
    if plain.normalizer is not None:  # as BERT's, which takes out what stands between two digits
        normalized = plain.normalizer.normalize_str(text)
        assume(re.findall("[0-9]+", normalized) == re.findall("[0-9]+", text))
    tokens = plain.encode(text, add_special_tokens=False)
    for row, number in enumerate(extract(text)):
        if not number.text.isascii():
            continue
        found = [
            token
            for token, (start, stop) in zip(tokens.tokens, tokens.offsets, strict=True)
            if start < number.stop and stop > number.start and token != "▁"
        ]
        symbols = spelled.symbols[spelled.offsets[row] : spelled.offsets[row + 1]]
        expected = [form.alphabet[symbol] for symbol in symbols]
        before = text[: number.start][-1:]
        if number.text[0] == "." and before.isalpha():  # as in Chinese: digits of an integer
            continue
        if number.text[0] in "-+" and before.isalpha():
            found, expected = found[1:], expected[1:]
        assert found == expected
    whole = [token for token in tokens.tokens if not token.startswith("<0x")]  # a byte
    assert [token for token in whole if re.search("[0-9]", token) and not token.isdecimal()] == []


@settings(max_examples=examples(20))
@given(kind=st.sampled_from(REVERSIBLE), form=st.sampled_from(FORMS), text=texts)
def test_the_text_comes_back(kind, form, text):
    made = exported(kind, form)
    encoded = made.plain.encode(text, add_special_tokens=False).ids
    assert made.plain.decode(encoded, skip_special_tokens=False) == text
    assert made.numtok.decode(encoded) == text


@pytest.mark.parametrize(
    ("grammar", "tokens"),
    [
        (None, ["1", ".", "234", ",", "5", "678"]),
        (Grammar.european(), ["1", ".", "234", ",", "567", "8"]),
    ],
)
def test_decimal_marks_are_the_grammars(grammar, tokens):
    found = exported("gpt2", Digits(3), grammar).plain.encode("1.234,5678 12345").tokens
    assert found == [*tokens, "Ġ", "12", "345"]


@pytest.mark.parametrize("kind", trained.KINDS)
def test_ids_stay_and_rows_come_behind_them(kind):
    made = exported(kind, Digits(3))
    before, after = made.source.get_vocab(), made.plain.get_vocab()
    assert before.items() <= after.items()
    assert sorted(after.keys() - before.keys()) == sorted(made.added)
    first = max(before.values()) + 1
    assert [after[row] for row in made.added] == [*range(first, first + len(made.added))]
    assert made.numtok.vocab_size == len(after)


def test_gpt2_lacks_223_groups_of_three(gpt2_json, tmp_path):
    added = Tokenizer.from_pretrained(gpt2_json, "digits:3").export(tmp_path)
    assert len(added) == 223 and set(map(len, added)) == {3}


def test_a_row_that_no_merge_makes_gets_one():
    config = trained.config("gpt2")
    vocabulary = config["model"]["vocab"]
    del config["added_tokens"][1:]
    vocabulary["777"] = len(vocabulary)
    with TemporaryDirectory() as folder:
        added = Tokenizer(config, [Digits(3)]).export(folder)
        plain = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    assert "777" not in added and "778" in added
    assert plain.encode("8777").tokens == ["8", "777"]


def test_a_long_run_of_digits_is_no_trap():
    digits = "1" + "234" * 200_000
    found = exported("gpt2", Digits(3)).plain.encode(digits).tokens
    assert found[0] == "1" and set(found[1:]) == {"234"} and len(found) == 200_001


# What is refused, and what a folder keeps


def test_tokenizers_that_cut_digits_themselves_export_single_ones(tmp_path):
    source = trained.source("gpt2")
    cuts = [pre_tokenizers.Digits(individual_digits=True), source.pre_tokenizer]
    source.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    assert Tokenizer.from_pretrained(source, [Digits(1)]).export(tmp_path) == ()


def test_numtoks_own_tokens_do_not_leave(tmp_path):
    Tokenizer(Tokenizer(trained.config("gpt2"), [P10()]).config, [Subword()]).export(tmp_path)
    plain = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert plain.get_vocab() == trained.source("gpt2").get_vocab()


def test_a_folder_keeps_what_transformers_wrote(tmp_path):
    config = tmp_path / "tokenizer_config.json"
    config.write_text('{"eos_token": "<|endoftext|>", "number_settings": {}}', "utf-8")
    Tokenizer.from_pretrained(None, [Digits(1)]).export(tmp_path)
    told = json.loads(config.read_text("utf-8"))
    assert told["eos_token"] == "<|endoftext|>" and "number_settings" not in told
    config.write_text("{", "utf-8")
    with pytest.raises(NumtokError, match="not JSON"):
        Tokenizer.from_pretrained(None, [Digits(1)]).export(tmp_path, overwrite=True)
