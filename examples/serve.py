"""An OpenAI-compatible completions server for a model with numbers: ``python serve.py FOLDER``.

The folder is one of ``numtok_torch.to_onnx``, or that of a NumberModel and its tokenizer, which is
exported first. Waiting texts are written in one batch. A number is never split between two pieces
of a stream.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import json
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import uvicorn
from generate_onnx import Model, Text, Tokenizer, chooser, write
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Pieces = AsyncIterator[tuple[int, str, str | None]]
NotEmpty = Annotated[str, msgspec.Meta(min_length=1)]
LOOK = 0.5  # seconds between looks at whether a client is still there
LIMITS = {
    "batch": (32, "texts that are written in one batch"),
    "queue": (256, "texts that may wait"),
    "context": (4096, "tokens of a prompt and what is written"),
    "max-tokens": (1024, "tokens that may be asked for"),
    "max-body": (1 << 24, "bytes of a request"),
    "timeout": (300, "seconds for a request"),
}


def choice(index: int, text: str, ended: str | None) -> dict[str, Any]:
    """Return an entry of a completion's ``choices``."""
    return {"index": index, "text": text, "logprobs": None, "finish_reason": ended}


class Refused(Exception):
    """An error for the client: status, message, the argument at fault, and the API's code."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str = "") -> None:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        error = {"message": message, "type": kind, "param": param, "code": code or None}
        self.status, self.body = status, {"error": error}


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of a request; others are refused."""

    prompt: Annotated[list[NotEmpty], msgspec.Meta(min_length=1)]
    model: str
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] = 16
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] = 1.0
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    stop: Annotated[list[NotEmpty], msgspec.Meta(max_length=4)] = []
    stream: bool = False
    stream_options: dict[str, bool] = {}
    n: Literal[1] = 1


