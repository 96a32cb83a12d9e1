"""NumberModel: around five architectures and a plain module, in training, padded, and saved."""

import copy
import math
import warnings

import pytest
import torch
import torch_models as tiny
import transformers
from torch_models import SparseRows, same
from torch_models import number_model as model

from numtok_torch import ModelError, NumberModel, XValEmbedding, xval_gpt2
from numtok_torch.auto import PreTrainedNumberModel
from numtok_torch.data.collator import NumberCollator
from numtok_torch.model.objective import token_loss

EVERY = pytest.mark.parametrize("kind", tiny.ALL)
EMBEDDING_OF = {"scalar": "xval", "mixture": "logfourier", "fone": "fone", "bits": "bits"}
EVERY_KIND_AND_HEAD = pytest.mark.parametrize(
    ("kind", "name"),
    [*((kind, "scalar") for kind in tiny.ALL), *(("gpt2", name) for name in list(tiny.HEADS)[1:])],
)


# What it computes


@EVERY
def test_zero_initialised_embeddings_change_nothing(kind):
    """Bit for bit, with padding on the right as the stock model takes it, and without; nor do they
    change the loss of the tokens.
    """
    stock, batch = tiny.backbone(kind), tiny.padded(tiny.batch(), 0, 3)
    batch["labels"][:, 4] = -100
    layers = tiny.embedding("sum", zero_init=True), tiny.head("scalar")
    made = NumberModel(copy.deepcopy(stock), *layers).eval()
    shown = batch.pop("attention_mask")
    plain = {name: batch[name] for name in ("input_ids", "labels")}
    with torch.no_grad():
        for mask in ({"attention_mask": shown}, {}):
            expected, found = stock(**plain, **mask), made(**batch, **mask)
            assert torch.equal(found.logits, expected.logits)
            same(found.token_loss, expected.loss)


@EVERY_KIND_AND_HEAD
def test_the_number_loss_is_that_of_the_right_hidden_states(kind, name):
    """Causal: of the state one before; else of the state at the number.

    The stock model gives the states, a loop picks them.
    """
    made, batch = model(kind, EMBEDDING_OF[name], name), tiny.batch()
    batch["number_mask"][0, 0] = True
    inputs_embeds = made.embed(batch["input_ids"], batch)
    states = made.backbone(inputs_embeds=inputs_embeds, output_hidden_states=True).hidden_states[-1]
    shift = 1 if kind in tiny.CAUSAL else 0
    places = [
        (r, t) for r in range(3) for t in range(9) if batch["number_mask"][r, t] and t >= shift
    ]
    rows = torch.stack([states[r, t - shift] for r, t in places])
    target = torch.stack([batch[made.head.target][r, t] for r, t in places])
    found = made(**batch)
    same(found.number_loss, made.head.loss(rows, target))
    predicted = torch.full((3, 9), math.nan, dtype=torch.float64)
    for (r, t), value in zip(places, made.head.predict(rows).values, strict=True):
        predicted[r, t] = value
    same(found.number_predictions, predicted)
    same(found.hidden, states)
    assert made.train()(**batch).number_predictions is None


def test_weights_of_the_losses():
    batch = tiny.batch()
    found = model(number_weight=0.25, token_weight=2.0)(**batch)
    same(found.loss, 2.0 * found.token_loss + 0.25 * found.number_loss)
    only = model(head_name=None)(**batch)
    assert only.number_loss is None
    same(only.loss, only.token_loss)
    del batch["labels"]
    found = model()(**batch)
    assert found.token_loss is None
    same(found.loss, found.number_loss)


def test_numbers_without_a_label_are_no_targets():
    """Those of a prompt; a number at the very beginning has nothing before it."""
    made, batch = model(), tiny.batch()
    batch["number_mask"][:, 0] = True
    everything = made(**batch).number_predictions
    assert everything[:, 0].isnan().all()
    batch["labels"][:, :5] = -100
    later = made(**batch).number_predictions
    assert later[:, :5].isnan().all()
    same(later[:, 5:], everything[:, 5:])


