"""Copies: by pickle, dill and copy, equal and independent."""

import copy
import pickle

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
from hf_cases import SETTINGS, TEXTS, build_ours
from hf_compare import same


def dilled(tok):
    import dill

    return dill.loads(dill.dumps(tok))


COPIES = {
    "pickle": lambda tok: pickle.loads(pickle.dumps(tok)),
    "dill": dilled,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("settings", ["default", "combined", "spelled"])
def test_copies(settings, way):
    for kind in ("bert", "roberta"):
        tok = build_ours(kind, **SETTINGS[settings])
        # before anything is made on demand
        checks.check_same_tokenizer(tok, COPIES[way](tok), TEXTS)
        checks.check_same_tokenizer(tok, COPIES[way](tok), TEXTS)  # and after
        assert ("number_value" in COPIES[way](tok)("a 5")) == bool(
            SETTINGS[settings].get("return_numbers")
        )


def test_a_deep_copy_is_independent():
    tok = build_ours("bert")
    tok(TEXTS)
    other = copy.deepcopy(tok)
    other.add_tokens(["<9>"])
    other.padding_side = "left"
    assert "<9>" not in tok.get_vocab() and len(other) == len(tok) + 1
    assert tok.padding_side == "right"
    values = [one("<9> 5", return_numbers=True)["number_value"] for one in (tok, other)]
    assert [sum(value != 1 for value in one) for one in values] == [2, 1]


def test_class_may_be_swapped():
    """As serving engines do it: a copy whose class is a subclass made on the spot."""
    tok = build_ours("roberta")
    other = copy.copy(tok)
    other.__class__ = type(
        f"Cached{type(tok).__name__}", (type(tok),), {"get_vocab": lambda self: tok.get_vocab()}
    )
    same(other(TEXTS, return_numbers=True), tok(TEXTS, return_numbers=True))
    assert other.decode(tok(TEXTS[0])["input_ids"]) == tok.decode(tok(TEXTS[0])["input_ids"])
