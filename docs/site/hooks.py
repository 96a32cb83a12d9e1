"""Hooks of MkDocs that add pages from elsewhere in the repository to the site, and make links lead
to pages of the site or to files in the repository.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

import click
import jupytext
from mkdocs.structure.files import File, Files

LOG = logging.getLogger("mkdocs.hooks.numtok")
ROOT = Path(__file__).parents[2]
ELSEWHERE = {
    "README.md": "index.md",
    "numtok/FORMAT.md": "format.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/sample.jsonl": "sample.jsonl",
}
LIES_AT = {page: path for path, page in ELSEWHERE.items()}
LINK = re.compile(r"""(\]\(|<img src=")([^)\s"#]+)((?:#[^)\s"]*)?)([)"])""")
PATH_AS_TEXT = re.compile(r"\[`?([\w./-]+\.md)`?\](?=\(([^)\s#]+)[)#])")
TITLE = re.compile(r"^# (.+)$", re.M)
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
SHORT = re.compile("<code>(?=[^<]{1,30}</code>)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside docs/, and a notebook of each tutorial."""
    for path, page in ELSEWHERE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text("utf-8")))
    for page in [file for file in files if file.src_uri.startswith("tutorials/")]:
        notebook = jupytext.reads(page.content_string, "md")
        content = jupytext.writes(notebook, "ipynb")
        name = page.src_uri.replace(".md", ".ipynb")
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Make every link lead to a page or file of the site, else to the file in the repository. A
    link whose text is the path of a page shows the title of the page.
    """
    here = page.file.src_uri
    source = LIES_AT.get(here, f"docs/{here}")
    if here == "index.md":
        page.meta["hide"] = ["navigation"]  # leaves more room for code
    if here == "reference/cli.md":
        markdown += command_line()
    if here.startswith("tutorials/"):
        name = Path(here).with_suffix(".ipynb").name
        markdown += f'\n\n<a href="../{name}" download>This page as a notebook</a>\n'

    def titled(match: re.Match[str]) -> str:
        path = (ROOT / source).parent / match[2]
        shown = path.name == Path(match[1]).name and path.is_file() and _on_site(path)
        title = TITLE.search(path.read_text("utf-8")) if shown else None
        return f"[{title[1]}]" if title else match[0]

    def led(match: re.Match[str]) -> str:
        before, target, anchor, after = match.groups()
        if ":" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        # MkDocs adapts links in Markdown to the page's address, but not those in HTML
        seen_from = page.url + "index.html" if before.startswith("<img") else here
        return f"{before}{_address(path, seen_from, config)}{anchor}{after}"

    pieces = FENCE.split(markdown)
    fences = [*FENCE.findall(markdown), ""]
    return "".join(
        LINK.sub(led, PATH_AS_TEXT.sub(titled, _plain(piece))) + fence
        for piece, fence in zip(pieces, fences, strict=True)
    )


def on_page_content(html: str, **_: Any) -> str:
    """Keep short code on one line: a browser would break ``--numbers`` after its dashes."""
    return SHORT.sub('<code class="whole">', html)


def _plain(prose: str) -> str:
    """Escape angle brackets, as Python's Markdown leaves a backslash before one."""
    return prose.replace(r"\<", "&lt;").replace(r"\>", "&gt;")


def command_line() -> str:
    """Return the help of every command, as ``--help`` prints it."""
    from numtok_cli.main import cli

    text = ""
    for name, command in (("", cli), *sorted(cli.commands.items())):
        context = click.Context(command, info_name=f"numtok {name}".strip(), terminal_width=80)
        text += f"\n## {context.info_name}\n\n```text\n{command.get_help(context)}\n```\n"
    return text


def _on_site(path: Path) -> bool:
    """Whether the site has a page of this file."""
    name = posixpath.normpath(path.resolve().relative_to(ROOT).as_posix())
    return name in ELSEWHERE or name.startswith("docs/")


def _address(path: str, here: str, config: Any) -> str:
    """Return the address of a path of the repository, relative to the page ``here``."""
    on_site = ELSEWHERE.get(path) or path.removeprefix("docs/") * path.startswith("docs/")
    if on_site and not on_site.endswith(".py"):
        return posixpath.relpath(on_site, posixpath.dirname(here) or ".")
    if not (ROOT / path).exists():
        LOG.warning("%s links to %s, which is not there", here, path)
    return f"{config['repo_url']}/blob/main/{path}"
