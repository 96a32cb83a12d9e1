"""Models saved beside their base: a few weights, which are the whole model again once they are
loaded onto it.
"""

import pytest
import safetensors.torch
import torch
import torch_models as tiny
import trained
import transformers
from torch_models import SparseRows, same

from numtok import Tokenizer
from numtok.representations import FoNE, XVal
from numtok_torch import (
    ModelError,
    NumberCollator,
    NumberModel,
    add_number_rows,
    embedding_from_schema,
    head_from_schema,
)
from numtok_torch.auto import PreTrainedNumberModel
from numtok_torch.trainer import NumberTrainer

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set:UserWarning"),
    pytest.mark.filterwarnings("ignore:Setting `save_embedding_layers` to:UserWarning"),
]
SOURCE = trained.source("gpt2")
ADAPTED = {"gpt2": "c_attn", "llama": "q_proj", "gpt_neox": "query_key_value"}


@pytest.fixture
def base(tmp_path):
    def make(kind, spare=0, **sizes):
        sizes["vocab_size"] = SOURCE.get_vocab_size() + spare
        folder = tmp_path / f"base {kind}"
        tiny.backbone(kind, **sizes).save_pretrained(folder)
        return folder

    return make


def weights(folder):
    return safetensors.torch.load_file(folder / "model.safetensors")


def tokenizer():
    return Tokenizer.from_pretrained(SOURCE, [XVal(0.1), FoNE(3, 2, compact=True)])


def model(folder, kind, way, made=NumberModel, quantised=None):
    """All of what is new is different from what it starts as."""
    known = tokenizer()
    schema = known.batch_schema()
    backbone = quantised or transformers.AutoModelForCausalLM.from_pretrained(folder)
    options = {}
    if way != "frozen":
        add_number_rows(backbone, known)
    if way.startswith("frozen"):
        options["freeze_backbone"] = True
    else:
        peft = pytest.importorskip("peft")
        rows = (
            {"trainable_token_indices": sorted(known.own_tokens.values())} if "rows" in way else {}
        )
        lora = peft.LoraConfig(target_modules=[ADAPTED[kind]], init_lora_weights=False, **rows)
        backbone = peft.get_peft_model(backbone, lora)
    layers = (
        embedding_from_schema(schema, tiny.D, projection="linear"),
        head_from_schema(schema, tiny.D),
    )
    whole = made(backbone, *layers, tokenizer=known, **options)
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in whole.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return whole.eval()


def batch():
    """With numbers at the tokens of numbers."""
    given = tiny.batch(labels=False)
    number = torch.tensor(tokenizer().tokens["[NUM]"])
    given["input_ids"] = torch.where(given["number_mask"], number, given["input_ids"])
    return given


@pytest.mark.parametrize(
    ("kind", "way", "spare"),
    [
        ("llama", "lora", 0),
        ("gpt2", "lora, rows", 0),
        ("gpt_neox", "frozen", 0),
        ("gpt_neox", "frozen, rows", 64),
        ("gpt_neox", "lora, rows", 0),
    ],
)
def test_what_is_saved_is_loaded_onto_its_base(kind, way, spare, base, tmp_path):
    """With the base found by its folder, or given; tied rows and others, also such as the base has
    and that were started.
    """
    folder = base(kind, spare)
    made = model(folder, kind, way)
    expected = made(**batch())
    made.save_pretrained(tmp_path / "small", base=True)
    assert not [one for one in weights(tmp_path / "small") if "mlp" in one or "wte.w" in one]
    given = transformers.AutoModelForCausalLM.from_pretrained(folder)
    for loaded in (
        NumberModel.from_pretrained(tmp_path / "small"),
        NumberModel.from_pretrained(tmp_path / "small", backbone=given),
        transformers.AutoModelForCausalLM.from_pretrained(
            tmp_path / "small", trust_remote_code=True
        ),
    ):
        found = loaded(**batch())
        same(found.logits, expected.logits)
        same(found.number_predictions, expected.number_predictions)
        assert loaded.tokenizer_identity == made.tokenizer_identity
    loaded.save_pretrained(tmp_path / "small", base=folder)
    same(NumberModel.from_pretrained(tmp_path / "small")(**batch()).logits, expected.logits)
    loaded.save_pretrained(tmp_path / "whole")  # which needs no base any more
    folder.rename(tmp_path / "gone")
    same(NumberModel.from_pretrained(tmp_path / "whole")(**batch()).logits, expected.logits)
    with pytest.raises(ModelError, match=r"base model .* cannot be loaded .*backbone="):
        NumberModel.from_pretrained(tmp_path / "small")


