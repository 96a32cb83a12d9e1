"""Numtok on ``tokenizers`` 1.0: what works gives the ids of 0.23, and what does not says so.

``make next`` runs it.
"""

import json

import pytest
import trained
from engine_oracle import TAKES_ALL, Oracle, check

from benchmarks import drop_in_tokenizers
from benchmarks.corpus import DEFAULT_TOKENIZER, Corpus
from numtok.engines.hf_tokenizers import ADVICE, is_version_1
from numtok.errors import MissingDependencyError, TokenizerError
from numtok.representations import Digits, PlaceValue, Subword
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.train import train_tokenizer

pytestmark = pytest.mark.skipif(not is_version_1(), reason="make next runs it with tokenizers 1.0")
# 1.0 does not read these, or gives them other ids
REFUSED = {"gpt2_prefix_space": "add_prefix_space", "lstrip_token": "after '<right_1>'"}
READ = [kind for kind in [*trained.KINDS, *trained.MORE] if kind not in REFUSED]
TEXTS = [
    "At 5 -3.50 kg, 1,234,567 of 007 (.5e3); <|0.00|> v1.2.3 [NUM] 5 [/NUM]½6",
    "  12  \n\n 3\t4 don't 5's é今年5月 🙂7🙂",
    "no number",
    None,
    "",
    "\U00100000 5 \U00100001 and \ue000 6",
]


@pytest.fixture(scope="module")
def pages(shared):
    with (shared / "corpora" / "wiki.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line)["text"][:6000] for line in lines][::9]


@pytest.mark.parametrize("engine", ["tokenizers", "auto"])
@pytest.mark.parametrize("model", drop_in_tokenizers.builders())
def test_models_have_the_ids_of_the_earlier_version(model, engine, pages):
    """GPT-2, GPT-NeoX, RoBERTa, BERT, T5 and Phi-3, on pages of Wikipedia."""
    corpus = Corpus("wiki", "", pages, None, 0, b"", DEFAULT_TOKENIZER, quick=False)
    config = json.loads(drop_in_tokenizers.builders()[model](corpus).to_str())
    tok = Tokenizer.from_pretrained(_Source(config), [TAKES_ALL], engine=engine)
    for frame in (False, True):
        check(tok, Oracle(tok.config, tok.tokens), pages, frame)


class _Source:
    """A tokenizer.json as a source."""

    def __init__(self, config):
        self.to_str = lambda: json.dumps(config)


@pytest.mark.parametrize("kind", READ)
def test_texts_come_back(kind, tmp_path):
    """By a tokenizer that was saved and loaded, with one token a number and with many."""
    for numbers in ([TAKES_ALL], [PlaceValue(overflow="clip")]):
        Tokenizer(trained.config(kind), numbers, engine="tokenizers").save_pretrained(tmp_path)
        tok = Tokenizer.from_pretrained(tmp_path)
        batch = tok.encode_batch(TEXTS, keep_text=True, add_special_tokens=True)
        assert tok.decode_batch(batch).to_pylist() == TEXTS
        assert batch["number_value"].to_pylist()[1] == [12, 3, 4, 5, 5, 7]


def test_no_warning_is_needed(recwarn):
    for kind in ("bert", "t5"):
        tok = Tokenizer(trained.config(kind), [TAKES_ALL])
        assert tok.engine.name == "tokenizers"
    assert list(recwarn) == []


@pytest.mark.filterwarnings("ignore::numtok.engines.EngineWarning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_it_does_not_read_is_told_with_a_way_out(kind):
    with pytest.raises(TokenizerError, match=REFUSED[kind]) as caught:
        Tokenizer(trained.config(kind), [TAKES_ALL])
    assert ADVICE in str(caught.value)


def test_added_tokens_that_strip_spaces_are_read_where_none_begins_with_a_space():
    """``<right_1>`` has the ids of 0.23 with one form of numbers alone."""
    config = trained.config("lstrip_token")
    tok = Tokenizer(config, [TAKES_ALL], engine="tokenizers", leading_space="separate")
    texts = ["<right_1> 5", "<right_1>5 <left> 6", "a<right_1>  b 7", " 5 <right_1>\n 6"]
    check(tok, Oracle(config, tok.tokens, parse_special=True), texts, parse_special=True)


def test_what_takes_the_earlier_version_says_so(tmp_path):
    bert = Tokenizer(trained.config("bert"), [Subword()])
    gpt2 = Tokenizer(trained.config("gpt2"), [Subword()])
    assert gpt2.encode("a 5").number_index.tolist() == [1]  # the bytes of tokens tell
    calls = [
        lambda: bert.encode("a 5"),
        lambda: train_tokenizer(["some text"], 300),
        lambda: Tokenizer(trained.config("gpt2"), [Digits(3)]).export(tmp_path),
    ]
    for call in calls:
        with pytest.raises(MissingDependencyError, match=r"tokenizers<1\.0"):
            call()
