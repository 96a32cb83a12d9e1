"""The pages of ``--html``: what is on them as JSON, put into ``page.html``, which draws it and loads
nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def page(data: dict[str, Any], part: str = "") -> str:
    """Return the page, with ``part`` at its end; nothing in the data can end the script that holds
    it.
    """
    held = json.dumps(data)
    for character in "<>&":
        held = held.replace(character, f"\\u{ord(character):04x}")
    template = Path(__file__).with_name("page.html").read_text("utf-8")
    return template.replace("</body>", part + "</body>").replace("{{data}}", held)
