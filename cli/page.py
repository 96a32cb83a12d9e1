"""The pages of ``--html``: what is on them as JSON, put into ``page.html``, which draws it and loads
nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def check_folder(path: str) -> None:
    """Refuse a file whose folder is not there."""
    from numtok.errors import OutputError

    folder = Path(path).parent
    if "://" not in path and not folder.is_dir():
        raise OutputError(
            f"cannot write {path}: there is no folder {folder}; make it, or choose another place"
        )


def write_page(data: dict[str, Any], path: str) -> None:
    """Write a page, replacing what is there in one step."""
    from numtok.files import write_file

    check_folder(path)
    write_file(path, page(data))


def page(data: dict[str, Any], part: str = "") -> str:
    """Return the page, with ``part`` at its end; nothing in the data can end the script that holds
    it.
    """
    held = json.dumps(data)
    for character in "<>&":
        held = held.replace(character, f"\\u{ord(character):04x}")
    template = Path(__file__).with_name("page.html").read_text("utf-8")
    return template.replace("</body>", part + "</body>").replace("{{data}}", held)