@pytest.mark.parametrize("kind", tiny.MASKED)
def test_masked_numbers(kind):
    """Targets are where ``number_labels_mask`` says, in ``S_labels``; what the stream shows there
    does not matter to the target.
    """
    made, batch = model(kind), tiny.batch()
    where = torch.zeros(3, 9, dtype=torch.bool)
    where[0, 2] = where[2, 6] = True
    truth = torch.zeros(3, 9)
    truth[0, 2], truth[2, 6] = 4.0, -1.0
    hidden = batch["number_mask"] & ~where
    found = made(
        **(batch | {"number_mask": hidden}), number_labels_mask=where, number_scaled_labels=truth
    )
    rows = torch.stack([found.hidden[0, 2], found.hidden[2, 6]])
    same(found.number_loss, made.head.loss(rows, torch.tensor([4.0, -1.0])))


@EVERY
def test_padding_never_changes_a_row(kind):
    """Neither its own nor that of a neighbour, on either side, whatever is in the padding."""
    made, batch = model(kind, "sum"), tiny.batch()
    alone = made(**batch)
    for left, right in ((0, 3), (3, 0), (2, 2)):
        found = made(**tiny.padded(batch, left, right))
        for key in ("logits", "hidden", "number_predictions"):
            same(found[key][:, left : left + 9], alone[key], atol=1e-5)
        same(found.loss, alone.loss)
    short = {key: stream[:1, :5] for key, stream in batch.items()}
    own = made(**short)
    for side, place in (((0, 4), slice(0, 5)), ((4, 0), slice(4, 9))):
        first = tiny.padded(short, *side)
        outside = first["attention_mask"] == 0
        first["number_scaled"][outside] = math.nan
        first["input_ids"][outside] = 7  # an id as any other: the mask alone says what is padding
        found = made(**{key: torch.cat([first[key], batch[key][1:]]) for key in batch})
        same(found.logits[0, place], own.logits[0], atol=1e-5)
        same(found.logits[1:], alone.logits[1:], atol=1e-5)


@EVERY
def test_packed_rows_are_as_alone(kind):
    """What the collator's ``pack=True`` gives, by default, to the model as it is by default: each
    row's hidden states are its own, and a number at its beginning follows from nothing.
    """
    streams, lengths = tiny.batch(4, 9, labels=False), [9, 3, 5, 1]
    # each once, so that rows can be found again
    streams["input_ids"] = torch.arange(2, 38).view(4, 9)
    streams["number_mask"][:, 0] = True
    names = ("input_ids", "number_mask", "number_value", "number_scaled", "place_value")
    cut = [
        {k: streams[k][row : row + 1, :length] for k in names} for row, length in enumerate(lengths)
    ]
    rows = [{name: one[0].numpy() for name, one in row.items()} for row in cut]
    made, packing = model(kind), {"max_length": 12, "pack": True, "objective": None}
    batch = NumberCollator(tiny.PAD, **packing)(rows)
    assert batch["input_ids"].shape == (2, 12) and "attention_mask" not in batch
    found, losses = made(**batch), []
    assert found.past_key_values is None
    for row in cut:
        own, ids = made(**row, labels=row["input_ids"]), row["input_ids"][0]
        line, place = (batch["input_ids"] == ids[0]).nonzero()[0].tolist()
        here = line, slice(place, place + len(ids))
        assert torch.equal(batch["input_ids"][here], ids)
        same(found.hidden[here], own.hidden[0], atol=1e-5)
        same(found.number_predictions[here], own.number_predictions[0], atol=1e-5)
        losses += [own.token_loss] * (len(ids) - (kind in tiny.CAUSAL))
    labels = batch["input_ids"].masked_fill(batch["input_ids"] == tiny.PAD, -100)
    same(made(**batch, labels=labels).token_loss, torch.stack(losses).mean())
    seen = NumberCollator(tiny.PAD, pack_attention_mask=True, **packing)(rows)
    # it does make a difference
    assert (made(**seen).hidden - found.hidden).abs().max() > 0.1


