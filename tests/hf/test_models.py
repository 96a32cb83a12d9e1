"""Stock models, ``generate`` and pipelines take the drop-in tokenizer as they take its source."""

import copy
import functools

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import torch
import transformers
from hf_cases import TEXTS, ours, source
from transformers import BertConfig, GPT2Config

PLAIN = ["a few words", "the number of things is not known", "[NUM]"]


@functools.lru_cache(4)
def gpt2_model(size):
    torch.manual_seed(0)
    ends = {"bos_token_id": 0, "eos_token_id": None}
    config = GPT2Config(vocab_size=size, n_positions=64, n_embd=8, n_layer=1, n_head=2, **ends)
    return transformers.GPT2LMHeadModel(config).eval()


def pipelines(task, model, kind, **options):
    """Of ours and of the source; copies, as a pipeline changes their padding side."""
    made = [copy.deepcopy(one) for one in (ours(kind), source(kind))]
    return [transformers.pipeline(task, model=model, tokenizer=one, **options) for one in made]


def bert_model(kind, size, **options):
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    return kind(BertConfig(vocab_size=size, hidden_size=8, **sizes, **options)).eval()


def test_a_stock_model_takes_the_batch():
    """``model(**tok(...))`` and ``model.generate(**tok(...))``, as always."""
    tok = ours("roberta")
    model = gpt2_model(len(tok))
    batch = tok(TEXTS, padding=True, padding_side="left", return_tensors="pt")
    assert set(batch) == {"input_ids", "attention_mask"}
    assert model(**batch).logits.shape == (*batch["input_ids"].shape, len(tok))
    one, pad = tok(TEXTS[0], return_tensors="pt"), {"pad_token_id": tok.pad_token_id}
    streamer = transformers.TextIteratorStreamer(tok, skip_prompt=True)
    written = model.generate(**one, max_new_tokens=8, do_sample=False, streamer=streamer, **pad)
    assert "".join(streamer) == tok.decode(written[0][one["input_ids"].shape[1] :])
    stops = {"tokenizer": tok, "stop_strings": ["zzz"]}
    assert len(model.generate(**batch, max_new_tokens=2, **stops, **pad)) == len(TEXTS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strategy", ["none", "first"])
def test_token_classification_pipeline(strategy):
    """It lives on offsets and word ids: the places of numbers are those in the text."""
    size = len(ours("bert"))
    model = bert_model(transformers.BertForTokenClassification, size, num_labels=3)
    way = {"aggregation_strategy": strategy}
    mine, theirs = pipelines("token-classification", model, "bert", **way)
    assert mine(PLAIN[:2]) == theirs(PLAIN[:2])
    text = "from 1,234 to -7.5 or so"
    found = mine(text, ignore_labels=[])
    spans = {text[one["start"] : one["end"]] for one in found}
    assert strategy != "none" or {"1,234", "-7.5"} <= spans
    assert max(one["end"] for one in found) == len(text)
