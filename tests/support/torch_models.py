"""Tiny transformers of every architecture that is tested, with random weights, and batches with
numbers for them.
"""

import os
from typing import Any

os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import numpy as np
import torch
import transformers
from torch import nn

from numtok import Tokenizer
from numtok_torch import NumberModel, SumEmbedding, embedding_from_config, head_from_config

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()

D, VOCAB, PAD, NUM = 16, 60, 1, 50
SIZES = {
    "hidden_size": D,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": VOCAB,
}
POSITIONS = {"max_position_embeddings": 64, "pad_token_id": PAD}
ENDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": PAD}
GPT2 = {"vocab_size": VOCAB, "n_embd": D, "n_layer": 2, "n_head": 2, "n_positions": 64}
CAUSAL = {
    "gpt2": ("GPT2LMHeadModel", GPT2 | ENDS),
    "gpt_neox": ("GPTNeoXForCausalLM", SIZES | POSITIONS | ENDS | {"tie_word_embeddings": False}),
    "llama": ("LlamaForCausalLM", SIZES | POSITIONS | ENDS),
}
MASKED = {
    "bert": ("BertForMaskedLM", SIZES | POSITIONS),
    "roberta": ("RobertaForMaskedLM", SIZES | POSITIONS | {"max_position_embeddings": 66}),
}
ALL = CAUSAL | MASKED
DECODER = {"vocab_size": VOCAB, "d_model": D, "pad_token_id": PAD}
DECODER |= {"decoder_start_token_id": PAD, "eos_token_id": 2}
T5 = {"num_layers": 2, "num_heads": 2, "d_kv": D // 2, "d_ff": 2 * D, "dropout_rate": 0.0}
BART = {"max_position_embeddings": 64, "dropout": 0.0, "bos_token_id": 0}
BART |= {"forced_eos_token_id": None}
for side in ("encoder", "decoder"):
    BART |= {f"{side}_layers": 2, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 32}
SEQ2SEQ = {
    "t5": ("T5ForConditionalGeneration", DECODER | T5),
    "longt5": ("LongT5ForConditionalGeneration", DECODER | T5 | {"local_radius": 3}),
    "bart": ("BartForConditionalGeneration", DECODER | BART),
    "mbart": ("MBartForConditionalGeneration", DECODER | BART),
    "scaled": ("BartForConditionalGeneration", DECODER | BART | {"scale_embedding": True}),
}

EMBEDDINGS = {
    "xval": {"name": "xval"},
    "bits": {"name": "bits"},
    "fone": {"name": "fone", "int_digits": 3, "frac_digits": 2, "projection": "linear"},
    "bins": {"name": "exponent_bins", "n": 20},
    "logfourier": {"name": "logfourier", "n_frequencies": 3},
    "place": {"name": "place"},
}
HEADS = {
    "scalar": {"name": "scalar"},
    "mixture": {"name": "mixture", "components": 3},
    "fone": {"name": "fone", "int_digits": 3, "frac_digits": 2},
    "bits": {"name": "bits"},
}


def lively(kind, config, seed=0):
    """Weights of order 1: at the usual standard deviation of 0.02 a tiny model hardly depends on
    its input.
    """
    torch.manual_seed(seed)
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter.normal_(std=0.3)
    return model


def backbone(kind, seed=0, **sizes):
    name, own = (ALL | SEQ2SEQ)[kind]
    kind = getattr(transformers, name)
    return lively(kind, kind.config_class(**(own | sizes)), seed)


def still(model):
    """Without dropout."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def embedding(name, **options):
    torch.manual_seed(1)
    if name == "sum":
        return SumEmbedding([embedding(one, **options) for one in EMBEDDINGS])
    return embedding_from_config(EMBEDDINGS[name] | options, D)


def head(name):
    torch.manual_seed(2)
    return head_from_config(HEADS[name], D)


def number_model(kind="gpt2", embedding_name="xval", head_name="scalar", **options):
    """Make a number model around a kind, or a model, for evaluation; None leaves the embedding or
    the head out.
    """
    layers = embedding_name and embedding(embedding_name), head_name and head(head_name)
    whole = backbone(kind) if isinstance(kind, str) else kind
    return NumberModel(whole, *layers, **options).eval()


def schema_of(*numbers):
    """Return the schema of what the default tokenizer encodes with these numbers."""
    return Tokenizer.from_pretrained(numbers=list(numbers)).batch_schema()


def tensor(column):
    """The values of an Arrow column as a batch has them."""
    is_tensor = hasattr(column, "to_numpy_ndarray")
    array = column.to_numpy_ndarray() if is_tensor else column.to_numpy(zero_copy_only=False)
    wide = array.dtype in (np.uint32, np.uint64, np.int16)
    return torch.from_numpy(array.astype(np.int64) if wide else array.copy())


def batch(rows=3, seq=9, seed=0, labels=True):
    """Random ids and streams, with a number in about a third of the places and a zero among them;
    no padding.
    """
    draw = torch.Generator().manual_seed(seed)
    mask = torch.rand(rows, seq, generator=draw) < 0.35
    mask[:, 2], mask[:, 1] = True, False
    values = torch.where(
        mask, torch.randint(0, 9999, (rows, seq), generator=draw) / 100, 1.0
    ).double()
    values[0, 2] = 0.0
    digits = torch.stack([(values * 100).round().long() // 10**k % 10 for k in range(5)], -1)
    ids = torch.randint(2, 40, (rows, seq), generator=draw)
    found = {
        "input_ids": torch.where(mask, NUM, ids),
        "attention_mask": torch.ones(rows, seq, dtype=torch.int64),
        "number_mask": mask,
        "number_value": values,
        "number_scaled": (values / 20).float(),
        "number_bits": values.float().view(torch.int32).long() & 0xFFFFFFFF,
        "number_digits": torch.where(mask[..., None], digits, 0).to(torch.uint8),
        "number_bin": torch.where(mask, torch.randint(0, 21, (rows, seq), generator=draw), 0),
        "number_log_fourier": torch.randn(rows, seq, 4, 2, generator=draw) * mask[..., None, None],
        "place_value": torch.randint(-3, 4, (rows, seq), generator=draw) * ~mask,
    }
    return found | ({"labels": found["input_ids"].clone()} if labels else {})


def pairs(rows=3, source=9, target=7):
    """Random sources, and random targets by the names of labels, for an encoder with a decoder."""
    found, written = batch(rows, source, labels=False), batch(rows, target, seed=1)
    found |= {"labels": written.pop("labels"), "number_labels_mask": written.pop("number_mask")}
    del written["input_ids"], written["attention_mask"]
    return found | {f"{name}_labels": stream for name, stream in written.items()}


FILL = {"input_ids": PAD, "labels": -100, "number_value": 1.0, "number_scaled": 1.0}


def padded(one, left, right):
    """With so many tokens of padding on either side."""
    found = {}
    for name, stream in one.items():
        sides = [
            torch.full((len(stream), count, *stream.shape[2:]), FILL.get(name, 0)).to(stream.dtype)
            for count in (left, right)
        ]
        found[name] = torch.cat([sides[0], stream, sides[1]], 1)
    return found


class Plain(nn.Module):
    """The smallest module that follows the protocol: a causal running mean and two layers."""

    causal = True

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, D)
        self.mix = nn.Linear(D, D)
        self.out = nn.Linear(D, VOCAB, bias=False)
        self.out.weight = self.words.weight

    def get_input_embeddings(self):
        return self.words

    def get_output_embeddings(self):
        return self.out

    def forward(self, inputs_embeds, attention_mask=None):
        shown = torch.ones(inputs_embeds.shape[:2]) if attention_mask is None else attention_mask
        weights = shown.to(inputs_embeds.dtype).unsqueeze(-1)
        mean = (inputs_embeds * weights).cumsum(1) / weights.cumsum(1).clamp(min=1)
        return torch.tanh(self.mix(mean)) + inputs_embeds


def same(one, other, rtol=1e-5, atol=1e-6):
    torch.testing.assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True)


def arguments(folder, **options):
    """Of a quiet Trainer on the CPU, which saves nothing if not told to."""
    quiet = {"use_cpu": True, "report_to": [], "disable_tqdm": True, "seed": 0}
    saves = "steps" if "save_steps" in options else "no"
    options = {"save_strategy": saves, "logging_steps": 1, **quiet, **options}
    return transformers.TrainingArguments(str(folder), **options)


class SparseRows(torch.utils.data.Dataset[Any]):
    """Rows as they come out of a file: sparse, by the names of its columns."""

    def __init__(self, count):
        dense = batch(count, 8)
        self.rows = []
        for r in range(count):
            where = dense["number_mask"][r]
            row = {
                name: dense[name][r][where].numpy()
                for name in ("number_value", "number_scaled", "number_digits", "number_bits")
            }
            self.rows.append(
                {
                    "input_ids": dense["input_ids"][r].numpy(),
                    "number_index": np.flatnonzero(where.numpy()),
                    **row,
                }
            )

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return dict(self.rows[index])


def learn(model, batch, steps, rate=1e-2, of="loss"):
    """The losses of a few steps of AdamW on one batch."""
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer, losses = torch.optim.AdamW(trained, rate), []
    for _ in range(steps):
        optimizer.zero_grad()
        found = model(**batch)
        (found.loss if of == "number_loss" else found[of]).backward()
        optimizer.step()
        losses.append(float(found[of].detach()))
    assert np.isfinite(losses).all()
    return losses


def check_one_graph(run, inputs, parameters=()):
    """A function from tensors to tensors compiles without a break, once for inputs of any size, with
    the same values, and gradients of its first argument and the parameters.
    """
    # half a second, which a quick run has no use for
    from torch._dynamo.testing import CompileCounterWithBackend

    torch.compiler.reset()
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend=counter)
    for first, *others in inputs:
        wanted = [first.requires_grad_(), *parameters]
        both = [one(first, *others) for one in (compiled, run)]
        torch.testing.assert_close(*both, rtol=1e-5, atol=1e-6)
        draw = torch.Generator().manual_seed(0)
        goals = [torch.randn(one.shape, generator=draw) for one in both[0]]
        sums = [
            sum((one * goal).sum() for one, goal in zip(some, goals, strict=True)) for some in both
        ]
        gradients = [torch.autograd.grad(one, wanted) for one in sums]
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)
    assert counter.frame_count == 1
