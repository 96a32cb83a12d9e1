"""``numtok playground``: a page, served on this machine to this machine alone, that inspects what is
typed into it.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import itertools
import json
import os
import re
import shlex
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .console import echo
from .inspect import DEFAULT_NUMBERS, of_text
from .options import DEBUG, TOKENIZER, command, group
from .page import page

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from numtok import Tokenizer

EXAMPLES = """
numtok playground
numtok playground --tokenizer my-tokenizer --port 0 --no-browser
"""
TEXT = "Water boils at 99.61 °C under 1,000 hPa"
LONGEST = 1 << 14  # bytes of a question
MOST = 4  # representations
HOST = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?")


@command(EXAMPLES)
@group("Text", TOKENIZER)
@group(
    "Running",
    click.option(
        "--port",
        metavar="N",
        type=click.IntRange(0, 65535),
        default=8642,
        show_default=True,
        help="The port on 127.0.0.1; 0 takes any free one.",
    ),
    click.option("--no-browser", is_flag=True, help="Only print the address of the page."),
    DEBUG,
)
def playground(tokenizer: str | None, port: int, no_browser: bool) -> None:
    """Open a page that shows numbers and tokens as you type.

    Only this machine can reach the page, and no text leaves the machine. Ctrl-C ends it.
    """
    served = server(port, tokenizer)
    url = f"http://127.0.0.1:{served.server_port}/"
    echo(f"{url} is the playground; Ctrl-C ends it")
    if not no_browser:
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    try:
        served.serve_forever()
    except KeyboardInterrupt:
        echo("ended")
    finally:
        served.server_close()


def server(port: int, tokenizer: str | None = None) -> ThreadingHTTPServer:
    """Return the server of the page, which listens already; a tokenizer that cannot be used is an
    error.
    """
    from http.server import ThreadingHTTPServer

    from numtok.errors import OutputError

    class Server(ThreadingHTTPServer):
        allow_reuse_address = os.name != "nt"  # there it would let two servers share a port

    answer({"text": TEXT, "tokenizer": tokenizer, "numbers": DEFAULT_NUMBERS})
    try:
        return Server(("127.0.0.1", port), _handler(*_page(tokenizer)))
    except OSError as error:
        raise OutputError(
            f"cannot listen on port {port} of 127.0.0.1: {error.strerror}; choose another with"
            " --port, or --port 0 for any that is free"
        ) from None


def _handler(html: str, policy: str) -> type[BaseHTTPRequestHandler]:
    from http.server import BaseHTTPRequestHandler

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_GET(self) -> None:
            is_page = self.path.partition("?")[0] == "/"
            self._send(200, html, "text/html") if is_page else self._send(404, "the page is /")

        def do_POST(self) -> None:
            size = self.headers.get("Content-Length", "")
            if not re.fullmatch(r"\d{1,18}", size, re.A):
                self._send(411, "the length of the question is missing")
            elif int(size) > LONGEST:
                self._send(413, "the text is too long for this page; numtok inspect takes any")
            else:
                status, answer = _answer(self.rfile.read(int(size)))
                self._send(status, json.dumps(answer), "application/json")

        def parse_request(self) -> bool:
            """Refuse what is not from our page, but of a page from elsewhere, which could also give
            its own name our address.
            """
            if not super().parse_request():
                return False
            host = self.headers.get("Host", "")
            ours = f"http://{host}"
            is_ours = bool(HOST.fullmatch(host)) and self.headers.get("Origin", ours) == ours
            if not is_ours:
                self._send(403, "only the page of 127.0.0.1 is answered")
            return is_ours

        def _send(self, status: int, body: str, kind: str = "text/plain") -> None:
            data = body.encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": f"{kind}; charset=utf-8",
                "Content-Length": str(len(data)),
                "Content-Security-Policy": policy,
                "X-Content-Type-Options": "nosniff",
                "Referrer-Policy": "no-referrer",
                "Cache-Control": "no-store",
            }.items():
                self.send_header(name, value)
            with contextlib.suppress(ConnectionError):  # the page was closed
                self.end_headers()
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler


def _page(tokenizer: str | None) -> tuple[str, str]:
    """Return the page, and its policy: these scripts, and questions to this server."""
    from numtok.numbers.grammar import NAMES
    from numtok.representations import REPRESENTATIONS

    data = {
        "kind": "playground",
        "title": "Playground",
        "start": {"text": TEXT, "tokenizer": tokenizer or "", "numbers": DEFAULT_NUMBERS},
        "grammars": NAMES,
        "known": [*DEFAULT_NUMBERS[:1], *REPRESENTATIONS],
        "most": MOST,
    }
    html = page(data, Path(__file__).with_name("playground.html").read_text("utf-8"))
    html = html.replace("default-src 'none'", "default-src 'none'; connect-src 'self'", 1)
    scripts = re.findall(r"<script>(.*?)</script>", html, re.S)
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    return html, (
        "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src "
        + " ".join(f"'sha256-{one}'" for one in hashes)
        + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _answer(body: bytes) -> tuple[int, dict[str, Any]]:
    """Return status and answer to a question; what is wrong with it as a sentence."""
    from numtok import NumtokError

    try:
        return 200, answer(json.loads(body))
    except NumtokError as error:
        return 200, {"error": str(error)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return 400, {"error": f"this question cannot be read: {type(error).__name__}: {error}"}
    except Exception as error:
        return 500, {"error": f"this is a bug in numtok: {type(error).__name__}: {error}"}


_one_at_a_time = threading.Lock()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return what ``numtok inspect`` shows of a text, and the command that does so."""
    from numtok.errors import RepresentationError
    from numtok.tokenizer.inspect import inspect_text

    text, numbers = request["text"], list(request["numbers"])
    options = [request.get(name) or None for name in ("tokenizer", "grammar", "overflow")]
    if not 1 <= len(numbers) <= MOST:
        raise RepresentationError(f"choose one to {MOST} representations")
    with _one_at_a_time:
        tokenizers = [_tokenizer(names, *options) for names in numbers]
        data = of_text(inspect_text(text, tokenizers))
    return data | {"command": command_of(text, numbers, *options)}


@functools.lru_cache(maxsize=16)
def _tokenizer(
    names: str, source: str | None, grammar: str | None, overflow: str | None
) -> Tokenizer:
    from numtok import Tokenizer
    from numtok.representations.registry import set_for_all

    return Tokenizer.from_pretrained(source, set_for_all(names, overflow), grammar)


def command_of(
    text: str,
    numbers: list[str],
    tokenizer: str | None,
    grammar: str | None,
    overflow: str | None,
) -> str:
    """Return a command for a shell that inspects the same; an empty string if the text has
    characters that would act upon a terminal when they are pasted.
    """
    if not text.replace("\n", "").isprintable():
        return ""
    chosen = {"--tokenizer": tokenizer, "--grammar": grammar, "--overflow": overflow}
    options = [("--numbers", names) for names in numbers]
    options += [(name, value) for name, value in chosen.items() if value]
    return shlex.join(["numtok", "inspect", "--text", text, *itertools.chain(*options)])
