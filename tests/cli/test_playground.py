"""``numtok playground``: what it answers, whom it answers, and the page in a browser."""

import base64
import hashlib
import http.client
import json
import re
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from http.server import ThreadingHTTPServer

import pytest
from command import ok, refused
from numtok_cli.playground import LONGEST, server
from pages import BROWSER, HOSTILE, drawn, page_data


@pytest.fixture(scope="module")
def port():
    served = server(0)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield served.server_port
    served.shutdown()
    served.server_close()


def fetch(port, method, path, body="", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request(method, path, body.encode(), headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.headers


def ask(port, text, *numbers, **options):
    question = {"text": text, "numbers": numbers, **options}
    status, told, _ = fetch(port, "POST", "/inspect", json.dumps(question))
    assert status == 200, told
    return dict(json.loads(told))


def test_a_text_is_seen_through_up_to_four_representations(port):
    told = ask(port, "is 1.234,5", "xval,bits", "digits:1", "p10", "subword", grammar="european")
    assert [one["text"] for one in told["numbers"]] == ["1.234,5"]
    assert told["numbers"][0]["cells"][0] == "1234.5"
    assert [view["name"] for view in told["views"]] == ["xval + bits", "digits:1", "p10", "subword"]
    assert told["command"] == (
        "numtok inspect --text 'is 1.234,5' --numbers xval,bits --numbers digits:1 --numbers p10"
        " --numbers subword --grammar european"
    )
    assert ask(port, "", "xval")["numbers"] == []
    fitted = ask(port, "3, 4 and 500", "quantile_bins:2", "quantile_bins:4,soft")
    assert all("fitted to the numbers shown" in view["remark"] for view in fitted["views"])
    assert [row[1]["text"] for row in fitted["views"][0]["rows"]] == ["0", "1", "1"]


@pytest.mark.parametrize("text", ["-5 'is' \"$HOME\"", "-5\n-n 3\n", f"\\ 100%d\n{HOSTILE[1]}"])
def test_the_command_shows_the_same(port, text, tmp_path):
    told = ask(port, text, "bits", "digits:1", overflow="clip")
    line = told.pop("command")
    program = f"{sys.executable} -m numtok_cli.main inspect"
    line = line.replace("numtok inspect", program) + f" --html {tmp_path / 'a.html'}"
    subprocess.run(["sh", "-c", line], check=True, capture_output=True)
    assert page_data(tmp_path / "a.html") == told
    assert told["text"] == text


@pytest.mark.parametrize("text", ["5\x03", "5\x1b[31m", "5\u202e"])
def test_no_command_acts_upon_a_terminal_when_it_is_pasted(port, text):
    assert ask(port, text, "bits")["command"] == ""


QUESTION = {"text": "1e99", "numbers": ["xval"]}
REFUSED = [
    ({"grammar": "klingon"}, "'prose', 'data'"),
    ({"numbers": ["no"]}, "unknown representation 'no'"),
    ({"numbers": []}, "one to 4"),
    ({"numbers": ["xval"] * 5}, "one to 4"),
    ({"numbers": ["bits"], "overflow": "error"}, "bits cannot hold 1e99; use overflow='text' (--o"),
    ({"tokenizer": "/no/such/file"}, "/no/such/file does not exist"),
    ({"text": "\ud800"}, "lone surrogate"),
    *((body, "cannot be read") for body in ("", "[]", "5", "{}", "\0", "[" * 15000)),
    ({"numbers": [["xval"]]}, "cannot be read"),
    ({"numbers": 5}, "cannot be read"),
]


@pytest.mark.parametrize(("asked", "error"), REFUSED)
def test_what_cannot_be_shown_or_is_no_question_is_said(port, asked, error):
    body = asked if isinstance(asked, str) else json.dumps(QUESTION | asked)
    status, told, _ = fetch(port, "POST", "/inspect", body)
    assert status == (400 if error == "cannot be read" else 200)
    assert error in json.loads(told)["error"]


def test_only_the_page_itself_is_answered(port):
    body = json.dumps({"text": "5", "numbers": ["xval"]})
    for method in ("GET", "POST"):
        for host in ("evil.example", f"127.0.0.1.evil.example:{port}", ""):
            assert fetch(port, method, "/", body, Host=host)[0] == 403
        assert fetch(port, method, "/", body, Host=f"localhost:{port}")[0] == 200
        assert fetch(port, method, "/", body, Origin="http://evil.example")[0] == 403
        assert fetch(port, method, "/", body, Origin=f"http://127.0.0.1:{port}")[0] == 200
    assert fetch(port, "GET", "/etc/passwd")[0] == 404
    for length, status in (str(LONGEST + 1), 413), ("9" * 99, 411), ("-1", 411), ("x", 411):
        assert fetch(port, "POST", "/inspect", **{"Content-Length": length})[0] == status


def test_the_page_may_run_its_own_scripts_and_load_nothing(port):
    _, page, headers = fetch(port, "GET", "/")
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; connect-src 'self'; ")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    (allowed,) = re.findall("script-src ([^;]+)", policy)
    assert allowed.split() == [f"'sha256-{one}'" for one in hashes] and len(hashes) == 2
    assert not re.search(r"\bsrc=|href=|innerHTML|\beval\(|https?://(?!www.w3)", page)


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_a_link_is_drawn_and_hostile_text_does_not_run(port, tmp_path):
    state = [("text", HOSTILE[0]), ("numbers", "xval,bits"), ("numbers", "digits:1")]
    made = drawn(f"http://127.0.0.1:{port}/#{urllib.parse.urlencode(state)}", tmp_path)
    assert "<title>numtok: Playground</title>" in made
    assert made.count('class="bits"') == 8 and "<h3>digits:1</h3>" in made
    assert "&lt;/script&gt;&lt;script&gt;document.title" in made


def test_the_browser_is_opened_unless_told_otherwise(monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    opened = []
    done = threading.Event()
    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", interrupted)
    monkeypatch.setattr("webbrowser.open", lambda url: (opened.append(url), done.set()))
    for more in ("--no-browser", ""):
        told = ok(f"playground --port 0 {more}")
        assert told.endswith("ended\n")
    assert done.wait(600) and opened == [told.split()[0]]


def test_a_port_that_is_taken_is_an_error(port):
    told = refused(f"playground --port {port} --no-browser")
    assert f"cannot listen on port {port} of 127.0.0.1: " in told and "--port 0" in told
