"""The papers' settings, each held to the line of the paper that says so."""

import torch
import torch_models as tiny
import trained

from numtok import Tokenizer
from numtok.representations import FloatBits, XVal
from numtok_torch import (
    XVAL_MASKING,
    NumberModel,
    embedding_from_schema,
    head_from_schema,
    xval_gpt2,
)
from numtok_torch.data.collator import NumberCollator
from numtok_torch.data.dataset import NumberDataset

TEXTS = ["at 12.5 and 30 is 0.5", "It was -60.2 degrees, then 4.25 or 17", "no number here"] * 8


def data(numbers):
    tokenizer = Tokenizer.from_pretrained(trained.source("bert"), [numbers])
    return tokenizer, NumberDataset(tokenizer.encode_batch(TEXTS))


def xval():
    """Model and batch as in the paper."""
    tokenizer, rows = data(XVal(0.1))
    mask = tokenizer.config["model"]["vocab"]["[MASK]"]
    masking = {"mask_token_id": mask, "seed": 1, **XVAL_MASKING}
    batch = NumberCollator.from_schema(rows.schema, 0, **masking)(list(rows))
    torch.manual_seed(0)
    options = {"bidirectional": True, "token_head": "mlp", "n_positions": 64}
    backbone = xval_gpt2(tokenizer.vocab_size, 16, 2, 2, **options)
    layers = embedding_from_schema(rows.schema, 16), head_from_schema(rows.schema, 16)
    return NumberModel(backbone, *layers).eval(), batch, mask


def test_xval_masks_a_fifth_and_sets_values_to_one():
    """xVal, section 2.1: "if the token being masked is a [NUM] token, we replace the corresponding
    number in h_num with 1"; B.4: "default is 20%".
    """
    _, batch, mask = xval()
    chosen = batch["labels"] != -100
    assert (batch["input_ids"][chosen] == mask).all()
    assert (batch["number_scaled"][chosen] == 1).all()
    assert not batch["number_mask"][chosen].any()
    assert (batch["number_value"][chosen] == 1).all()
    assert 0.1 < chosen.sum() / batch["attention_mask"].sum() < 0.3
    assert batch["number_labels_mask"].any()
    assert (batch["number_scaled_labels"][batch["number_labels_mask"]] != 1).all()


def test_xval_sees_both_sides_and_no_value_that_it_predicts():
    made, batch, _ = xval()
    assert not made.causal
    for name in ("number_scaled_labels", "number_value_labels"):
        other = made(**batch | {name: batch[name] + 3.0})
        assert torch.equal(other.hidden, made(**batch).hidden)  # targets are not seen
    last = {name: stream[:1] for name, stream in batch.items()}
    changed = last | {"input_ids": last["input_ids"].clone()}
    changed["input_ids"][0, int(last["attention_mask"].sum()) - 1] = 9
    # the first token sees the last one
    assert not torch.equal(made(**changed).hidden[0, 0], made(**last).hidden[0, 0])


def test_xval_s_heads_and_losses():
    """Section A: "we promote both heads (number and token) to be MLPs with one hidden layer of
    width equal to the embedding dimension", "we tie this weight to that of the embedding matrix",
    biases "for the number-head and not in the token-head"; both losses count alike."""
    made, batch, _ = xval()
    head = made.backbone.lm_head
    assert head.hidden.weight.shape == (16, 16) and head.hidden.bias is None and head.bias is None
    assert head.weight is made.backbone.transformer.wte.weight
    found = made(**batch)
    torch.testing.assert_close(
        found.logits, torch.nn.functional.gelu(found.hidden @ head.hidden.weight.T) @ head.weight.T
    )
    number = made.head
    assert number.network[0].weight.shape == (16, 16) and number.network[0].bias is not None
    torch.testing.assert_close(found.loss, found.token_loss + found.number_loss)


def test_float_embedding_trains_word_head_and_number_module_only():
    """Floating-Point Embedding, 4.3: "We retrained the classification head and the corresponding
    numerical embedding module of an encoder-only language model while keeping the parameters of the
    language model itself frozen"; 4: "we randomly masked 15% of non-numerical tokens"."""
    tokenizer, rows = data(FloatBits())
    mask = tokenizer.config["model"]["vocab"]["[MASK]"]
    collate = NumberCollator.from_schema(
        rows.schema, 0, objective="masked", mask="words", mask_token_id=mask, seed=1
    )
    batch = collate(list(rows))
    assert not batch["number_labels_mask"].any()
    assert batch["number_mask"].sum() == sum(len(row["number_index"]) for row in rows)
    backbone = tiny.backbone("bert", vocab_size=tokenizer.vocab_size)
    layer = embedding_from_schema(rows.schema, tiny.D)
    made = NumberModel(backbone, layer, freeze_backbone="trunk").train()
    words, output = made.get_input_embeddings().weight, made.get_output_embeddings().weight
    assert output is not words and torch.equal(output, words)
    before = {name: value.detach().clone() for name, value in made.named_parameters()}
    tiny.learn(made, batch, 1)
    changed = {
        name for name, value in made.named_parameters() if not torch.equal(value, before[name])
    }
    assert not [name for name in changed if name.startswith("backbone.bert.")]
    assert changed >= {name for name in before if name.startswith("embedding.")}
    assert not torch.equal(output, words)
