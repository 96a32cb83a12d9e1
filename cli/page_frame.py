"""What every page has around its content: one self-contained file, light and dark, which a policy
forbids to load anything.

In: a title, HTML that is escaped already, and the style that only this page has. Out: the page;
    :func:`write_page` puts it into a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from .page_style import BASE, BEHAVIOUR, PALETTES

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def framed(title: str, content: Iterable[str], style: str) -> str:
    """The whole page."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        (
            "<title>numtok:"
            f" {escape(title)}</title><style>{PALETTES}{BASE}{style}</style></head><body><main>"
        ),
        (
            f'<header><div class="mark" aria-hidden="true">#</div><h1>{escape(title)}</h1><button'
            ' type="button">Dark</button></header>'
        ),
        *content,
        f'</main><div id="tip"></div><script>{BEHAVIOUR}</script></body></html>',
    ]
    return "\n".join(parts) + "\n"


def check_folder(path: str) -> None:
    """Refuse a file whose folder is not there."""
    from numtok.errors import OutputError

    if "://" not in path and not Path(path).parent.is_dir():
        raise OutputError(
            f"cannot write {path}: there is no folder {Path(path).parent}; make it, or choose"
            " another place"
        )


def write_page(page: str, path: str) -> None:
    """Write a page, replacing what is there in one step."""
    from numtok.files import write_file

    check_folder(path)
    write_file(path, page)
