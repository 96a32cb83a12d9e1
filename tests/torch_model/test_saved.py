"""Number models of every kind on disk: what is saved is loaded, by us and by transformers; and what
a folder cannot do.
"""

import json
from functools import partial

import pytest
import safetensors.torch
import torch
import torch_models as tiny
import transformers
from torch_models import number_model as model
from torch_models import same

from numtok_torch import ModelError, NumberModel, xval_gpt2
from numtok_torch.auto import PreTrainedNumberModel
from numtok_torch.model.saving import KINDS

pytestmark = [
    pytest.mark.filterwarnings("ignore:fan_in_fan_out is set:UserWarning"),
    pytest.mark.filterwarnings("ignore:Could not find a config file:UserWarning"),
]


def of_class(name, **options):
    """Around a tiny model of a class of transformers."""
    kind = getattr(transformers, name)
    config = kind.config_class(**tiny.SIZES, pad_token_id=tiny.PAD, **options)
    return model(tiny.lively(kind, config))


def in_bfloat16():
    made = model("gpt2", "fone")
    made.backbone.to(torch.bfloat16)
    made.backbone.generation_config.eos_token_id = [3, 4]
    return made


OPTIONS = {"number_weight": 0.5, "token_weight": 0.25, "vocab_size": tiny.VOCAB + 2}
OPTIONS |= {"number_loss_per": "token"}
XVAL = partial(xval_gpt2, tiny.VOCAB, tiny.D, 2, 2)
MODELS = {
    **{kind: partial(model, kind, "fone", "fone", **OPTIONS) for kind in tiny.ALL},
    "every layer": partial(model, "gpt2", "sum", "mixture", **OPTIONS),
    "no head": partial(model, "llama", "place", None),
    "no layer": partial(model, "bert", None, "bits"),
    "bfloat16": in_bfloat16,
    "frozen": partial(model, freeze_backbone=True),
    "frozen trunk": partial(model, "roberta", freeze_backbone="trunk"),
    "xval": lambda: model(XVAL()),
    "xval, both sides": lambda: model(XVAL(bidirectional=True, token_head="mlp")),
    "texts": partial(of_class, "BertForSequenceClassification", num_labels=3),
    "texts, causal": partial(of_class, "GPT2ForSequenceClassification", num_labels=3),
    "tokens": partial(of_class, "BertForTokenClassification", num_labels=3),
    "decoder": partial(model, "t5"),
    "bare": partial(of_class, "BertModel"),
}


