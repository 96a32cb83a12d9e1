"""LoRA by the real peft, in three ways: around the backbone, put into it, and around the number
model.
"""

import copy
import itertools
import json
import warnings

import pytest
import torch
import torch_models as tiny
from packaging.version import Version
from torch_generators import PROMPTS, setting
from torch_models import same
from transformers.integrations.peft import MIN_PEFT_VERSION

from numtok_torch import ModelError, NumberModel, generate

peft = pytest.importorskip("peft")
pytestmark = [
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Model has `tie_word_embeddings=True`:UserWarning"),
    pytest.mark.filterwarnings("ignore:Input and output embeddings are no longer tied:UserWarning"),
    pytest.mark.filterwarnings("ignore:Could not find a config file:UserWarning"),
]
WAYS = ("wrapped", "wrapped for a task", "added", "injected")
TARGETS = {"gpt2": ["c_attn"], "llama": ["q_proj", "v_proj"]}


def lora(kind="gpt2", **options):
    return peft.LoraConfig(
        **({"r": 4, "lora_alpha": 16, "target_modules": TARGETS[kind]} | options)
    )


def adapted(way, backbone, config):
    """The backbone with adapters."""
    if way.startswith("wrapped"):
        if way != "wrapped":
            config.task_type = "CAUSAL_LM"
        return peft.get_peft_model(backbone, config)
    if way == "added":
        if Version(peft.__version__) < Version(MIN_PEFT_VERSION):
            pytest.skip(f"this transformers needs peft {MIN_PEFT_VERSION}")
        backbone.add_adapter(config)
        return backbone
    return peft.inject_adapter_in_model(config, backbone)


def made(way, kind="gpt2", **options):
    torch.manual_seed(4)
    return tiny.number_model(adapted(way, tiny.backbone(kind), lora(kind, **options)))


def train(model, below=0.8):
    """A few steps on one batch, in which the loss falls."""
    losses = tiny.learn(model.train(), tiny.batch(), 8, 2e-2)
    assert losses[-1] < below * losses[0], losses


def outputs(model):
    with torch.no_grad():
        return dict(model.eval()(**tiny.batch()))


def reloaded(model, folder, rtol=0, atol=0):
    """The model out of the folder into which it was saved, which computes the same."""
    model.save_pretrained(folder)
    back = NumberModel.from_pretrained(folder)
    same(outputs(back), outputs(model), rtol, atol)
    return back


KINDS = {
    "lora": lora,
    "lora of llama": lambda: lora("llama"),
    "dora": lambda: lora(use_dora=True),
    "pissa": lambda: lora("llama", init_lora_weights="pissa"),
    "words": lambda: lora(target_modules=["wte"]),
    "output": lambda: lora(modules_to_save=["lm_head"]),
    "ia3": lambda: peft.IA3Config(
        target_modules=["c_attn", "mlp.c_fc"], feedforward_modules=["mlp.c_fc"]
    ),
    "loha": lambda: peft.LoHaConfig(r=4, target_modules=["q_proj", "v_proj"]),
    "oft": lambda: peft.OFTConfig(r=4, oft_block_size=0, target_modules=["q_proj", "v_proj"]),
    "tokens": lambda: peft.TrainableTokensConfig(target_modules=["wte"], token_indices=[tiny.NUM]),
    "lokr": lambda: peft.LoKrConfig(r=4, target_modules=["q_proj", "v_proj"]),
}
LLAMA = ("lora of llama", "pissa", "loha", "lokr", "oft")


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *(("lora", way) for way in WAYS),
        *zip(list(KINDS)[1:], itertools.cycle(["wrapped", "added"]), strict=False),
    ],
)
def test_inside_the_model(name, way, tmp_path):
    """Trains, changes only what it should, is saved, loaded, and merged into a model without
    adapters.
    """
    kind, is_lora = "llama" if name in LLAMA else "gpt2", name.startswith("lora")
    layers = tiny.embedding("xval"), tiny.head("scalar")
    stock = NumberModel(tiny.backbone(kind), *copy.deepcopy(layers)).eval()
    torch.manual_seed(4)
    model = NumberModel(adapted(way, tiny.backbone(kind), KINDS[name]()), *layers)
    if is_lora:
        same(outputs(model), outputs(stock))  # B begins at zero
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    train(model)
    changed = {name for name, one in model.named_parameters() if not torch.equal(one, before[name])}
    if is_lora:
        ours = {name for name in before if name.startswith(("embedding.", "head."))}
        assert changed == ours | {name for name in before if "lora_" in name}
    expected = outputs(model)

    back = reloaded(model, tmp_path / "adapted", 1e-5, 1e-6)
    assert type(back.backbone) is type(model.backbone)
    if is_lora:
        assert {name for name, one in back.named_parameters() if one.requires_grad} == changed
        train(back, below=0.95)
        base = tiny.backbone(kind, seed=9)
        same(outputs(NumberModel.from_pretrained(tmp_path / "adapted", base)), expected, 0, 0)

    merged = model.merge_and_unload()
    assert not [name for name, _ in merged.named_parameters() if "lora_" in name]
    same(outputs(merged), expected, 1e-3, 1e-4)
    plain = reloaded(merged, tmp_path / "merged")
    assert type(plain.backbone) is type(stock.backbone)
    with pytest.raises(ModelError, match="no adapters"):
        plain.merge_and_unload()