@pytest.mark.parametrize("start", ["pissa", "olora", "gaussian"])
def test_an_adapter_whose_start_changes_the_base_is_loaded_with_it(start, base, tmp_path):
    peft = pytest.importorskip("peft")
    backbone = transformers.AutoModelForCausalLM.from_pretrained(base("llama"))
    lora = peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=start)
    made = NumberModel(peft.get_peft_model(backbone, lora), tiny.embedding("xval")).eval()
    made.save_pretrained(tmp_path / "small", base=True)
    loaded = NumberModel.from_pretrained(tmp_path / "small")
    same(loaded(**tiny.batch()).logits, made(**tiny.batch()).logits)
    small = weights(tmp_path / "small")
    assert any("base_layer" in name for name in small) == (start != "gaussian")
    assert not any("mlp" in name for name in small)


def test_a_state_dict_that_is_given_is_saved_as_the_model_s_own(base, tmp_path):
    made = model(base("gpt2"), "gpt2", "frozen", PreTrainedNumberModel)
    made.save_pretrained(tmp_path / "own")
    made.save_pretrained(tmp_path / "given", state_dict=made.state_dict())
    own, given = weights(tmp_path / "own"), weights(tmp_path / "given")
    assert own.keys() == given.keys() and "_extra_state" not in given


def test_adapters_that_transformers_loaded(base, tmp_path):
    """``load_adapter`` gives a tied output layer a copy of its weights."""
    peft = pytest.importorskip("peft")
    folder = base("llama", tie_word_embeddings=True)

    def grown():
        backbone = transformers.AutoModelForCausalLM.from_pretrained(folder)
        return backbone, {"trainable_token_indices": add_number_rows(backbone, tokenizer())}

    backbone, rows = grown()
    config = peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False, **rows)
    peft.get_peft_model(backbone, config).save_pretrained(tmp_path / "adapter")
    backbone, _ = grown()
    backbone.load_adapter(str(tmp_path / "adapter"))
    made = NumberModel(backbone, tiny.embedding("xval")).eval()
    expected = made(**batch()).logits
    made.save_pretrained(tmp_path / "small", base=True)
    same(NumberModel.from_pretrained(tmp_path / "small")(**batch()).logits, expected, 0, 0)


def test_checkpoints_of_a_model_with_adapters_are_small(base, tmp_path):
    """And go on."""
    folder = base("llama")
    rows = SparseRows(8)
    number = tokenizer().tokens["[NUM]"]
    for row in rows.rows:
        row["input_ids"][row["number_index"]] = number
    finished = []
    for resume in (False, True):
        made = model(folder, "llama", "lora", PreTrainedNumberModel if resume else NumberModel)
        options = {"max_steps": 4, "save_steps": 2, "lr_scheduler_type": "constant"}
        trainer = NumberTrainer(
            made,
            tiny.arguments(tmp_path / "out", **options),
            data_collator=NumberCollator(tiny.PAD, objective="causal"),
            train_dataset=rows,
        )
        checkpoint = tmp_path / "out" / "checkpoint-2"
        trainer.train(resume_from_checkpoint=str(checkpoint) if resume else None)
        assert not [one for one in weights(checkpoint) if "mlp" in one or "embed_tokens" in one]
        finished.append(made.eval()(**batch()).logits)
        loaded = NumberModel.from_pretrained(tmp_path / "out" / "checkpoint-4")
        same(loaded(**batch()).logits, finished[-1])
    same(finished[0], finished[1], 1e-4, 1e-4)


