"""Rows for the tokens of numbers: each starts from the model's own, in every way a model keeps rows."""

import copy
import itertools
import json
import math

import pretrained
import pytest
import torch
import torch_models as tiny
import trained
import transformers
from places import shared_folder
from torch_models import same

from numtok import Tokenizer
from numtok.representations import P10, Digits, XVal
from numtok_torch import NumberModel, add_number_rows

pytestmark = pytest.mark.filterwarnings("ignore:Could not find a config file:UserWarning")
SOURCE = trained.source("gpt2")


def tokenizer(*numbers):
    return Tokenizer.from_pretrained(SOURCE, list(numbers))


def mean(weight, *tokens):
    return weight[[SOURCE.token_to_id(token) for token in tokens]].mean(0)


def layers(backbone):
    return backbone.get_input_embeddings(), backbone.get_output_embeddings()


@pytest.mark.parametrize("kind", tiny.ALL)
def test_rows_start_as_the_mean_of_what_they_stand_for(kind):
    """Tied or not; the rows that there were stay as they are."""
    known = tokenizer(P10())
    backbone = tiny.backbone(kind, vocab_size=SOURCE.get_vocab_size())
    before = [layer.weight.detach().clone() for layer in layers(backbone)]
    tied = layers(backbone)[0].weight is layers(backbone)[1].weight
    assert tied == (kind not in ("gpt_neox", "llama"))
    started = add_number_rows(backbone, known)
    assert (layers(backbone)[0].weight is layers(backbone)[1].weight) == tied
    assert sorted(started) == sorted(known.own_tokens.values())
    assert len(layers(backbone)[0].weight) >= known.vocab_size == backbone.config.vocab_size
    for layer, weight in zip(layers(backbone), before, strict=True):
        same(layer.weight[: len(weight)], weight, 0, 0)
        for content, number in known.own_tokens.items():
            if content == "[NUM:E-1]":
                ids = SOURCE.encode("E-1", add_special_tokens=False).ids
                same(layer.weight[number], weight[ids].mean(0))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("numbers", [XVal(), Digits(1)])
def test_a_number_begins_like_what_begins_numbers(numbers, tied):
    """With a space like the tokens after a space; where digits follow, like the space alone. A word
    embedding of its own shows a number in one token as a digit.
    """
    source = trained.source("llama3")
    known = Tokenizer.from_pretrained(source, [numbers])
    sizes = {"vocab_size": source.get_vocab_size(), "tie_word_embeddings": tied}
    backbone = tiny.backbone("gpt_neox", **sizes)
    add_number_rows(backbone, known)
    plain = [source.encode(f" {digit}", add_special_tokens=False).ids for digit in range(1, 10)]
    assert all(len(ids) == 2 for ids in plain)  # the space, and the digit
    for layer, at in zip(layers(backbone), (0 if tied else -1, 0), strict=True):
        one_token = numbers == XVal()
        like = [ids[at] for ids in plain] if one_token else [source.token_to_id("Ġ")]
        same(layer.weight[known.tokens[" [NUM]"]], layer.weight[like].mean(0))


def test_a_number_model_starts_the_rows_that_it_adds():
    """And no others: trained ones are not touched."""
    known = tokenizer(Digits(1))
    backbone = tiny.backbone("gpt2", vocab_size=SOURCE.get_vocab_size())
    made = NumberModel(backbone, None, tokenizer=known)
    weight = backbone.get_input_embeddings().weight
    same(weight[known.tokens["[/NUM]"]], mean(weight, "-"))
    with torch.no_grad():
        weight[known.tokens["[/NUM]"]] = 7.0
    again = NumberModel(backbone, None, tokenizer=known, vocab_size=10)  # never fewer
    assert (weight[known.tokens["[/NUM]"]] == 7).all()
    assert made.tokenizer_identity == again.tokenizer_identity is not None
    add_number_rows(again, known)  # which is asked to
    same(weight[known.tokens["[/NUM]"]], mean(weight, "-"))


def test_a_model_whose_trunk_is_called_backbone():
    """As of Mamba, whose output layer is not in it."""
    known = tokenizer(XVal())
    sizes = {"hidden_size": tiny.D, "num_hidden_layers": 1, "state_size": 4}
    config = transformers.MambaConfig(
        vocab_size=SOURCE.get_vocab_size(), tie_word_embeddings=False, **sizes
    )
    backbone = transformers.MambaForCausalLM(config)
    (number, _) = sorted(add_number_rows(backbone, known))
    for layer in layers(backbone):
        assert len(layer.weight) == known.vocab_size
        same(layer.weight[number], mean(layer.weight, *"123456789"))


@pytest.mark.parametrize("way", ["lora", "trained tokens", "whole copies"])
def test_inside_adapters(way):
    """Where peft keeps rows of its own, those are started too; the model says what it would
    without.
    """
    peft = pytest.importorskip("peft")
    known = tokenizer(Digits(1))
    own = sorted(known.own_tokens.values())
    plain = tiny.backbone("llama", vocab_size=SOURCE.get_vocab_size())
    add_number_rows(plain, known)
    options = {
        "lora": {"target_modules": ["q_proj"]},
        "trained tokens": {"target_modules": ["q_proj"], "trainable_token_indices": own},
        "whole copies": {
            "target_modules": ["q_proj"],
            "modules_to_save": ["embed_tokens", "lm_head"],
        },
    }[way]
    backbone = copy.deepcopy(plain)
    with torch.no_grad():
        for layer in layers(backbone):
            layer.weight[own] = 7.0
    adapted = peft.get_peft_model(backbone, peft.LoraConfig(**options))
    assert sorted(add_number_rows(adapted, known)) == own
    ids = torch.tensor([[5, *own, 9]])
    same(adapted(input_ids=ids).logits, plain(input_ids=ids).logits)


@pytest.mark.slow
def test_a_pretrained_model_reads_text_as_well_as_before():
    """SmolLM2 with numbers as digits in brackets, before any training: bits per byte at most a
    quarter more, and its new rows below a perplexity of 200.
    """
    folder = pretrained.smollm2()
    known = Tokenizer.from_pretrained(str(folder), numbers="digits:1")
    plain = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    path = shared_folder() / "corpora" / "wiki.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    with path.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"][:400] for line in itertools.islice(lines, 20, 28)]

    def losses(encode):
        """Of each token, in nats, and which of them are new: (tokens,)."""
        rows = [torch.tensor([[0, *encode(text)]]) for text in texts]
        with torch.no_grad():
            logits = [model(row).logits[0, :-1] for row in rows]
        targets = torch.cat([row[0, 1:] for row in rows])
        found = torch.nn.functional.cross_entropy(torch.cat(logits), targets, reduction="none")
        return found, targets >= len(plain)

    before, _ = losses(lambda text: plain(text, add_special_tokens=False).input_ids)
    add_number_rows(model, known)
    after, new = losses(lambda text: known.encode(text).input_ids.tolist())
    assert float(after.sum() / before.sum()) < 1.25
    assert new.sum() > 20 and math.exp(float(after[new].mean())) < 200
