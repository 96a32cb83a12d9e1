"""A model as an ONNX graph says what it says in torch; its text is written without torch."""

import functools
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from exported import exported
from places import EXAMPLES
from torch_generators import PROMPTS, setting

from numtok_torch import generate
from numtok_torch.generation.generate_texts import read_prompts

ort = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

QUICK = ("xval", "gpt2")
SLOW = [
    pytest.param(*case, marks=pytest.mark.slow)
    for case in (
        ("fone", "gpt_neox"),
        ("bits compact", "llama"),
        ("place lsd", "gpt2"),
    )
]
NEW = 12


@functools.cache
def made(name, kind):
    return setting(name, kind)


def in_torch(model, batch, past):
    """Logits and readings, as the graph gives them, and the cache."""
    streams = {name: one for name, one in batch.items() if name != "input_ids"}
    mask = streams.pop("attention_mask")
    given = {"attention_mask": mask, "past_key_values": past, "use_cache": True}
    with torch.no_grad():
        output, hidden, logits = model.run(batch["input_ids"], streams, **given)
        found = [logits]
        if model.head is not None:
            read = model.head.predict(hidden)
            found += list(read.streams.values()) or [read.values, read.bounds]
    return [one.numpy() for one in found], output.past_key_values


@pytest.mark.parametrize(("name", "kind"), [QUICK, *SLOW])
def test_the_graph_says_what_torch_says(name, kind):
    """Any batch and length, with and without a past, beside padding; exact to 1e-4, and digits and
    bits to the last.
    """
    model, tokenizer, _ = made(name, kind)
    session = ort.InferenceSession(exported(name, kind) / "model.onnx")
    names = [one.name for one in session.get_outputs()]
    dense = tokenizer.from_pretrained(exported(name, kind))
    for texts in (PROMPTS, PROMPTS[:1], PROMPTS[1:2]):
        batch = read_prompts(dense, texts, 0, 1, False, torch.device("cpu"))
        mask, width = batch["attention_mask"], batch["input_ids"].shape[1]
        past, cache, start = None, {}, 0
        for stop in sorted({max(width - 3, 1), max(width - 1, 1), width}):
            part = {key: one[:, start:stop] for key, one in batch.items()}
            part["attention_mask"] = mask[:, :stop]
            right, past = in_torch(model, part, past)
            feeds = {key: one.numpy() for key, one in part.items()} | cache
            feeds["logits_at"] = np.arange(stop - start)
            known = {one.name: one.shape for one in session.get_inputs()}
            for key in known.keys() - feeds.keys():  # the cache at first
                feeds[key] = np.zeros((len(texts), known[key][1], 0, known[key][3]), np.float32)
            feeds = {key: one for key, one in feeds.items() if key in known}
            found = dict(zip(names, session.run(None, feeds), strict=True))
            cache = {f"past{key[7:]}": one for key, one in found.items() if key[:7] == "present"}
            shown = mask[:, start:stop].numpy() > 0
            for ours, theirs in zip(found.values(), right, strict=False):
                assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
                assert np.allclose(ours[shown], theirs[shown], rtol=1e-4, atol=1e-4)
            start = stop


WITHOUT_TORCH = """
import json, sys
for name in ("torch", "transformers", "numtok_torch"):
    sys.modules[name] = None  # an import of it fails
sys.path.insert(0, sys.argv[1])
import numpy as np
import generate_onnx
for folder, bias, prompts, new in json.load(sys.stdin):
    model = generate_onnx.Model(folder)
    choose = lambda scores: np.argmax(scores + np.array(bias, np.float32))
    texts = [generate_onnx.Text(model, prompt, new, choose) for prompt in prompts]
    for _ in generate_onnx.write(model, texts):
        pass
    written = ["".join(text.pieces) for text in texts]
    print(json.dumps([written, generate_onnx.generate(model, prompts, new)]))
"""


@pytest.mark.parametrize(
    "cases", [[QUICK], pytest.param([case.values for case in SLOW], marks=pytest.mark.slow)]
)
def test_the_loop_without_torch_writes_what_generate_writes(cases):
    """Greedy, padded, its numbers fed back, also where every other token is one of a number."""
    asked, wanted = [], []
    for name, kind in cases:
        model, tokenizer, options = made(name, kind)
        bias = np.zeros(tokenizer.vocab_size)
        for (number,), more in options["sequence_bias"]:
            bias[number] += more
        asked.append([str(exported(name, kind)), bias.tolist(), PROMPTS, NEW])
        wanted.append(
            [
                generate(model, tokenizer, PROMPTS, **options),
                generate(model, tokenizer, PROMPTS, max_new_tokens=NEW),
            ]
        )
        assert any(character.isdigit() for text in wanted[-1][0] for character in text)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(EXAMPLES)],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == wanted
