"""Check what generation, distributions of numbers and exports refuse, and what they say to do."""

import math
import sys

import errors
import pytest
import torch
import torch_generators
import torch_models as tiny
import trained
import transformers
from kept import kept
from torch_generators import PROMPTS, setting
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from numtok import NumberFormat, Tokenizer
from numtok.errors import (
    FormatError,
    InputError,
    MissingDependencyError,
    RepresentationError,
    SchemaError,
)
from numtok.representations import Subword, XVal
from numtok_torch import (
    ModelError,
    NumberDistribution,
    NumberModel,
    PlaceValueEmbedding,
    ScalarHead,
    XValEmbedding,
    generate,
    number_distribution,
    to_onnx,
)
from numtok_torch.auto import PreTrainedNumberModel
from numtok_torch.generation.well_formed import NumberLogitsProcessor

TRUSTED = {"trust_remote_code": True}
DIGIT = NumberFormat(0, 9)
made = kept(setting)


def write(name="xval", prompts=PROMPTS, **options):
    model, tokenizer, usual = made(name)
    return generate(model, tokenizer, prompts, **usual | options)


def without_head(kind):
    return NumberModel(tiny.backbone(kind), None)


def short_model():
    tokenizer = Tokenizer.from_pretrained()
    layers = XValEmbedding(tiny.D), ScalarHead(tiny.D)
    return torch_generators.model_for(tokenizer, *layers, n_positions=8), tokenizer


def spoilt():
    model, tokenizer, options = setting("xval")
    with torch.no_grad():
        next(model.head.parameters()).fill_(math.nan)
        return generate(model, tokenizer, PROMPTS, **options)


def distribution(model=None, prompt="x", tokenizer=None, **options):
    tokenizer = tokenizer or trained.stock("gpt2")
    if model is None:
        model = tiny.backbone("gpt2", vocab_size=len(tokenizer))
    return number_distribution(model, tokenizer, prompt, DIGIT, **options)


def onnx(model=None, tokenizer=None):
    usual = made("xval")
    to_onnx(usual[0] if model is None else model, "onnx", tokenizer or usual[1])


def mamba():
    sizes = {"hidden_size": tiny.D, "num_hidden_layers": 1, "state_size": 4}
    config = transformers.MambaConfig(vocab_size=made("xval")[1].vocab_size, **sizes)
    return NumberModel(transformers.MambaForCausalLM(config), None, None)


def as_written_backwards():
    places = PlaceValueEmbedding(tiny.D, written="lsd", read_as_written=True)
    return NumberModel(made("xval")[0].backbone, places)


def without_onnxscript():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "onnxscript", None)
        onnx()


