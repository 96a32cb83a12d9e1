"""The drop-in with the grammars of the world: numbers found, written back in their marks, and
saved.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

from transformers import AutoTokenizer

from numtok import Grammar
from numtok.engines.tokenizer_json import DEFAULT_FOLDER
from numtok.hf import NumberTokenizer
from numtok.representations import parse


@pytest.mark.parametrize(
    ("grammar", "text", "values"),
    [
        (Grammar.european(), "Es sind 1234,5 kg oder 3,25 kg.", [1234.5, 3.25]),
        (Grammar.swiss(), "Es sind 1’234.5 kg.", [1234.5]),
        (Grammar.indian(), "It is 12,34,567 kg.", [1234567.0]),
    ],
    ids=["european", "swiss", "indian"],
)
@pytest.mark.parametrize("numbers", ["xval", "place"])
def test_found_decoded_and_saved(
    grammar: Grammar, text: str, values: list[float], numbers: str, tmp_path: Path
) -> None:
    tok = NumberTokenizer.from_pretrained(
        DEFAULT_FOLDER, numbers=parse(numbers), grammar=grammar, return_numbers=True
    )
    tok.save_pretrained(tmp_path)
    for one in (tok, AutoTokenizer.from_pretrained(str(tmp_path))):
        encoded = one(text)
        found = [
            value
            for value, mask in zip(encoded["number_value"], encoded["number_mask"], strict=True)
            if mask
        ]
        assert found == values
        decoded = (
            one.decode(encoded["input_ids"], number_value=encoded["number_value"])
            if numbers == "xval"
            else one.decode(encoded["input_ids"])
        )
        assert one(decoded)["number_value"] == encoded["number_value"]
        if grammar.decimal == ",":
            assert decoded == text
