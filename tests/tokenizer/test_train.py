"""Training, and the tokenizer inside the package."""

import json
import re
import subprocess
import sys

import pyarrow as pa
import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

import numtok
from numtok.arrays.text_rows import TextRows
from numtok.tokenizer.tokenizer_json import DEFAULT_FOLDER
from numtok.tokenizer.train import END_OF_TEXT, between_numbers, save_tokenizer, train_tokenizer

DEFAULT = DEFAULT_FOLDER / "tokenizer.json"
TEXTS = [
    f"the {k} red apples of room B{k} cost {k}.{k % 100:02} dollars in 19{k % 100:02}, v1.2.3\n"
    for k in range(300)
]


some_texts = st.none() | st.text(st.sampled_from("ab 0123.,-eé日\n"), max_size=20)


@given(st.lists(some_texts, max_size=8), st.integers(0, 3))
@example(["The 12 apples", None, "cost $3.50,", "7", " 8", "a  9"], 0)
@example(["B2B x-1 -5", "日本5年", "", "end"], 0)
def test_pieces_are_those_of_a_slow_reference(texts, skip):
    expected = []
    for text in texts[skip:]:
        at, pieces = 0, []
        for number in numtok.extract(text or "", numtok.Grammar()):
            before = (text or "")[at : number.start]
            pieces.append(before.removesuffix(" "))
            at = number.stop
        pieces.append((text or "")[at:])
        expected += [part for piece in pieces for part in re.split("[0-9]", piece) if part]
    rows = TextRows.of(pa.array(texts, pa.string()).slice(skip))
    assert between_numbers(rows, numtok.Grammar()) == expected


def default():
    return json.loads(DEFAULT.read_text("utf-8"))


@pytest.mark.parametrize(
    ("config", "sizes", "word"),
    [
        (lambda: train_tokenizer(TEXTS, 400), range(257, 401), "Ġapples"),
        (default, [16_000], "Ġthe"),
    ],
    ids=["trained", "default"],
)
def test_no_merge_has_a_digit(config, sizes, word):
    config = config()
    vocabulary = config["model"]["vocab"]
    assert config["normalizer"] is None and config["decoder"]["type"] == "ByteLevel"
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    assert config["pre_tokenizer"].items() >= byte_level.items()
    assert [token["content"] for token in config["added_tokens"]] == [END_OF_TEXT]
    assert len(vocabulary) in sizes and word in vocabulary
    assert sorted(vocabulary.values()) == list(range(len(vocabulary)))
    assert not [token for token in vocabulary if len(token) > 1 and re.search("[0-9]", token)]
    assert len([token for token in vocabulary if len(token) == 1]) == 256  # every byte
    assert all(isinstance(merge, str) for merge in config["model"]["merges"])


def test_texts_may_be_strings_or_arrow_arrays():
    expected = train_tokenizer(TEXTS, 300)
    arrays = [pa.array(TEXTS[:100]), pa.chunked_array([TEXTS[100:]])]
    assert train_tokenizer(arrays, 300) == expected
    assert train_tokenizer(iter([*TEXTS, pa.array([None], pa.string())]), 300) == expected


def test_training_is_deterministic_across_processes(tmp_path):
    program = (
        "import json, sys; from numtok.tokenizer.train import *;"
        " print(json.dumps(train_tokenizer(json.load(sys.stdin), 500)))"
    )
    made = []
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"}
        run = [sys.executable, "-c", program]
        texts = json.dumps(TEXTS).encode()
        made.append(subprocess.check_output(run, input=texts, env=environment))
    assert made[0] == made[1]


def test_transformers_knows_the_end_token(tmp_path):
    transformers = pytest.importorskip("transformers")
    hf = pytest.importorskip("numtok.hf")
    save_tokenizer(train_tokenizer(TEXTS, 300), tmp_path)
    for load in (transformers.AutoTokenizer, hf.NumberTokenizer):
        loaded = load.from_pretrained(tmp_path)
        assert loaded.eos_token == END_OF_TEXT
        assert loaded.eos_token_id == loaded.convert_tokens_to_ids(END_OF_TEXT)


# The default tokenizer


def test_the_default_tokenizer_loads_everywhere_with_the_same_ids():
    gigatoken = pytest.importorskip("gigatoken")
    text = "The 12 red apples cost $3.50 in 1990; naïve 日本 🎈\n\n  x_3 = v1.2"
    assert DEFAULT.stat().st_size <= 700_000
    expected = tokenizers.Tokenizer.from_file(str(DEFAULT)).encode(text).ids
    assert list(gigatoken.Tokenizer.from_json(DEFAULT.read_text("utf-8")).encode(text)) == expected
    assert tokenizers.Tokenizer.from_file(str(DEFAULT)).decode(expected) == text
    transformers = pytest.importorskip("transformers")
    assert (
        transformers.PreTrainedTokenizerFast(tokenizer_file=str(DEFAULT))(text)["input_ids"]
        == expected
    )
    subword = numtok.Tokenizer.from_pretrained(numbers=[numtok.Subword()])
    assert subword.engine.name == "gigatoken"
    assert subword.encode(text).input_ids.tolist() == expected


@pytest.mark.slow
def test_the_default_tokenizer_is_what_the_documented_command_makes(shared):
    with (shared / "corpora" / "wiki.jsonl").open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    assert train_tokenizer(texts, 16_000) == default()
