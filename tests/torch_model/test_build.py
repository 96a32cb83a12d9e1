"""NumberModel.build: a model for a data set, without wiring five objects by hand."""

import pytest
import torch
import torch_models as tiny
import trained
import transformers

import numtok
from numtok_torch import NumberDataset, NumberModel
from numtok_torch.model.backbone import word_embedding

TEXTS = [f"Of {n} m at {n / 8} kg, price: {3 * n}\n" for n in range(1, 33)]
PARTS = {
    "xval": ("XValEmbedding", "ScalarHead"),
    "fone:4,3": ("FoNEEmbedding", "FoNEHead"),
    "bits": ("FloatBitsEmbedding", "BitsHead"),
    "logfourier": ("LogFourierEmbedding", "MixtureHead"),
    "place": ("PlaceValueEmbedding", "NoneType"),
    "digits:1": ("NoneType", "NoneType"),
    "digits:1,bare": ("NoneType", "NoneType"),
    "subword": ("NoneType", "NoneType"),
}


def encoded(numbers, source="gpt2"):
    tokenizer = numtok.Tokenizer.from_pretrained(trained.source(source), numbers)
    return NumberDataset(tokenizer.encode_batch(TEXTS), tokenizer=tokenizer), tokenizer


def gpt2():
    torch.manual_seed(0)
    config = transformers.GPT2Config(**tiny.GPT2 | tiny.ENDS | {"n_embd": 32})
    return transformers.GPT2LMHeadModel(config)


@pytest.mark.parametrize("numbers", PARTS)
def test_the_parts_are_those_of_the_representation(numbers):
    data, tokenizer = encoded(numbers)
    model = NumberModel.build(gpt2(), data, tokenizer)
    assert (type(model.embedding).__name__, type(model.head).__name__) == PARTS[numbers]
    assert word_embedding(model.transformer).weight.shape[0] >= tokenizer.vocab_size
    losses = tiny.learn(model.train(), model.collator(list(data)), 12)
    assert losses[-1] < 0.9 * losses[0]


def test_a_head_and_options_may_be_named():
    data, tokenizer = encoded("xval")
    model = NumberModel.build(gpt2(), data, tokenizer, head="quantiles", number_weight=2.0)
    assert type(model.head).__name__ == "QuantileHead" and model.number_weight == 2.0
    started = NumberModel.build(
        gpt2(),
        *encoded("bits"),
        embedding={"zero_init": True},
        head={"head": "scalar", "log": True},
    )
    assert type(started.head).__name__ == "ScalarHead"


def test_a_masked_model_gets_masked_tokens():
    data, tokenizer = encoded("xval", "bert")
    model = NumberModel.build(tiny.backbone("bert"), data, tokenizer)
    batch = model.collator([data[n] for n in range(32)])
    hidden = batch["labels"] != -100
    assert 0 < hidden.float().mean() < 0.5
    assert torch.isfinite(model(**batch).loss)


def test_a_classifier_gets_the_labels_of_its_rows():
    """Padded on the left where it classifies a text by the last token."""
    data, tokenizer = encoded("xval")
    backbone = transformers.GPT2ForSequenceClassification(transformers.GPT2Config(**tiny.GPT2))
    backbone.config.pad_token_id = tiny.PAD
    model = NumberModel.build(backbone, data, tokenizer)
    batch = model.collator([{**data[n], "labels": n % 2} for n in (0, 11, 30)])
    assert batch["labels"].tolist() == [0, 1, 0] and model.collator.padding_side == "left"
    assert torch.isfinite(model(**batch).loss)


@pytest.mark.parametrize("numbers", ["xval", "xval:log", "bits"])
def test_zero_at_the_start_of_a_row_has_finite_gradients_in_a_deep_llama(numbers):
    tokenizer = numtok.Tokenizer.from_pretrained(trained.source("gpt2"), numbers)
    data = NumberDataset(tokenizer.encode_batch(["0 m and 1 kg"]), tokenizer=tokenizer)

    def gradients(**options):
        torch.manual_seed(0)
        sizes = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2}
        config = transformers.LlamaConfig(
            vocab_size=300, num_hidden_layers=30, initializer_range=0.1, **sizes
        )
        backbone = transformers.LlamaForCausalLM(config)
        model = NumberModel.build(backbone, data, tokenizer, **options)
        model(**model.collator([data[0]])).loss.backward()
        return torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])

    assert not gradients(embedding={"nonzero": False}).isfinite().all()  # the published form
    assert gradients().isfinite().all()
    assert gradients(embedding={"zero_init": True}).isfinite().all()