def outputs(made):
    batch = tiny.pairs() if made.decodes else tiny.batch(labels=False)
    with torch.no_grad():
        return {key: one for key, one in made(**batch).items() if isinstance(one, torch.Tensor)}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_is_loaded(name, tmp_path):
    made = MODELS[name]()
    made.save_pretrained(tmp_path)
    files = ["config.json", "model.safetensors", "modeling_numtok.py"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    auto = partial(transformers.AutoModel.from_pretrained, trust_remote_code=True)
    tied = [made.get_output_embeddings(), made.get_input_embeddings()]
    for load in (NumberModel.from_pretrained, auto):
        back = load(tmp_path)
        same(outputs(back), outputs(made), 0, 0)
        assert type(back.backbone) is type(made.backbone) and not back.training
        for (key, one), other in zip(made.named_parameters(), back.parameters(), strict=True):
            assert (one.dtype, one.requires_grad) == (other.dtype, other.requires_grad), key
        if made.task is None and tied[0] is not None:
            again = back.get_output_embeddings(), back.get_input_embeddings()
            assert (again[0].weight is again[1].weight) == (tied[0].weight is tied[1].weight)
        if transformer := getattr(made.transformer, "generation_config", None):
            assert back.transformer.generation_config.eos_token_id == transformer.eos_token_id
    assert isinstance(back, PreTrainedNumberModel)
    assert back.can_generate() == (made.task is None and made.transformer.can_generate())
    back.save_pretrained(tmp_path / "again")
    folders = tmp_path, tmp_path / "again"
    described, again = (json.loads((path / "config.json").read_text()) for path in folders)
    for written in (described, again):  # transformers writes more than it reads
        del written["backbone"]
    assert described == again


@pytest.mark.parametrize("kind", KINDS[1:])
def test_each_auto_class_loads_the_model(kind, tmp_path):
    """As it was saved, whatever the class is called; also a folder of an earlier version."""
    made = model("bert")
    made.save_pretrained(tmp_path)
    load = getattr(transformers, f"AutoModel{kind}").from_pretrained
    config = tmp_path / "config.json"
    earlier = config.read_text().replace("PreTrainedNumberModel", f"NumberModel{kind}")
    for described in (config.read_text(), earlier):
        config.write_text(described)
        same(outputs(load(tmp_path, trust_remote_code=True)), outputs(made), 0, 0)


def test_what_is_loaded_computes_to_the_bit_what_was_saved(tmp_path):
    """Its weights lie in memory as those of a model that was made: sums of floats in another order
    would write other last digits.
    """
    made = model("t5")
    made.save_pretrained(tmp_path)
    loaded = NumberModel.from_pretrained(tmp_path)
    assert {one.data_ptr() % 64 for one in loaded.parameters()} == {0}


def test_another_dtype_and_attention(tmp_path):
    model("llama").save_pretrained(tmp_path)
    low = NumberModel.from_pretrained(tmp_path, dtype=torch.bfloat16)
    load = partial(transformers.AutoModelForCausalLM.from_pretrained, trust_remote_code=True)
    eager = load(tmp_path, dtype="bfloat16", attn_implementation="eager")
    for back in (low, eager):
        assert back.backbone.dtype == torch.bfloat16
        assert next(back.head.parameters()).dtype == torch.float32
    assert eager.config._attn_implementation == "eager"


def test_a_folder_cannot_run_code(tmp_path):
    """Neither code beside it, nor kernels from elsewhere, nor a class that is no model."""
    model().save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    settings = json.loads(path.read_text())
    settings["backbone"]["config"] |= {
        "auto_map": {"AutoModelForCausalLM": "evil.Model"},
        "_attn_implementation": "someone/kernel",
        "attn_implementation": "someone/kernel",
        "quantization_config": {"quant_method": "bitsandbytes"},
    }
    path.write_text(json.dumps(settings))
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    back = NumberModel.from_pretrained(tmp_path)
    assert back.config._attn_implementation in ("sdpa", "eager")
    assert not hasattr(back.config, "auto_map")
    for name in ("pipeline", "os", "__loader__", "AutoModel", "Trainer"):
        settings["backbone"]["class"] = name
        path.write_text(json.dumps(settings))
        with pytest.raises(ModelError, match="has no model"):
            NumberModel.from_pretrained(tmp_path)


def test_damaged_folders(tmp_path):
    weights, settings = tmp_path / "model.safetensors", tmp_path / "config.json"

    def refused(message, **options):
        with pytest.raises(ModelError, match=message):
            NumberModel.from_pretrained(tmp_path, **options)

    refused(r"has no model\.safetensors")
    model().save_pretrained(tmp_path)
    good, described = weights.read_bytes(), settings.read_text()
    for content in (b"", good[:50], good[:-9], b"\x80\x04pickle"):
        weights.write_bytes(content)
        refused("damaged")
    weights.write_bytes(good)
    for text, message in (
        *((text, "damaged") for text in ("", "[]", "{", '{"format": 1}')),
        (described.replace('"head"', '"hat"'), "damaged"),
        ('{"model_type": "gpt2"}', "of another model"),
        (described.replace('"format": 1', '"format": 2'), "upgrade numtok"),
    ):
        settings.write_text(text)
        refused(message)
    settings.unlink()
    refused("not written by numtok")
    settings.write_text(described)
    safetensors.torch.save_file({"head.nothing": torch.zeros(1)}, weights)
    refused("does not hold the weights", backbone=tiny.backbone("gpt2"))
