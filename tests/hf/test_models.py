"""Stock models, ``generate`` and pipelines take the drop-in tokenizer as they take its source."""

from __future__ import annotations

import copy
import functools
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import torch
import transformers
from hf_cases import TEXTS, ours, source
from transformers import BertConfig, GPT2Config

from numtok.representations import NUM

PLAIN = ["a few words", "the number of things is not known", "[NUM]"]


@functools.lru_cache(4)
def gpt2_model(size: int) -> Any:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=size,
        n_positions=64,
        n_embd=8,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=None,
    )
    return transformers.GPT2LMHeadModel(config).eval()


def bert_model(kind: Any, size: int, **options: Any) -> Any:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=size,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        **options,
    )
    return kind(config).eval()


def test_a_stock_model_takes_the_batch() -> None:
    """``model(**tok(...))`` and ``model.generate(**tok(...))``, as always."""
    tok = ours("roberta")
    model = gpt2_model(len(tok))
    batch = tok(TEXTS, padding=True, padding_side="left", return_tensors="pt")
    assert set(batch) == {"input_ids", "attention_mask"}
    assert model(**batch).logits.shape == (*batch["input_ids"].shape, len(tok))
    pieces: list[str] = []

    class Streamer(transformers.TextStreamer):
        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            pieces.append(text)

    one = tok(TEXTS[0], return_tensors="pt")
    generated = model.generate(
        **one,
        max_new_tokens=8,
        do_sample=False,
        streamer=Streamer(tok, skip_prompt=True),
        pad_token_id=tok.pad_token_id,
    )
    assert "".join(pieces) == tok.decode(generated[0][one["input_ids"].shape[1] :])
    assert model.generate(
        **batch,
        max_new_tokens=2,
        pad_token_id=tok.pad_token_id,
        tokenizer=tok,
        stop_strings=["zzz"],
    ).shape[0] == len(TEXTS)


@pytest.mark.filterwarnings("ignore")
def test_text_generation_pipeline() -> None:
    # the pipeline changes their padding side
    tok, stock = (
        copy.deepcopy(ours("roberta")),
        copy.deepcopy(source("roberta")),
    )
    model = gpt2_model(len(stock))  # writes no numbers
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": tok.pad_token_id}
    results = [
        transformers.pipeline("text-generation", model=model, tokenizer=one)(PLAIN[:2], **options)
        for one in (tok, stock)
    ]
    assert results[0] == results[1]
    number = transformers.pipeline("text-generation", model=gpt2_model(len(tok)), tokenizer=tok)(
        TEXTS[0], return_full_text=False, **options
    )
    batch = tok(TEXTS[0], return_tensors="pt")
    whole = gpt2_model(len(tok)).generate(**batch, **options)[0]
    assert (
        number[0]["generated_text"].strip()
        == tok.decode(whole[batch["input_ids"].shape[1] :], skip_special_tokens=True).strip()
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strategy", ["none", "simple", "first"])
def test_token_classification_pipeline(strategy: str) -> None:
    """It lives on offsets and word ids: the places of numbers are those in the text."""
    tok, stock = copy.deepcopy(ours("bert")), copy.deepcopy(source("bert"))
    model = bert_model(transformers.BertForTokenClassification, len(tok), num_labels=3)
    made = [
        transformers.pipeline(
            "token-classification", model=model, tokenizer=one, aggregation_strategy=strategy
        )
        for one in (tok, stock)
    ]
    assert made[0](PLAIN[:2]) == made[1](PLAIN[:2])
    text = "from 1,234 to -7.5 or so"
    found = made[0](text, ignore_labels=[])
    spans = {text[one["start"] : one["end"]] for one in found}
    assert strategy != "none" or {"1,234", "-7.5"} <= spans
    assert all(one["end"] <= len(text) for one in found) and max(
        one["end"] for one in found
    ) == len(text)


@pytest.mark.filterwarnings("ignore")
def test_fill_mask_pipeline() -> None:
    tok, stock = copy.deepcopy(ours("bert")), copy.deepcopy(source("bert"))
    model = bert_model(transformers.BertForMaskedLM, len(stock))
    results = [
        transformers.pipeline("fill-mask", model=model, tokenizer=one)("the [MASK] of it")
        for one in (tok, stock)
    ]
    assert results[0] == results[1]
    wide = bert_model(transformers.BertForMaskedLM, len(tok))
    filled = transformers.pipeline("fill-mask", model=wide, tokenizer=tok)("the [MASK] of 5")
    assert all(NUM in one["sequence"] for one in filled)
