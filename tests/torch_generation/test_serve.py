"""The server of the examples, asked by the client of OpenAI over loopback."""

import asyncio
import contextlib
import functools
import http.client
import importlib
import json
import subprocess
import sys
import types
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from exported import exported
from places import EXAMPLES
from torch_generators import PROMPTS, setting

import numtok
from numtok_torch import generate

openai = pytest.importorskip("openai")
for name in ("onnxruntime", "onnxscript", "starlette", "uvicorn"):
    pytest.importorskip(name)

pytestmark = pytest.mark.slow
CLIENTS, EACH, NEW = 32, 6, 10
A_CLIENT_TO_KILL = """
import openai, sys
client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
asked = {"model": sys.argv[2], "prompt": "7", "max_tokens": 40, "temperature": 0}
while True:
    for _ in client.completions.create(**asked, stream=True):
        print("here", flush=True)
"""


@contextlib.contextmanager
def served(folder, *options):
    """A server of its own process, and a client of it."""
    command = [sys.executable, str(EXAMPLES / "serve.py"), str(folder), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            name, address = process.stdout.readline().split(": ")
            client = openai.OpenAI(base_url=address.strip(), api_key="none", max_retries=0)
            yield client, functools.partial(client.completions.create, model=name)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Of a folder of torch, which the server exports itself."""
    folder = tmp_path_factory.mktemp("torch")
    model, tokenizer, _ = setting("xval", "gpt2")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with served(folder, "--queue", str(CLIENTS + 1)) as server:
        yield server


@functools.cache
def wanted(prompt):
    model, tokenizer, _ = setting("xval", "gpt2")
    (text,) = generate(model, tokenizer, [prompt], max_new_tokens=NEW)
    return text


def test_no_request_of_many_clients_is_lost(asked):
    """32 at once, every other one streamed, each its own text, numbers whole; also while another client
    is killed in the middle of its text.
    """
    client, create = asked
    right = {prompt: wanted(prompt) for prompt in PROMPTS}
    name = client.models.list().data[0].id

    def ask(which):
        wrong = []
        for turn in range(EACH):
            prompt = PROMPTS[(which + turn) % len(PROMPTS)]
            given = {"prompt": prompt, "max_tokens": NEW, "temperature": 0}
            if turn % 2:
                pieces = [one.choices[0].text for one in create(**given, stream=True)]
                numbers = [n.text for piece in pieces for n in numtok.extract(piece)]
                text = "".join(pieces)
                wrong += [] if numbers == [n.text for n in numtok.extract(text)] else [text]
            else:
                answer = create(**given)
                text = answer.choices[0].text
                assert answer.usage.completion_tokens == NEW
            wrong += [] if text == right[prompt] else [text]
        return wrong

    command = [sys.executable, "-c", A_CLIENT_TO_KILL, str(client.base_url), name]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        asking = [pool.submit(ask, which) for which in range(CLIENTS)]
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        process.kill()
        assert [one.result() for one in asking] == [[]] * CLIENTS
    assert create(prompt="7", max_tokens=NEW, temperature=0).choices[0].text == right["7"]


def test_several_prompts_stops_and_draws(asked):
    _, create = asked
    greedy = {"max_tokens": NEW, "temperature": 0}
    together = create(prompt=PROMPTS, **greedy).choices
    assert [one.text for one in together] == [wanted(prompt) for prompt in PROMPTS]
    assert {one.finish_reason for one in together} == {"length"}
    text = wanted(PROMPTS[0])
    stop = text[4:6]
    for stream in (False, True):
        found = create(prompt=PROMPTS[0], stop=[stop, "never"], stream=stream, **greedy)
        choices = [one.choices[0] for one in (found if stream else [found])]
        assert "".join(one.text for one in choices) == text[: text.index(stop)]
        assert choices[-1].finish_reason == "stop"
    (*_, last) = create(prompt="7", stream=True, stream_options={"include_usage": True}, **greedy)
    assert last.usage.completion_tokens == NEW and last.usage.prompt_tokens == 1
    drawn = {create(prompt="7", max_tokens=NEW, seed=seed).choices[0].text for seed in (1, 1, 2, 3)}
    assert len(drawn) == 3
    seeded = {"max_tokens": NEW, "seed": 5}
    alone = [create(prompt=prompt, **seeded).choices[0].text for prompt in PROMPTS]
    assert [one.text for one in create(prompt=PROMPTS, **seeded).choices] == alone
    assert create(prompt="7", top_p=0, max_tokens=NEW).choices[0].text == wanted("7")


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        ({"prompt": ""}, 400, r"length >= 1 - at `\$.prompt\[0\]`"),
        ({"prompt": []}, 400, r"length >= 1 - at `\$.prompt`"),
        ({"prompt": [[1, 2]]}, 400, "Expected `str`, got `array`"),
        ({"prompt": "7", "max_tokens": 0}, 400, r"`int` >= 1 - at `\$.max_tokens`"),
        ({"prompt": "7", "max_tokens": 10**6}, 400, "max_tokens=1000000 is beyond 1024"),
        ({"prompt": "7", "temperature": 3}, 400, r"<= 2.0 - at `\$.temperature`"),
        ({"prompt": "7", "n": 2}, 400, r"Invalid enum value 2 - at `\$.n`"),
        ({"prompt": "7", "logprobs": 3}, 400, "unknown field `logprobs`"),
        ({"prompt": "7 " * 999}, 400, "the prompt has .* tokens, the model takes 1 to 64"),
        ({"prompt": "7", "model": "other"}, 404, "the model here is"),
    ],
)
def test_what_is_refused_says_why(given, status, message, asked):
    _, create = asked
    with pytest.raises(openai.APIStatusError, match=message) as told:
        create(**given)
    assert told.value.status_code == status
    assert told.value.body["type"] == "invalid_request_error"


def test_bytes_that_are_no_request(asked):
    client, create = asked
    url = str(client.base_url)
    for path, body, status in (
        ("completions", b"{", 400),
        ("completions", b"\xff", 400),
        ("completions", b"[]", 400),
        ("completions", b"", 413),
        ("nothing", b"{}", 404),
        ("models", b"{}", 405),
    ):
        with pytest.raises(urllib.error.HTTPError) as told:
            urllib.request.urlopen(urllib.request.Request(url + path, body))
        assert told.value.code == status
        assert json.loads(told.value.read())["error"]["message"]
    bare = http.client.HTTPConnection(client.base_url.host, client.base_url.port)
    bare.putrequest("POST", "/v1/completions")
    bare.putheader("Content-Length", str(1 << 30))
    bare.endheaders()
    assert bare.getresponse().status == 413
    bare.close()
    assert create(prompt="7", max_tokens=1).choices


def test_only_what_may_become_a_stop_is_held_back(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    cut = importlib.import_module("serve").cut
    stops = ["\n\n\n", "kg more"]
    assert cut("It weighs 12.5", stops, False) == ("It weighs 12.5", "", False)
    assert cut("12.5 kg\n", stops, False) == ("12.5 kg", "\n", False)
    assert cut("12.5 kg m", stops, False) == ("12.5 ", "kg m", False)
    assert cut("12.5 kg m", stops, True) == ("12.5 kg m", "", False)
    assert cut("12.5 kg more", stops, False) == ("12.5 ", "", True)


def test_a_client_that_left_is_noticed_while_tokens_come(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    serve = importlib.import_module("serve")
    monkeypatch.setattr(serve, "LOOK", 0.01)
    text = types.SimpleNamespace(left=1, error="", ended=False, pieces=[""], wanted=True)
    server = types.SimpleNamespace(limits=types.SimpleNamespace(timeout=3))

    class Request:
        async def is_disconnected(self):
            return len(text.pieces) > 9

    async def write(changed):
        while text.wanted:
            text.pieces.append("7")
            changed.set()
            await asyncio.sleep(0.001)

    async def ask():
        changed = asyncio.Event()
        writing = asyncio.create_task(write(changed))
        async for _ in serve.Server.pieces(server, Request(), [text], changed, []):
            pass
        await writing

    asyncio.run(ask())
    assert len(text.pieces) < 1000


def test_a_queue_that_is_full(asked):
    """All of a request's texts wait, or none does."""
    _, create = asked
    with pytest.raises(openai.RateLimitError, match="texts wait already"):
        create(prompt=["7"] * (CLIENTS + 2), max_tokens=1)
    assert len(create(prompt=["7"] * (CLIENTS + 1), max_tokens=1).choices) == CLIENTS + 1


def test_time_that_is_over():
    with (
        served(exported("p10", "gpt2"), "--timeout", "0") as (_, create),
        pytest.raises(openai.InternalServerError, match="not done in 0 s"),
    ):
        create(prompt="7", max_tokens=1)