def saved(side="left", name="numbers", **options):
    """Generate as transformers does, with the model of the folder."""
    found = PreTrainedNumberModel.from_pretrained(name)
    tokenizer = AutoTokenizer.from_pretrained(name, padding_side=side, **TRUSTED)
    batch = tokenizer(PROMPTS, padding=True, return_tensors="pt", return_numbers=True)
    if options.pop("nameless", False):
        found.name_or_path = ""
    left_out = options.pop("without", ())
    return found.generate(
        **{name: one for name, one in batch.items() if name not in left_out} | options
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a saved number model and its drop-in tokenizer."""
    folder = tmp_path_factory.mktemp("saved")
    torch_generators.saved("xval", folder / "numbers")
    (folder / "empty").mkdir()
    return folder


class Pieces:
    """A streamer that nothing is ever put into."""


ONE_PROMPT = "one prompt, and neither num_beams nor"
STREAMS = ("number_mask", "number_value", "number_scaled")
OTHER_ORDER = "written 'lsd', the tokenizer writes them 'msd'"
NO_SAMPLES = [
    ({"samples": 0}, "samples=0 must be positive"),
    ({"reduce": "mode"}, "reduce='mode' one of 'median', 'mean'"),
    ({"coverage": 1.0}, "coverage=1.0 between 0 and 1"),
    ({"num_beams": 2}, "leave out num_return_sequences, num_beams"),
    ({"num_return_sequences": 2}, "leave out num_return_sequences"),
    ({"do_sample": False}, "do_sample=False"),
]
ERRORS = {
    ModelError: [
        *((lambda options=options: write(**({"samples": 2} | options)), told) for options, told in NO_SAMPLES),
        (lambda: write(prompts="a text"), "list of texts"),
        (lambda: write(prefill_chunk_size=2), "prefill_chunk_size"),
        (lambda: write(cache_implementation="paged"), "cache_implementation='paged'…leave it out"),
        (lambda: saved(cache_implementation="paged"), "cache_implementation='paged'…leave it out"),
        (lambda: write(guidance_scale=1.5), "guidance_scale"),
        (lambda: write(generation_config=GenerationConfig(do_sample=True)), "one by one, do_sample=True"),
        (lambda: write(stop_strings=["kg"]), "NumberTokenizer.from_pretrained(folder)"),
        (lambda: write(batch_size=-1), "batch_size=-1 must be positive"),
        (lambda: saved(generation_config=GenerationConfig(prompt_lookup_num_tokens=2)), "prompt_lookup_num_tokens; set it to None"),
        (lambda: write(sample_numbers=True), "MixtureHead"),
        (lambda: write(streamer=Pieces()), ONE_PROMPT),
        (lambda: write(prompts=PROMPTS[:1], streamer=Pieces(), num_beams=2), ONE_PROMPT),
        (lambda: write(prompts=[], streamer=Pieces()), ONE_PROMPT),
        (lambda: generate(without_head("bert"), made("xval")[1], PROMPTS), "BertForMaskedLM cannot generate"),
        (lambda: generate(NumberModel(tiny.Plain(), None), made("xval")[1], PROMPTS), "cannot generate"),
        (lambda: generate(made("xval")[0].backbone, made("xval")[1], PROMPTS), "got GPT2LMHeadModel"),
        (lambda: generate(made("xval")[0], "gpt2", PROMPTS), "str is neither a numtok.Tokenizer"),
        (lambda: generate(without_head("gpt2"), made("xval")[1], PROMPTS), "691 tokens… 60 rows…tokenizer=tokenizer"),
        (lambda: generate(made("place lsd")[0], made("place")[1], ["a 417"]), OTHER_ORDER),
        (lambda: NumberLogitsProcessor(Tokenizer.from_pretrained(trained.source("gpt2"), [Subword()])), "no rules for how numbers go on"),
        (lambda: NumberLogitsProcessor("gpt2"), "str is neither a numtok.Tokenizer"),
        (lambda: NumberLogitsProcessor(made("place")[1], longest=0), "longest=0"),
        (lambda: NumberLogitsProcessor(made("p10")[1])(torch.tensor([[1]]), torch.zeros(1, 600)), "add_number_rows"),
        (lambda: NumberDistribution((), (), 1.0, 0.0).quantile(2), "from 0 to 1"),
        (lambda: distribution(mass=0), "mass"),
        (lambda: distribution(prompt=[]), "no tokens"),
        (lambda: distribution(torch.nn.Linear(2, 2)), "causal model"),
        (lambda: distribution(5), "got int"),
        (lambda: distribution(lambda text: {"1": 0.5}), "natural logarithms"),
        (lambda: onnx(without_head("bert")), "BertForMaskedLM writes no text from left to right"),
        (lambda: onnx(made("xval")[0].transformer), "needs a NumberModel, got GPT2LMHeadModel"),
        (lambda: onnx(mamba()), "keys and values of each layer"),
        (lambda: onnx(made("place lsd")[0], made("place")[1]), OTHER_ORDER),
        (lambda: onnx(tokenizer=made("xval")[1].with_options([XVal(0.5)])), "made for another tokenizer"),
        (lambda: onnx(as_written_backwards()), "no operation for read_as_written"),
        (lambda: saved("right"), "padding_side = 'left'"),
        (lambda: saved(custom_generate="somewhere"), "does not support custom_generate"),
        (lambda: saved(nameless=True), "generate(..., tokenizer=...)"),
        (lambda: PreTrainedNumberModel.from_pretrained("numbers").generate(torch.zeros(1, 0, dtype=torch.int64)), "a token at least"),
        (lambda: AutoModelForCausalLM.from_pretrained("numbers", device_map="auto", **TRUSTED), "device_map='auto'…device_map='cpu'"),
        (lambda: AutoModelForCausalLM.from_pretrained("numbers", tp_plan="auto", **TRUSTED), "not loaded with tp_plan; leave it out"),
    ],
    FormatError: [
        (lambda: write(format=DIGIT), "xval…tokens of its own"),
        (lambda: write("p10", format=DIGIT), "p10…tokens of its own"),
        (lambda: distribution(tokenizer=made("xval")[1]), "xval…tokens of its own"),
    ],
    SchemaError: [(lambda: saved(without=STREAMS), "return_numbers=True…pipeline_class=")],
    RepresentationError: [(spoilt, "value 0 is nan")],
    InputError: [
        (lambda: write(prompts=["a", "b", ""]), "prompt 2 has no tokens"),
        (lambda: write(prompts=["a", "b", ""], batch_size=2), "prompt 2 has no tokens"),
        (lambda: generate(*short_model(), [" a" * 9]), "9 tokens, but GPT2LMHeadModel has 8 positions; shorten it"),
    ],
    MissingDependencyError: [(without_onnxscript, "numtok[onnx]")],
    ValueError: [
        (lambda: AutoModelForCausalLM.from_pretrained("numbers", trust_remote_code=False), "trust_remote_code=True"),
        # what it would make of the folder is a model with random weights
        (lambda: transformers.GPT2LMHeadModel.from_pretrained("numbers"), "pip install 'numtok[torch]'"),
    ],
    OSError: [(lambda: PreTrainedNumberModel.from_pretrained("empty"), "model.safetensors")],
}  # fmt: skip


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    errors.check(call, kind, told, fields)
    assert sorted(path.name for path in folder.iterdir()) == before
