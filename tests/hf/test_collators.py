"""The data collators of transformers, with and without number streams."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import torch
import transformers
from hf_cases import TEXTS, build_ours, oracle, ours, source
from hf_compare import same

from numtok.representations import FoNE, XVal

PLAIN = ["a few words", "the number of things is not known", "[NUM]"]


def collators(tok: Any) -> dict[str, Any]:
    # random words are drawn from all there are, so they would differ
    fixed = {
        "mask_replace_prob": 1.0,
        "random_replace_prob": 0.0,
    }
    return {
        "padding": transformers.DataCollatorWithPadding(tok, pad_to_multiple_of=4),
        "token classification": transformers.DataCollatorForTokenClassification(tok),
        "sequences": transformers.DataCollatorForSeq2Seq(tok),
        "causal": transformers.DataCollatorForLanguageModeling(tok, mlm=False),
        "masked": transformers.DataCollatorForLanguageModeling(
            tok, mlm=True, mlm_probability=0.5, seed=3, **fixed
        ),
    }


@pytest.mark.parametrize(
    "name", ["padding", "token classification", "sequences", "causal", "masked"]
)
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_collators_without_streams(kind: str, name: str) -> None:
    """On text without numbers as the source; with numbers, ids as the oracle's, padded."""
    labelled = name in ("token classification", "sequences")
    got = []
    for tok in (ours(kind), source(kind)):
        features = [dict(tok(text, return_special_tokens_mask=name == "masked")) for text in PLAIN]
        for one in features if labelled else []:
            one["labels"] = [7] * len(one["input_ids"])
        got.append(dict(collators(tok)[name](features)))
    same(*got)
    tok = ours(kind)
    features = [dict(tok(text)) for text in TEXTS]
    for one in features if labelled else []:
        one["labels"] = [7] * len(one["input_ids"])
    batch = collators(tok)[name](features)
    assert not {"number_value", "number_mask"} & set(batch)
    if name != "masked":
        width = batch["input_ids"].shape[1]
        rows = [
            row.ids + [tok.pad_token_id] * (width - len(row.ids))
            for row in oracle(kind).call(TEXTS).rows
        ]
        assert batch["input_ids"].tolist() == rows


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["padding", "token classification", "sequences"])
def test_collators_with_streams(name: str, side: str) -> None:
    """Those that only pad take the streams along."""
    numbers = (XVal(), FoNE(6, 4, overflow="clip"))
    tok = build_ours("bert", numbers, return_numbers=True)
    tok.padding_side = side
    features = [dict(tok(text)) for text in TEXTS]
    for one in features if name != "padding" else []:
        one["labels"] = [7] * len(one["input_ids"])
    batch = collators(tok)[name](features)
    padded = tok(
        TEXTS,
        padding=True,
        pad_to_multiple_of=4 if name == "padding" else None,
        return_tensors="pt",
    )
    for key in ("input_ids", "number_value", "number_mask", "number_scaled", "number_fourier"):
        assert torch.equal(batch[key], padded[key]), key
    assert batch["number_value"].dtype == torch.float64 and batch["number_mask"].dtype == torch.bool