def test_what_is_pushed_is_small_too(base, tmp_path, monkeypatch):
    """Where others find its base. (The hub is a folder, of this machine and of another.)"""
    folder = base("llama")
    made = model(folder, "llama", "lora", PreTrainedNumberModel)

    def uploaded(self, repo_id, **options):
        self.save_pretrained(tmp_path / repo_id, max_shard_size="50GB")
        return repo_id

    monkeypatch.setattr(transformers.utils.PushToHubMixin, "push_to_hub", uploaded)
    with pytest.raises(ModelError, match="is a folder of this machine"):
        made.push_to_hub("small", base=True)
    monkeypatch.setattr(transformers.LlamaConfig, "from_pretrained", lambda _: made.config)
    made.push_to_hub("small", base="me/llama")
    made.push_to_hub("whole")
    small, whole = (weights(tmp_path / name) for name in ("small", "whole"))
    assert [name for name in whole if "mlp" in name] and not any("mlp" in name for name in small)


class Quantised(torch.nn.Linear):
    """Holds 8 bits, and as layers of bitsandbytes has an entry in the state dict that loading does
    not take back.
    """

    @classmethod
    def of(cls, layer):
        made = cls(layer.in_features, layer.out_features, bias=False)
        absmax = layer.weight.detach().abs().max()
        small = (layer.weight.detach() / absmax * 127).round().to(torch.int8)
        made.weight = torch.nn.Parameter(small, requires_grad=False)
        made.absmax = absmax
        return made

    def _save_to_state_dict(self, state, prefix, keep):
        super()._save_to_state_dict(state, prefix, keep)
        state[prefix + "weight.absmax"] = self.absmax

    def forward(self, hidden):
        return hidden @ (self.weight.T * self.absmax / 127)


def test_a_quantised_backbone_is_saved_beside_its_base(base, tmp_path):
    """And loaded onto one that is given; its own weights are not saved."""
    folder = base("llama")

    def quantised():
        backbone = transformers.AutoModelForCausalLM.from_pretrained(folder)
        for layer in backbone.model.layers:
            layer.self_attn.q_proj = Quantised.of(layer.self_attn.q_proj)
        return backbone

    made = model(folder, "llama", "lora", quantised=quantised())
    expected = made(**batch()).logits
    with pytest.raises(ModelError, match=r"q_proj\.base_layer\.weight is quantised .* base=\.\.\."):
        made.save_pretrained(tmp_path / "whole")
    assert not (tmp_path / "whole" / "model.safetensors").exists()
    made.save_pretrained(tmp_path / "small", base=True)
    given = NumberModel.from_pretrained(tmp_path / "small", backbone=quantised())
    same(given(**batch()).logits, expected, 0, 0)
    plain = NumberModel.from_pretrained(tmp_path / "small")  # onto the base as it lies there
    same(plain(**batch()).logits, expected, 0.1, 0.1)
    assert not torch.equal(plain(**batch()).logits, expected)
    left = weights(tmp_path / "small") | {"head.more": torch.ones(1)}
    safetensors.torch.save_file(left, tmp_path / "small" / "model.safetensors")
    with pytest.raises(ModelError, match=r"does not hold the weights .* head\.more"):
        NumberModel.from_pretrained(tmp_path / "small", backbone=quantised())


def test_what_cannot_be_saved_so(base, tmp_path):
    with pytest.raises(ModelError, match="not known what GPT2LMHeadModel was loaded from"):
        NumberModel(tiny.backbone("gpt2"), None).save_pretrained(tmp_path / "x", base=True)
    made = model(base("llama"), "llama", "lora")
    with pytest.raises(ModelError, match="holds no model that can be loaded again"):
        made.save_pretrained(tmp_path / "x", base=tmp_path)
    made.save_pretrained(tmp_path / "small", base=True)
    with pytest.raises(ModelError, match="give the same one"):
        NumberModel.from_pretrained(tmp_path / "small", backbone=tiny.backbone("llama"))
    left = weights(tmp_path / "small")
    del left["head.network.0.weight"]
    safetensors.torch.save_file(left, tmp_path / "small" / "model.safetensors")
    with pytest.raises(ModelError, match=r"has no head\.network\.0\.weight"):
        NumberModel.from_pretrained(tmp_path / "small")