class Server:
    """The routes, the limits of requests, and the thread in which the model runs."""

    def __init__(self, model: Model, name: str, limits: argparse.Namespace) -> None:
        self.model, self.name, self.limits = model, name, limits
        model.positions = min(model.positions, limits.context)
        self.waiting: list[tuple[Text, Any]] = []  # texts, each with the callback of its request
        self.changed = threading.Condition()
        threading.Thread(target=self.write, daemon=True).start()

    def write(self) -> None:
        """Write waiting texts in batches, for ever, and call their callbacks after each token."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting)
                jobs = self.waiting[: self.limits.batch]
                del self.waiting[: self.limits.batch]
            jobs = [(text, tell) for text, tell in jobs if text.busy]  # clients of others are gone
            try:
                for _ in write(self.model, [text for text, _ in jobs]) if jobs else ():
                    for _, tell in jobs:
                        tell()
            except Exception as error:  # the thread goes on with the next batch
                for text, tell in jobs:
                    text.error = f"{type(error).__name__}: {error}"
                    tell()

    def texts(self, asked: Asked) -> list[Text]:
        """Return the texts of a request."""
        if asked.model != self.name:
            raise Refused(404, f"the model here is {self.name!r}", "model", "model_not_found")
        if (new := asked.max_tokens) > self.limits.max_tokens:
            raise Refused(400, f"max_tokens={new} is beyond {self.limits.max_tokens}", "max_tokens")
        draw = asked.temperature, asked.top_p, asked.seed
        try:  # each text has a random generator of its own
            return [Text(self.model, one, new, chooser(*draw)) for one in asked.prompt]
        except ValueError as error:
            raise Refused(400, str(error), "prompt", "context_length_exceeded") from None

    async def asked(self, request: Request) -> Asked:
        """Return the arguments of a request."""
        if not 0 < int(request.headers.get("content-length", 0)) <= self.limits.max_body:
            raise Refused(413, f"content-length must be from 1 to {self.limits.max_body} bytes")
        try:
            arguments = msgspec.json.decode(await request.body(), type=dict[str, Any])
            arguments = {name: one for name, one in arguments.items() if one is not None}
            for name in arguments.keys() & {"prompt", "stop"}:
                arguments[name] = (
                    [arguments[name]] if isinstance(arguments[name], str) else arguments[name]
                )
            return msgspec.convert(arguments, Asked)
        except msgspec.DecodeError as error:  # ValidationError is one
            raise Refused(400, str(error)) from None

    async def completions(self, request: Request) -> Response:
        """Answer ``POST /v1/completions``."""
        asked = await self.asked(request)
        texts = await asyncio.to_thread(self.texts, asked)
        prompts = sum(len(text.tokens) for text in texts)
        changed, loop = asyncio.Event(), asyncio.get_running_loop()
        with self.changed:
            if len(self.waiting) + len(texts) > self.limits.queue:
                raise Refused(429, f"{len(self.waiting)} texts wait already", None, "queue_full")
            tell = functools.partial(loop.call_soon_threadsafe, changed.set)
            self.waiting += [(text, tell) for text in texts]
            self.changed.notify()
        pieces = self.pieces(request, texts, changed, asked.stop)
        head = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion"}
        head |= {"created": int(time.time()), "model": self.name}

        def end() -> dict[str, Any]:
            total = sum(len(text.tokens) for text in texts)
            used = {"completion_tokens": total - prompts, "total_tokens": total}
            return head | {"usage": {"prompt_tokens": prompts} | used}

        if asked.stream:
            counted = asked.stream_options.get("include_usage")
            lines = stream(head, pieces, end if counted else None)
            return StreamingResponse(lines, media_type="text/event-stream")
        whole = [("", "")] * len(texts)
        async for index, piece, ended in pieces:
            whole[index] = (whole[index][0] + piece, ended)
        return JSONResponse(end() | {"choices": [choice(at, *one) for at, one in enumerate(whole)]})

    async def pieces(self, request: Any, texts: Any, changed: Any, stops: Any) -> Pieces:
        """Yield (index, piece, finish reason or None) of each text, cut at its stops, until all
        have ended.
        """
        until, open_ = time.monotonic() + self.limits.timeout, set(range(len(texts)))
        sent, held, look = [0] * len(texts), [""] * len(texts), 0.0
        try:
            while open_:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), LOOK)
                changed.clear()
                if (now := time.monotonic()) > look:
                    if await request.is_disconnected():
                        return
                    look = now + LOOK
                if now > until:
                    raise Refused(504, f"not done in {self.limits.timeout} s", None, "timeout")
                for index in sorted(open_):
                    text = texts[index]
                    done = text.left <= 0  # read before the pieces
                    if text.error:
                        raise Refused(500, text.error)
                    new = text.pieces[sent[index] :]
                    sent[index] += len(new)
                    piece, held[index], stop = cut(held[index] + "".join(new), stops, done)
                    ended = "stop" if stop or (done and text.ended) else "length" if done else None
                    if ended:
                        open_.remove(index)
                    if piece or ended:
                        yield index, piece, ended
        finally:
            for text in texts:
                text.wanted = False  # the client is gone, or has all

    async def models(self, request: Request) -> Response:
        """Answer ``GET /v1/models``."""
        one = {"id": self.name, "object": "model", "created": 0, "owned_by": "numtok"}
        return JSONResponse({"object": "list", "data": [one]})


def cut(text: str, stops: list[str], done: bool) -> tuple[str, str, bool]:
    """Return (text to send, text that may yet become a stop, whether a stop was found)."""
    if stops_at := [text.index(stop) for stop in stops if stop in text]:
        return text[: min(stops_at)], "", True
    started = (at for stop in stops for at in range(1, len(stop)) if text.endswith(stop[:at]))
    end = len(text) - (0 if done else max(started, default=0))
    return text[:end], text[end:], False


async def stream(head: Any, pieces: Pieces, end: Any) -> AsyncIterator[str]:
    """Yield the lines of a stream of events."""
    try:
        async for one in pieces:
            yield f"data: {json.dumps(head | {'choices': [choice(*one)]})}\n\n"
        if end is not None:
            yield f"data: {json.dumps(end() | {'choices': []})}\n\n"
        yield "data: [DONE]\n\n"
    except Refused as error:
        yield f"data: {json.dumps(error.body)}\n\n"


async def refuse(request: Request, error: Exception) -> Response:
    """Return any error in the form of the API."""
    if not isinstance(error, Refused):
        message = f"{request.method} {request.url.path}: {type(error).__name__}: {error}"
        error = Refused(getattr(error, "status_code", 500), message)
    return JSONResponse(error.body, error.status)


def load(folder: Path) -> Model:
    """Load the model of a folder; export it first if it is a model of torch."""
    with tempfile.TemporaryDirectory() as exported:
        if not (folder / "model.onnx").exists():
            import numtok_torch

            model = numtok_torch.NumberModel.from_pretrained(folder)
            numtok_torch.to_onnx(model, exported, Tokenizer.from_pretrained(folder))
            folder = Path(exported)
        return Model(folder)


def main() -> None:
    """Parse the command line, and serve."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    for name, (most, what) in LIMITS.items():
        parser.add_argument(f"--{name}", type=int, default=most, help=f"{what} ({most})")
    limits = parser.parse_args()
    server = Server(load(limits.folder), name := limits.folder.resolve().name, limits)
    asked = Route("/v1/completions", server.completions, methods=["POST"])
    handlers: Any = dict.fromkeys((Refused, 404, 405, 500), refuse)
    app = Starlette(routes=[asked, Route("/v1/models", server.models)], exception_handlers=handlers)
    with socket.create_server((limits.host, limits.port)) as listening:
        print(f"{name}: http://{limits.host}:{listening.getsockname()[1]}/v1", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    main()
