"""Models that write text with numbers: a representation, its embedding and its head, and prompts
for them.
"""

import functools

import numpy as np
import torch
import torch_models as tiny
import trained

from numtok import Numbers, Tokenizer
from numtok.hf import NumberTokenizer
from numtok.representations import (
    P10,
    Digits,
    ExponentBins,
    FloatBits,
    FoNE,
    LogFourier,
    PlaceValue,
    XVal,
)
from numtok.tokenizer.generated_numbers import number_ids, streams_of
from numtok_torch import NumberModel, PlaceTracker, embedding_from_schema, head_from_config

PROMPTS = [
    "The sum of 12.5 and 30 is",
    "7",
    "It was -60.2 degrees, then 1,234 or so: about 0.5 of",
    "No number here",
]
WAYS = {
    "greedy": {},
    "sampling": {"do_sample": True, "num_return_sequences": 2, "top_k": 0},
    "beams": {"num_beams": 4, "num_return_sequences": 3},
    "sampled beams": {"num_beams": 3, "do_sample": True, "num_return_sequences": 3},
}
HEADS = {
    "scalar": {"name": "scalar", "scale": 0.1},
    "mean": {"name": "mixture", "point": "mean", "scale": 0.1},
    "mode": {"name": "mixture", "components": 4, "space": "asinh"},
    "fone": {"name": "fone", "int_digits": 4, "frac_digits": 2},
    "bits": {"name": "bits"},
}
CASES = {  # representations, options of their layer, head
    "xval": ([XVal(0.1)], {}, "scalar"),
    "bits": ([FloatBits()], {"bias": True}, "bits"),
    "bits compact": ([FloatBits(compact=True)], {"bias": True}, "bits"),
    "mixture": ([XVal()], {}, "mean"),
    "fone": ([FoNE(4, 2, compact=True)], {}, "fone"),
    "fone dense": ([FoNE(4, 2)], {}, "fone"),
    "fone chunks": ([FoNE(4, 2, compact=True, chunk=4)], {}, "fone"),
    "place": ([PlaceValue()], {"zero_init": False}, None),
    "place lsd": ([PlaceValue(order="lsd")], {"zero_init": False}, None),
    "p10": ([P10()], None, None),
    "digits": ([Digits(1)], None, None),
}
LINEAR = {"projection": "linear", "bias": True}
COARSE = [ExponentBins(50), LogFourier(4)]
COMBINED = {  # what a head says is held to what all of them hold
    "bins": (COARSE[:1], {}, "mode"),
    "logfourier": (COARSE[1:], {}, "mean"),
    "bits:64": ([FloatBits(width=64, reciprocal=True)], {"projection": "linear"}, "scalar"),
    "xval fone bits": ([XVal(0.1), FoNE(4, 2), FloatBits()], LINEAR, "scalar"),
    "all": (
        [XVal(0.1, clip=5.0), FoNE(4, 2, compact=True, chunk=5), FloatBits(), *COARSE],
        LINEAR,
        "fone",
    ),
}


def model_for(tokenizer, embedding=None, head=None, **sizes):
    """A model with rows for the tokens of a tokenizer."""
    whole = tiny.backbone("gpt2", vocab_size=tokenizer.vocab_size, **sizes)
    return NumberModel(whole, embedding, head).eval()


def scripted(tokenizer, prompt, ids):
    """Options under which a model writes these ids behind the prompt."""
    width = len(tokenizer.encode(prompt).input_ids)
    return {
        "max_new_tokens": len(ids),
        "prefix_allowed_tokens_fn": lambda _, before: [ids[len(before) - width]],
    }


@functools.cache
def _tokenizer(name):
    return Tokenizer.from_pretrained(trained.source("gpt2"), (CASES | COMBINED)[name][0])


def setting(name, kind="gpt2", head=None):
    """A model whose output depends strongly on the numbers, a tokenizer, and options under which a
    third of the tokens are of numbers.
    """
    _, layer, own = (CASES | COMBINED)[name]
    tokenizer, head = _tokenizer(name), head or own
    whole = tiny.backbone(kind, vocab_size=tokenizer.vocab_size)
    torch.manual_seed(3)
    if layer is not None:
        layer = embedding_from_schema(tokenizer.batch_schema(), tiny.D, **layer)
    made = NumberModel(whole, layer, head and head_from_config(HEADS[head], tiny.D)).eval()
    with torch.no_grad():
        for part in (made.embedding, made.head):
            for one in part.parameters() if part else ():
                one.mul_(3)
    wanted = [
        number
        for content, number in tokenizer.tokens.items()
        if "NUM" in content or content in "0123456789.-"
    ]
    options = {"max_new_tokens": 12, "sequence_bias": [[[number], 6.0] for number in wanted]}
    return made, tokenizer, options


def saved(name, folder, kind="gpt2"):
    """The parts of a setting, with the model and its drop-in tokenizer in the folder."""
    model, tokenizer, options = setting(name, kind)
    tokenizer.save_pretrained(folder)
    drop_in = NumberTokenizer.from_pretrained(folder)
    drop_in.pad_token = "<|endoftext|>"
    drop_in.save_pretrained(folder)
    model.save_pretrained(folder)
    return model, tokenizer, options


def bias_of(tokenizer, options):
    """What ``sequence_bias`` adds to the scores, (vocabulary,)."""
    bias = torch.zeros(tokenizer.vocab_size)
    for (number,), amount in options["sequence_bias"]:
        bias[number] += amount
    return bias


def streams_written(made, tokenizer, prompt, ids, values):
    """The streams that the prompt has, (1, ids, ...), of ids with these values at their numbers."""
    new = torch.tensor([ids])
    mask = torch.isin(new, torch.tensor(number_ids(tokenizer)))
    found = {"input_ids": new, "attention_mask": torch.ones_like(new), "number_mask": mask}
    shown = made.embedding is not None and made.head is not None
    written = Numbers.parse([repr(value) for value in values])
    streams = streams_of(tokenizer, written) if shown else {}
    for name in prompt.keys() - found.keys():
        if name == "place_value":
            tracker = PlaceTracker(tokenizer.tokens, tokenizer.representations[0].order)
            places = np.stack([tracker.step(column) for column in new.numpy().T], 1)
            found[name] = torch.from_numpy(places)
            continue
        found[name] = prompt[name].new_zeros(1, len(ids), *prompt[name].shape[2:])
        if name in streams:
            found[name][mask] = torch.tensor(streams[name]).to(found[name].dtype)
    return found