@pytest.mark.filterwarnings("ignore:number_scaled reaches:UserWarning")
@pytest.mark.parametrize("kind", tiny.CAUSAL)
def test_huge_values_do_not_make_packed_rows_look_mixed(kind):
    """The first packed batch may hold a number that no loss survives; the next ones may not."""
    made, batch = model(kind), tiny.batch()
    del batch["attention_mask"]
    batch["position_ids"] = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 4]).expand(3, 9)
    expected = made(**batch).loss
    made = model(kind)
    huge = batch | {"number_scaled": torch.full((3, 9), 1.7e38)}
    with pytest.raises(ModelError, match="number_scaled reaches"):
        made(**huge)
    same(made(**batch).loss, expected)


@pytest.mark.parametrize("kind", tiny.ALL)
def test_rows_without_tokens_have_a_loss_of_0(kind):
    """As a batch of one empty document does."""
    made = model(kind).train()
    objective = "causal" if kind in tiny.CAUSAL else None
    row = {name: one[:0] for name, one in SparseRows(1)[0].items()}
    batch = NumberCollator(tiny.PAD, objective=objective)([row, row])
    loss = made(**{"labels": torch.full((2, 1), -100)} | batch).loss
    loss.backward()
    assert loss == 0 and all(not one.grad.any() for one in made.parameters())


# most have layers or masks that ignore positions
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 2, "num_key_value_heads": 2}
OF_EACH_KIND = {
    "Falcon": {},
    "GptOss": EXPERTS | {"head_dim": 8},
    "GraniteMoe": EXPERTS,
    "Lfm2": {"layer_types": ["conv", "full_attention"], "num_key_value_heads": 2},
    "Mamba": {"state_size": 8},
    "Mixtral": EXPERTS,
    "ModernBert": {"local_attention": 4, "cls_token_id": None, "sep_token_id": None},
    "OPT": {"ffn_dim": 32, "word_embed_proj_dim": tiny.D},
}


@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_a_packed_text_is_as_alone_or_refused(name):
    """No model computes it with the text in front of it and says nothing."""
    kind = getattr(transformers, f"{name}For{'MaskedLM' if 'Bert' in name else 'CausalLM'}")
    config = tiny.SIZES | tiny.POSITIONS | tiny.ENDS | OF_EACH_KIND[name]
    made = NumberModel(tiny.lively(kind, kind.config_class(**config)), None).eval()
    ids = torch.arange(2, 14)[None]
    alone = made(ids[:, 7:])
    apart = torch.tensor([[*range(7), *range(5)]])
    if name in ("GraniteMoe", "Mixtral"):
        same(made(ids, position_ids=apart).hidden[:, 7:], alone.hidden, atol=1e-5)
        return
    with pytest.raises(ModelError, match="does not keep the documents of packed rows"):
        made(ids, position_ids=apart)
    together = made(ids, torch.ones_like(ids), apart)  # the way out
    assert (together.hidden[:, 7:] - alone.hidden).abs().max() > 0.1
    same(made(ids, position_ids=torch.arange(12)[None]).hidden, made(ids).hidden)  # one text


def test_a_first_packed_row_leaves_each_part_in_its_mode():
    """Also where some are in evaluation mode, as a user may have frozen them."""
    made = NumberModel(tiny.backbone("gpt2"), None).train()
    made.backbone.transformer.drop.eval()
    before = [module.training for module in made.modules()]
    made(torch.tensor([[2, 3, 4, 5]]), position_ids=torch.tensor([[0, 1, 0, 1]]))
    assert [module.training for module in made.modules()] == before


@EVERY_KIND_AND_HEAD
def test_gradients_reach_every_parameter(kind, name):
    """In a batch without any number too, there of zeros, as DDP waits for each."""
    made, batch = model(kind, EMBEDDING_OF[name], name).train(), tiny.batch()
    made(**batch).loss.backward()
    lost = [key for key, one in made.named_parameters() if one.grad is None or not one.grad.any()]
    # a bias of all keys alike shifts no attention
    assert not [key for key in lost if not key.endswith("key.bias")]
    made.zero_grad(set_to_none=True)
    batch["number_mask"][:] = False
    made(**batch).loss.backward()
    assert not [key for key, one in made.named_parameters() if one.grad is None]
    assert not any(
        one.grad.any() for one in (*made.embedding.parameters(), *made.head.parameters())
    )


