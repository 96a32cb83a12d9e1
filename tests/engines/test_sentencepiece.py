"""SentencePiece BPE by gigatoken: a control character stands in for each number, and the ids are
those of ``tokenizers``.
"""

import itertools

import pytest
import trained
from effort import examples
from engine_oracle import TAKES_ALL, Oracle, check, tokenizer
from hostile import many_rows
from hypothesis import example, given, settings
from hypothesis import strategies as st

from numtok.representations import Digits
from numtok.tokenizer.tokenizer import Tokenizer

MARK = "\u2581"
PIECES = ["", " ", "  ", "    ", MARK, f" {MARK} ", "a", "the", "s ", "e a", "\n", "\t\n"]
PIECES += ["\x01", "\x02 \x01", "é", "e\u0301", "今年", "🙂", "<unk>", "</s>", "<|0.00|>", "<0x01>"]
ROWS = [f"{a}5{b}-3{c}" for a, b, c in itertools.product(PIECES, repeat=3)]
ROWS += [f"{a}{b} {c}" for a, b, c in itertools.product(PIECES, repeat=3)]


def with_every_split(config):
    """As the files that are made of SentencePiece's: runs of spaces and words with a space behind
    them are tokens, and each token has a merge for every two tokens that it is made of.
    """
    model = config["model"]
    added = [MARK * 2, MARK * 3, MARK * 4, f"s{MARK}", f",{MARK}", f"e{MARK}a"]
    model["vocab"] |= {one: len(model["vocab"]) + k for k, one in enumerate(added)}
    names = (token for token in config["added_tokens"] if token["content"] not in model["vocab"])
    for number, token in enumerate(names, len(model["vocab"])):
        token["id"] = number
    splits = ((one, k) for one in model["vocab"] for k in range(1, len(one)) if one[0] != "<")
    pairs = ([one[:k], one[k:]] for one, k in splits)
    model["merges"] = [pair for pair in pairs if model["vocab"].keys() >= set(pair)]
    return config


@pytest.mark.parametrize("kind", trained.SENTENCEPIECE)
@pytest.mark.parametrize("parse_special", [False, True])
@pytest.mark.parametrize("whole", [False, True], ids=["words", "whole texts"])
def test_contract_with_merges_across_spaces(kind, parse_special, whole):
    config = with_every_split(trained.config(kind))
    if whole and config["pre_tokenizer"]:
        config["pre_tokenizer"]["split"] = False
    tok = Tokenizer(config, [TAKES_ALL])
    assert tok.engine.name == "gigatoken"
    reference = Oracle(config, tok.tokens, parse_special)
    part = len(kind) % 2 * 4 + 2 * whole + parse_special  # an eighth of the rows
    check(tok, reference, ROWS[part::8], parse_special=parse_special)
    for row in ROWS[part::1600]:
        check(tok, reference, [row], parse_special=parse_special)


@pytest.mark.parametrize("kind", trained.SENTENCEPIECE)
@pytest.mark.thorough
@settings(max_examples=examples(15, thorough=200))
@given(documents=many_rows, parse_special=st.booleans())
@example(documents=ROWS[::7], parse_special=False)
@example(
    documents=["5", "", None, "5 6", " 5", f"{MARK}5", "a5", "5\x01", "<|0.00|>5"],
    parse_special=True,
)
def test_numbers_without_brackets_have_the_ids_of_tokenizers(kind, documents, parse_special):
    bare = Digits(1, brackets=False)
    fast, slow = (tokenizer(kind, engine, bare) for engine in ("gigatoken", "tokenizers"))
    ours, theirs = (
        one.encode_batch(documents, parse_special=parse_special) for one in (fast, slow)
    )
    assert fast.engine.name == "gigatoken"
    assert ours.equals(theirs)


def test_a_stand_in_that_a_merge_knows_is_not_taken():
    """The next control character is."""
    config = trained.config("llama_legacy")
    vocabulary = config["model"]["vocab"]
    vocabulary |= {"a<0x01>": len(vocabulary), "\x02": len(vocabulary) + 1}
    config["model"]["merges"] = [["a", "<0x01>"], *config["model"]["merges"]]
    for number, token in enumerate(config["added_tokens"][3:], len(vocabulary)):
        token["id"] = number
    tok = Tokenizer(config, [TAKES_ALL])
    assert tok.engine.name == "gigatoken"
    check(tok, Oracle(config, tok.tokens), ["a5", "a\x015", "a\x025", "a\x035 6"])
