"""An OpenAI-compatible completions server for a model with numbers: ``python serve.py FOLDER``.

The folder is one that ``numtok_torch.to_onnx`` wrote, or that of a NumberModel and its tokenizer,
which is exported first. Texts that wait are written together; pieces of a stream have numbers whole.
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
    "batch": (32, "texts that are written together"),
    "queue": (256, "texts that may wait"),
    "context": (4096, "tokens of a prompt and what is written"),
    "max-tokens": (1024, "tokens that may be asked for"),
    "max-body": (1 << 24, "bytes of a request"),
    "timeout": (300, "seconds for a request"),
}


def choice(index: int, text: str, ended: str | None) -> dict[str, Any]:
    """One of a completion's choices."""
    return {"index": index, "text": text, "logprobs": None, "finish_reason": ended}


class Refused(Exception):
    """What a client is told: status, message, the argument it is about, and the API's code."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str = "") -> None:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        told = {"message": message, "type": kind, "param": param, "code": code or None}
        self.status, self.body = status, {"error": told}


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """The arguments of the API; any other is refused."""

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
    """The routes, the limits that requests are held to, and the thread in which the model runs."""

    def __init__(self, model: Model, name: str, limits: argparse.Namespace) -> None:
        self.model, self.name, self.limits = model, name, limits
        model.positions = min(model.positions, limits.context)
        self.waiting: list[tuple[Text, Any]] = []  # and how to tell of its pieces
        self.changed = threading.Condition()
        threading.Thread(target=self.write, daemon=True).start()

    def write(self) -> None:
        """For ever: the texts that wait, together; tells after each token."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting)
                jobs = self.waiting[: self.limits.batch]
                del self.waiting[: self.limits.batch]
            jobs = [(text, tell) for text, tell in jobs if text.busy]  # others were left
            try:
                for _ in write(self.model, [text for text, _ in jobs]) if jobs else ():
                    for _, tell in jobs:
                        tell()
            except Exception as error:  # the next ones are not to suffer from it
                for text, tell in jobs:
                    text.error = f"{type(error).__name__}: {error}"
                    tell()

    def texts(self, asked: Asked) -> list[Text]:
        """The texts that are asked for."""
        if asked.model != self.name:
            raise Refused(404, f"the model here is {self.name!r}", "model", "model_not_found")
        if (new := asked.max_tokens) > self.limits.max_tokens:
            raise Refused(400, f"max_tokens={new} is beyond {self.limits.max_tokens}", "max_tokens")
        draw = asked.temperature, asked.top_p, asked.seed
        try:  # each draws as if it were alone
            return [Text(self.model, one, new, chooser(*draw)) for one in asked.prompt]
        except ValueError as error:
            raise Refused(400, str(error), "prompt", "context_length_exceeded") from None

    async def asked(self, request: Request) -> Asked:
        """What was sent."""
        if not 0 < int(request.headers.get("content-length", 0)) <= self.limits.max_body:
            raise Refused(413, f"content-length must be from 1 to {self.limits.max_body} bytes")
        try:
            given = msgspec.json.decode(await request.body(), type=dict[str, Any])
            given = {name: one for name, one in given.items() if one is not None}
            for name in given.keys() & {"prompt", "stop"}:
                given[name] = [given[name]] if isinstance(given[name], str) else given[name]
            return msgspec.convert(given, Asked)
        except msgspec.DecodeError as error:  # ValidationError is one
            raise Refused(400, str(error)) from None

    async def completions(self, request: Request) -> Response:
        """``POST /v1/completions``"""
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
        """(index, piece, why it ended or None) of each text, cut at its stops, until all ended."""
        until, open_ = time.monotonic() + self.limits.timeout, set(range(len(texts)))
        given, held, look = [0] * len(texts), [""] * len(texts), 0.0
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
                    done = text.left <= 0  # looked at before its pieces
                    if text.error:
                        raise Refused(500, text.error)
                    new = text.pieces[given[index] :]
                    given[index] += len(new)
                    piece, held[index], stop = cut(held[index] + "".join(new), stops, done)
                    ended = "stop" if stop or (done and text.ended) else "length" if done else None
                    if ended:
                        open_.remove(index)
                    if piece or ended:
                        yield index, piece, ended
        finally:
            for text in texts:
                text.wanted = False  # nobody reads on

    async def models(self, request: Request) -> Response:
        """``GET /v1/models``"""
        one = {"id": self.name, "object": "model", "created": 0, "owned_by": "numtok"}
        return JSONResponse({"object": "list", "data": [one]})


def cut(text: str, stops: list[str], done: bool) -> tuple[str, str, bool]:
    """(what can be given, what may yet become a stop, whether there is one)."""
    if found := [text.index(stop) for stop in stops if stop in text]:
        return text[: min(found)], "", True
    begun = (at for stop in stops for at in range(1, len(stop)) if text.endswith(stop[:at]))
    kept = len(text) - (0 if done else max(begun, default=0))
    return text[:kept], text[kept:], False


async def stream(head: Any, pieces: Pieces, end: Any) -> AsyncIterator[str]:
    """The lines of a stream of events."""
    try:
        async for one in pieces:
            yield f"data: {json.dumps(head | {'choices': [choice(*one)]})}\n\n"
        if end is not None:
            yield f"data: {json.dumps(end() | {'choices': []})}\n\n"
        yield "data: [DONE]\n\n"
    except Refused as error:
        yield f"data: {json.dumps(error.body)}\n\n"


async def refuse(request: Request, error: Exception) -> Response:
    """Any error in the form of the API."""
    if not isinstance(error, Refused):
        told = f"{request.method} {request.url.path}: {type(error).__name__}: {error}"
        error = Refused(getattr(error, "status_code", 500), told)
    return JSONResponse(error.body, error.status)


def load(folder: Path) -> Model:
    """The model in a folder, exported first if it is one of torch."""
    with tempfile.TemporaryDirectory() as made:
        if not (folder / "model.onnx").exists():
            import numtok_torch

            model = numtok_torch.NumberModel.from_pretrained(folder)
            numtok_torch.to_onnx(model, made, Tokenizer.from_pretrained(folder))
            folder = Path(made)
        return Model(folder)


def main() -> None:
    """The command line."""
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