def test_a_batch_without_labels_and_numbers_has_no_loss():
    batch = tiny.batch(labels=False) | {"number_mask": torch.zeros(3, 9, dtype=torch.bool)}
    found = model()(**batch)
    assert found.token_loss is None and found.number_loss == 0
    assert token_loss(torch.randn(2, 4, 5), torch.full((2, 4), -100), True) == 0
    for per in ("number", "token"):  # nor has one in a step of a Trainer whose labels are all -100
        found = model(number_loss_per=per)(
            **batch | {"labels": torch.full((3, 9), -100)}, num_items_in_batch=torch.tensor(0)
        )
        assert found.loss == 0
    stock = NumberModel(tiny.backbone("gpt2"), None).eval()
    assert set(stock(batch["input_ids"])) == {"logits", "hidden"}


# What it is made of


@EVERY
@pytest.mark.parametrize("left", [0, 3])
def test_rows_longer_than_the_positions_are_told(kind, left):
    """Padding needs no position on the left, and none at all in RoBERTa."""
    made = model(kind)
    made(**tiny.padded(tiny.batch(2, 64), left, 0))
    if kind in ("gpt_neox", "llama"):  # which have no table of positions
        made(**tiny.batch(2, 70))
        return
    with pytest.raises(ModelError, match=r"65 tokens, but .* 64 positions; make shorter rows"):
        made(**tiny.padded(tiny.batch(2, 65), left, 0))
    packed = {
        name: stream for name, stream in tiny.batch(2, 80).items() if name != "attention_mask"
    }
    positions = torch.arange(80).expand(2, 80)
    made(**packed, position_ids=positions % 40)
    with pytest.raises(ModelError, match="80 tokens"):
        made(**packed, position_ids=positions)


def test_frozen_backbone():
    """It gets no gradient and no dropout; the rest learns, and the loss falls."""
    layers = tiny.embedding("bits"), tiny.head("bits")
    made = NumberModel(tiny.backbone("bert"), *layers, freeze_backbone=True).train()
    assert made.head.training and not any(module.training for module in made.backbone.modules())
    before, batch = copy.deepcopy(made.backbone.state_dict()), tiny.batch()
    batch["labels"][batch["number_mask"]] = -100
    losses = tiny.learn(made, batch, 30, of="token_loss")
    assert losses[-1] < 0.9 * losses[0]
    same(made.backbone.state_dict(), before, 0, 0)
    assert all(one.grad is not None for one in made.embedding.parameters())


def test_causal_is_known():
    encoder = transformers.BertModel(transformers.BertConfig(**tiny.SIZES))
    decoder = transformers.GPTNeoXModel(transformers.GPTNeoXConfig(**tiny.SIZES))
    kinds = [encoder, decoder, tiny.backbone("roberta"), tiny.Plain()]
    assert [NumberModel(one, None).causal for one in kinds] == [False, True, False, True]
    assert NumberModel(encoder, None, causal=True).causal
    for kind in (transformers.BertLMHeadModel, transformers.RobertaForCausalLM):
        config = kind.config_class(**tiny.SIZES)
        config.is_decoder = True
        assert NumberModel(kind(config), None).causal


def test_bare_encoder():
    """Numbers only: no logits, so no labels; every parameter that is trained gets its gradient."""
    encoder = transformers.BertModel(transformers.BertConfig(**tiny.SIZES))
    layers, batch = (tiny.embedding("xval"), tiny.head("scalar")), tiny.batch()
    made = NumberModel(encoder, *layers, token_weight=0.0)
    found = made(**batch)
    assert found.logits is None and found.token_loss is None
    found.loss.backward()
    assert all(one.grad is not None for one in made.parameters() if one.requires_grad)


def test_plain_module(tmp_path):
    torch.manual_seed(0)
    made, batch = NumberModel(tiny.Plain(), tiny.embedding("fone"), tiny.head("fone")), tiny.batch()
    alone = made.eval()(**batch)
    same(made(**tiny.padded(batch, 0, 2)).logits[:, :9], alone.logits)
    alone.loss.backward()
    assert all(one.grad is not None for one in made.parameters())
    assert not hasattr(made, "config")
    made.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="backbone="):
        NumberModel.from_pretrained(tmp_path)
    back = NumberModel.from_pretrained(tmp_path, backbone=tiny.Plain())
    same(back(**batch).loss, alone.loss, 0, 0)
    assert back.backbone.out.weight is back.backbone.words.weight
    automatic = PreTrainedNumberModel.from_pretrained(tmp_path, backbone=tiny.Plain())
    same(automatic(**batch).loss, alone.loss, 0, 0)
    assert not automatic.can_generate()


