"""The card of a folder: a README.md whose head the Hugging Face hub and ``datasets`` read. It says
what the manifests say, and so has the same bytes whoever writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from numtok.corpus.jobs.folder import Folder
from numtok.corpus.summary import summed

CARD = "README.md"
OURS = "<!-- numtok writes this file anew. Take this line out to keep what you change. -->"
_LONGEST = 1 << 20  # bytes of a card of ours
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_SHORT_FLOAT = re.compile(r"( -?\d)e(?=[+-]\d+,?$)", re.M)
_BODY = f"""
# Text and its numbers, encoded with numtok

{OURS}

A row is a document, or a row of the length that was asked for if they are packed: token ids, and
columns with its numbers. The head of this file says by which tokenizer and options.

```python
from datasets import load_dataset

rows = load_dataset("this folder, or the name of its repository")
```

| column | type |
|---|---|
"""


def write_card(folder: Folder, manifests: Mapping[str, dict[str, Any]]) -> None:
    """Write the card of finished jobs, unless somebody has written another; ``manifests`` are by the
    folder within, which is the name of the split, and empty for the folder itself.
    """
    from numtok.corpus.read.encoded import schema_of  # which reads all that a folder may hold

    if not _is_free(folder):
        return
    shards = (
        f"{split}/{shard['file']}".lstrip("/")
        for split, manifest in manifests.items()
        for shard in manifest["shards"]
    )
    first = next(shards, None)
    schema = () if first is None else schema_of(folder.file(first))
    columns = {field.name: str(field.type) for field in schema}
    shown = {re.sub(r"[\s|`]+", " ", name): kind for name, kind in columns.items()}
    rows = "".join(f"| `{name}` | {kind} |\n" for name, kind in shown.items())
    head = "".join(_yaml(name, value) for name, value in _head(manifests, columns).items())
    folder.replace(CARD, f"---\n{head}---\n{_BODY}{rows}")


def remove_card(folder: Folder) -> None:
    """Remove it, unless it is somebody else's."""
    if folder.size(CARD) is not None and _is_free(folder):
        folder.remove(CARD)


def _is_free(folder: Folder) -> bool:
    """Whether there is no such file, or one of ours; JobError for a link or a pipe."""
    if (folder.size(CARD) or 0) > _LONGEST:
        return False
    return OURS.encode() in (folder.read(CARD) or OURS.encode())


def _head(manifests: Mapping[str, dict[str, Any]], columns: dict[str, str]) -> dict[str, Any]:
    """Return the metadata of the card, from the manifest of each split and the columns' types."""
    first = next(iter(manifests.values()))
    options = first["options"]
    files = [
        {"split": split or "train", "path": f"{split}/*.{options['output_format']}".lstrip("/")}
        for split in manifests
    ]
    given_options = {n: one for n, one in options.items() if one is not None and n != "hash_range"}
    return {
        "tags": ["numtok"],
        "size_categories": [_size_category(sum(one["rows"] for one in manifests.values()))],
        "configs": [{"config_name": "default", "data_files": files}],
        "numtok": {
            **{name: first[name] for name in ("versions", "tokenizer", "fit")},
            "options": given_options,
            "rows": {split or "train": manifest["rows"] for split, manifest in manifests.items()},
            "report": summed([manifest["report"] for manifest in manifests.values()]),
            "columns": [{"name": name, "type": kind} for name, kind in columns.items()],
        },
    }


def _size_category(rows: int) -> str:
    """Return the size class of the hub: ``n<1K``, ``1K<n<10K`` and so on."""
    if rows < 1000:
        return "n<1K"
    names = [f"{digits}{unit}" for unit in "KMBT" for digits in (1, 10, 100)][:10]
    place = len(str(rows)) - 4
    return f"{names[place]}<n<{names[place + 1]}" if place < len(names) - 1 else "n>1T"


def _yaml(name: str, value: Any) -> str:
    """Return a key and its value as JSON, which is YAML but for some characters, and floats as
    1e-05.
    """
    text = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True).replace("\n", "\n ")
    text = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    text = _SHORT_FLOAT.sub(r"\1.0e", text)
    return f"{name}: {text}\n"
