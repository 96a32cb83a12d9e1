"""Writes the tables of advice in README.md and docs/choosing.md from ``numtok.statistics.advice``:
``python docs/advice.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

from numtok.statistics.advice import choosing_table, readme_table

ROOT = Path(__file__).resolve().parent.parent
TABLES = {
    ROOT / "README.md": (r"\| you have, and want \|.*\n(?:\|.*\n)+", readme_table),
    ROOT / "docs" / "choosing.md": (r"\| the model has to \|.*\n(?:\|.*\n)+", choosing_table),
}


def with_table(path: Path) -> str:
    """Return the page with its table as the code has it."""
    pattern, table = TABLES[path]
    text, count = re.subn(pattern, lambda _: table(), path.read_text("utf-8"))
    if count != 1:
        raise ValueError(f"{path} has {count} tables of advice in place of one")
    return text


if __name__ == "__main__":
    for page in TABLES:
        page.write_text(with_table(page), "utf-8")