# xVal's layer and transformer


def test_xval_s_layer_warns_once_and_names_the_way_out():
    def given(value, number=True):
        return {"number_mask": torch.tensor([[number]]), "number_scaled": torch.tensor([[value]])}

    layer, words = XValEmbedding(tiny.D), torch.randn(1, 1, tiny.D)
    with pytest.warns(UserWarning, match=r"number_scaled reaches 6\.02e\+23.*fitted scale.*XVal"):
        layer(words, given(6.02e23))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(words, given(6.02e23))
        layer = XValEmbedding(tiny.D)
        layer(words, given(-999.0))
        layer(words, given(1e30, number=False))
        none = {name: stream[:0] for name, stream in given(1.0).items()}
        assert layer(words[:0], none).shape == (0, 1, tiny.D)


@pytest.mark.parametrize("name", tiny.EMBEDDINGS)
def test_a_backbone_of_float64(name):
    """Whose loss is that of float32, but for its rounding."""
    double = tiny.number_model(tiny.backbone("gpt2").double(), name, "mixture")
    assert double.backbone.dtype == torch.float64
    single = tiny.number_model("gpt2", name, "mixture")
    same(double(**tiny.batch()).loss, single(**tiny.batch()).loss, rtol=1e-4)


def test_a_gpt2_as_xval_starts_it():
    """Weights of standard deviation (2 · fan_in · n_layers)^-1/2, also in GPT-2's own layers, which
    have them the other way round; no bias before and after training; the stock class loads it.
    """
    torch.manual_seed(0)
    gpt2 = xval_gpt2(tiny.VOCAB, 64, 2, 2, n_positions=32, initializer_range=0.3)
    block = gpt2.transformer.h[0]
    for weight, fan_in in ((block.attn.c_attn.weight, 64), (block.mlp.c_proj.weight, 256)):
        assert weight.std().item() == pytest.approx((2 * fan_in * 2) ** -0.5, rel=0.05)
    # tied to the words, which keep theirs
    assert gpt2.lm_head.weight.std().item() == pytest.approx(0.3, rel=0.05)
    gpt2 = xval_gpt2(tiny.VOCAB, tiny.D, 2, 2, n_positions=32)
    made = NumberModel(gpt2, tiny.embedding("xval"), tiny.head("scalar"))
    made(**tiny.batch()).loss.backward()
    torch.optim.AdamW(made.parameters(), lr=0.1, weight_decay=0.1).step()
    biases = [one for name, one in gpt2.named_parameters() if name.endswith("bias")]
    assert len(biases) == 2 * 6 + 1 and not any(one.any() for one in biases)
    transformers.GPT2LMHeadModel(gpt2.config).load_state_dict(gpt2.state_dict())


# In training loops


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_gradient_checkpointing_gives_the_same_gradients(kind):
    made, batch = tiny.still(model(kind, "fone", "fone")), tiny.batch()
    made.train()(**batch).loss.backward()
    expected = {key: one.grad.clone() for key, one in made.named_parameters()}
    made.zero_grad()
    made.gradient_checkpointing_enable()
    assert any(getattr(module, "gradient_checkpointing", False) for module in made.modules())
    made(**batch).loss.backward()
    for key, one in made.named_parameters():
        same(one.grad, expected[key])
    made.gradient_checkpointing_disable()
    assert not any(getattr(module, "gradient_checkpointing", False) for module in made.modules())


@pytest.mark.slow
def test_the_whole_model_can_be_compiled():
    made, batch = tiny.still(model("gpt2", "fone", "fone")), tiny.batch()
    for mode in (True, False):
        found = torch.compile(made.train(mode), backend="eager")(**batch)
        same(found.loss, made(**batch).loss)