def test_around_the_model(tmp_path):
    """``get_peft_model(NumberModel(...))``; peft compares the ends of names, so that a GPT-2's
    ``lm_head`` is a ``head`` too.
    """
    base = NumberModel(tiny.backbone("gpt2"), tiny.embedding("fone"), tiny.head("scalar"))
    base.save_pretrained(tmp_path / "base")
    model = peft.get_peft_model(base, lora(modules_to_save=["embedding", "head"]))
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    train(model)
    changed = {name for name, one in model.named_parameters() if not torch.equal(one, before[name])}
    assert changed == {name for name in before if "lora_" in name or ".modules_to_save." in name}
    for part in ("model.embedding.", "model.head.", "c_attn.lora_A"):
        assert any(part in name for name in changed)
    expected = outputs(model)
    model.save_pretrained(tmp_path / "adapters")
    back = NumberModel.from_pretrained(tmp_path / "base")
    same(outputs(peft.PeftModel.from_pretrained(back, tmp_path / "adapters")), expected)
    with pytest.raises(ModelError, match="peft has put adapters around"):
        base.save_pretrained(tmp_path / "wrong")
    merged = model.merge_and_unload()
    assert isinstance(merged, NumberModel)
    same(outputs(merged), expected, 1e-4, 1e-5)
    reloaded(merged, tmp_path / "merged")


