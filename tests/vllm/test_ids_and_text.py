"""Check what integrations/vllm makes of numbers without vLLM: values in ids, and the text that tokens settle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trained
from hypothesis import example, given
from hypothesis import strategies as st

import numtok
from numtok.errors import RepresentationError, TokenizerError
from numtok.representations import Digits, FloatBits, FoNE, PlaceValue, XVal

pytest.importorskip("transformers")

import itertools

from numtok_vllm.number_ids import FIRST, LAST, NumberIds
from numtok_vllm.tokenizer import NumtokTokenizer

TEXT = "It was -60.2 degrees °C, then 1,230 or so: about 0.5 of 今年 -5"


def tokenizer_of(*numbers: Any) -> numtok.Tokenizer:
    return numtok.Tokenizer.from_pretrained(trained.source("gpt2"), list(numbers))


IDS = {
    "xval": NumberIds(tokenizer_of(XVal())),
    "fone": NumberIds(tokenizer_of(FoNE(4, 2))),
}


@given(
    st.sampled_from(["xval", "fone"]),
    st.booleans(),
    st.integers(-999_999, 999_999),
    st.integers(-134, 133),
    st.integers(0, 1),
)
@example("xval", True, 0, 133, 1)
@example("fone", True, -999_999, -2, 1)
def test_a_number_comes_back_from_its_id(
    kind: str, negative_zero: bool, whole: int, exponent: int, form: int
) -> None:
    ids = IDS[kind]
    value = f"{whole}e{exponent if kind == 'xval' else -2}"
    value = "-0" if whole == 0 and negative_zero else value
    token = ids.tokens[form]
    packed = ids.pack(token, value)
    assert FIRST <= packed < LAST
    back, text = ids.unpack(packed)
    assert back == token == ids.plain([packed])[0]
    both = [numtok.Numbers.parse([one]).to_decimal()[0] for one in (text, value)]
    assert both[0] == both[1] and both[0].is_signed() == both[1].is_signed()


@given(st.sampled_from(["xval", "fone"]), st.integers(0, LAST))
def test_every_id_is_some_token(kind: str, one: int) -> None:
    """Also one that a hostile client makes up."""
    token, value = IDS[kind].unpack(one)
    assert value is None or (numtok.Numbers.parse([value]) and token in IDS[kind].tokens)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("xval", "1234567"), ("xval", "1e140"), ("xval", "1e-135"), ("fone", "0.125")],
)
def test_what_an_id_cannot_carry_is_told(kind: str, value: str) -> None:
    ids = IDS[kind]
    with pytest.raises(RepresentationError, match=f"{value} cannot be sent"):
        ids.pack(ids.tokens[0], value)


@pytest.mark.parametrize("numbers", [FloatBits(), FoNE(6, 4)])
def test_representations_that_hold_more_are_refused(numbers: Any) -> None:
    with pytest.raises(RepresentationError, match="29 bits"):
        NumberIds(tokenizer_of(numbers))


@pytest.mark.parametrize("numbers", [PlaceValue(), Digits(3), FoNE(4, 2)])
def test_text_is_settled_token_by_token(numbers: Any, tmp_path: Path) -> None:
    """As vLLM asks for it: of the first tokens, always more of the same text, numbers whole."""
    tokenizer_of(numbers).save_pretrained(tmp_path)
    tokenizer = NumtokTokenizer.from_pretrained(tmp_path)
    ids = tokenizer.encode(TEXT)
    whole = tokenizer.decode(ids)
    tokens = tokenizer.convert_ids_to_tokens(ids)
    texts = [""]
    for count in range(1, len(ids) + 1):  # vLLM shows nothing that is shorter, or not a character
        text = tokenizer.convert_tokens_to_string(tokens[:count])
        texts.append(texts[-1] if text.endswith("\ufffd") or not text else text)
    assert texts[-1] == whole
    written = [one.value for one in numtok.extract(TEXT)]
    assert [one.value for one in numtok.extract(whole)] == written
    pieces = []
    for before, after in itertools.pairwise(texts):
        assert after.startswith(before)
        pieces.append(after[len(before) :])
    # a sign is a token of the text beside FoNE
    found = [one.text.lstrip("-") for piece in pieces for one in numtok.extract(piece)]
    assert found == [one.text.lstrip("-") for one in numtok.extract(whole)]


def test_special_tokens_are_left_out_if_asked(tmp_path: Path) -> None:
    tokenizer_of(XVal()).save_pretrained(tmp_path)
    tokenizer = NumtokTokenizer.from_pretrained(tmp_path)
    ids = tokenizer.encode("12<|endoftext|>")
    assert tokenizer.decode(ids, skip_special_tokens=True) == "12"
    assert tokenizer.decode(ids) == "12<|endoftext|>"
    assert tokenizer.eos_token_id == ids[-1]


def test_a_folder_without_numbers_is_refused(tmp_path: Path) -> None:
    """Read as numtok reads any source, it would get tokens that its model does not have."""
    trained.source("gpt2").save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(TokenizerError, match="leave out --tokenizer-mode numtok"):
        NumtokTokenizer.from_pretrained(tmp_path)
