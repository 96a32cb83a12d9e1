"""The pages of ``--html``: the data in them, and what a browser draws of it, where there is one."""

import json
import re
import shutil
import subprocess

BROWSER = shutil.which("chromium")
HOSTILE = [
    "</script><script>document.title='run'</script> 5 <b> & 6\"7' 8\u202e9 10\x1b[31m <!-- 3",
    "1e999999 -1e-999999 ٤٢ <img src=x onerror=document.title='run'> 4 ]]> {{data}}",
    "no number",
]


def page_data(path):
    """What a page was made of; it must be whole, load nothing, and make HTML of no data."""
    page = path.read_text("utf-8")
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    rest = page.replace(held, "")
    assert "default-src 'none'" in rest and page.count("<script") == 2
    assert not re.search(r"<!--|\bsrc=|href=|innerHTML|\beval\(|fetch\(|https?://(?!www.w3)", rest)
    assert len(page.encode()) < 200_000 and not set("<>&") & set(held) and held.isascii()
    return json.loads(held)


def drawn(page, folder):
    """The HTML of a page, a file or a URL, once its script has run and has its answers."""
    options = "--headless --no-sandbox --disable-gpu --disable-background-networking --dump-dom"
    options += " --virtual-time-budget=5000"
    command = [
        str(BROWSER),
        *options.split(),
        f"--user-data-dir={folder}",
        page if isinstance(page, str) else page.absolute().as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return done.stdout.partition('<script type="application/json"')[0]