@pytest.mark.parametrize("way", ["wrapped for a task", "around for a task"])
def test_generation(way):
    """With adapters, and with them merged: the same text and values, not those of the model without."""
    model, tokenizer, options = setting("xval")
    options |= {"max_new_tokens": 8, "details": True}
    config = lora(init_lora_weights=False, task_type="CAUSAL_LM")  # random: another model
    without = generate(model, tokenizer, PROMPTS[:2], **options)
    if way.startswith("around"):
        changed = peft.get_peft_model(model, config)
    else:
        backbone = adapted(way, model.backbone, config)
        changed = NumberModel(backbone, model.embedding, model.head).eval()
    found = generate(changed, tokenizer, PROMPTS[:2], **options)
    assert found.ids != without.ids and any(found.values)
    merged = generate(changed.merge_and_unload(), tokenizer, PROMPTS[:2], **options)
    assert merged.ids == found.ids
    for ours, theirs in zip(merged.values, found.values, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("way", ["wrapped", "injected"])
def test_rows_of_single_tokens(way, tmp_path):
    """``trainable_token_indices``: of the word vectors, only those of ``[NUM]`` are trained, also
    where the output layer is tied to them.
    """
    model = made(way, trainable_token_indices=[tiny.NUM])
    words = model.get_input_embeddings().weight.detach().clone()

    def moved(model):
        changed = (model.get_input_embeddings().weight.detach() != words).any(1)
        return changed.nonzero().flatten().tolist()

    train(model)
    assert moved(model) == [tiny.NUM]
    expected = outputs(reloaded(model, tmp_path))
    merged = reloaded(model.merge_and_unload(), tmp_path)
    same(outputs(merged), expected, 1e-4, 1e-5)
    assert moved(merged) == [tiny.NUM]
    assert merged.get_output_embeddings().weight is merged.get_input_embeddings().weight


def random_adapters(model):
    """The model, evaluated, with adapters that change what it computes."""
    torch.manual_seed(5)
    with torch.no_grad():
        for name, one in model.named_parameters():
            if "lora_" in name or "modules_to_save" in name or "trainable_tokens" in name:
                one.add_(torch.randn_like(one) * 0.3)
    return model.eval()


def test_adapters_that_are_off(tmp_path):
    model = made("added", init_lora_weights=False)
    model.backbone.disable_adapters()
    reloaded(model, tmp_path)


@pytest.mark.parametrize("active", [["default"], ["other"], ["default", "other"]])
def test_several_adapters(active, tmp_path):
    """Which of them is active is part of what is saved. The first layer with adapters, the word
    embedding, has one of the two only.
    """
    model = made("wrapped", "llama", trainable_token_indices=[tiny.NUM])
    model.backbone.add_adapter("other", lora(target_modules=["o_proj"]))
    random_adapters(model).backbone.base_model.set_adapter(active)
    back = reloaded(model, tmp_path)
    for one in ("default", "other"):
        for each in (model, back):
            each.backbone.set_adapter(one)
        same(outputs(back), outputs(model), 0, 0)
    model.backbone.merge_adapter()
    with pytest.raises(ModelError, match="still beside them"):
        model.save_pretrained(tmp_path)


def test_adapters_of_two_kinds(tmp_path):
    backbone = peft.get_peft_model(tiny.backbone("llama"), lora("llama"), mixed=True)
    backbone.add_adapter("other", peft.LoHaConfig(r=2, target_modules=["o_proj"]))
    backbone.set_adapter(["default", "other"])
    reloaded(random_adapters(tiny.number_model(backbone)), tmp_path)


@pytest.mark.parametrize("layers", ["modules_to_save", "target_modules"])
@pytest.mark.parametrize(("kind", "words"), [("gpt2", "wte"), ("llama", "embed_tokens")])
def test_tied_adapters_stay_tied(kind, words, layers, tmp_path):
    """``ensure_weight_tying``: one copy, or one adapter, for word embedding and output layer."""
    backbone = tiny.backbone(kind, tie_word_embeddings=True)
    names = {
        layers: [*TARGETS[kind], words, "lm_head"] if "target" in layers else [words, "lm_head"]
    }
    config = lora(kind, ensure_weight_tying=True, **names)
    backbone = peft.get_peft_model(backbone, config)
    model = random_adapters(tiny.number_model(backbone))
    back = reloaded(model, tmp_path / "adapted")
    expected = outputs(model)
    for one in (model, back):
        merged = reloaded(one.merge_and_unload(), tmp_path / "merged")
        same(outputs(merged), expected, 1e-3, 1e-4)


def test_repeated_layers_are_not_merged(tmp_path):
    """Layers that share their weights would each add their adapter to them."""
    model = random_adapters(made("wrapped", "llama", layer_replication=[[0, 2], [1, 2]]))
    with pytest.raises(ModelError, match="cannot be merged"):
        model.merge_and_unload()
    reloaded(model, tmp_path)


def test_refused_and_damaged(tmp_path, monkeypatch):
    """Prompts change the length of the text; and nothing in a folder is run, imported or looked up
    elsewhere.
    """
    with pytest.raises(ModelError, match="PROMPT_TUNING are not supported"):
        config = peft.PromptTuningConfig(num_virtual_tokens=2, task_type="CAUSAL_LM")
        NumberModel(peft.get_peft_model(tiny.backbone("gpt2"), config), tiny.embedding("xval"))
    made("added").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    good = json.loads(path.read_text())
    (tmp_path / "evil_module.py").write_text("raise SystemExit('ran')")
    monkeypatch.syspath_prepend(str(tmp_path))
    evil = {
        "megatron_config": {"a": 1},
        "megatron_core": "evil_module",
        "auto_mapping": {"base_model_class": "x", "parent_library": "evil_module"},
        "init_lora_weights": "corda",
        "corda_config": {"cache_file": str(tmp_path / "cache.pt")},
    }
    for changes, expected in (
        (evil, None),
        ({"peft_type": "XLORA"}, "not supported"),
        ({"peft_type": None}, "not supported"),
        ({"r": "many"}, "cannot be made anew"),
        ({"target_modules": ["nothing"]}, "cannot be made anew"),
        ({"r": 3}, "does not hold the weights"),
    ):
        bad = copy.deepcopy(good)
        bad["adapters"]["configs"]["default"] |= changes
        path.write_text(json.dumps(bad))
        if expected is None:
            assert torch.isfinite(NumberModel.from_pretrained(tmp_path)(**tiny.batch()).loss)
            continue
        with pytest.raises(ModelError, match=expected), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            NumberModel.from_pretrained(tmp_path)
