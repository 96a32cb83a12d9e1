"""Input files for the tests of readers: written, read whole, or refused with an error that names
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from numtok.corpus.read.batches import ReadOptions, TextBatch
from numtok.corpus.read.documents import find_inputs, read_batches
from numtok.corpus.read.template import Template
from numtok.errors import InputError


def batches_of(path: Path | str, **options: Any) -> list[TextBatch]:
    if "template" in options:
        options["template"] = Template(options["template"])
    how = ReadOptions(**options)
    return [batch for source in find_inputs([path]) for batch in read_batches(source, how)]


def read_all(path: Path | str, **options: Any) -> list[str | None]:
    batches = batches_of(path, **options)
    for batch in batches:
        batch.texts.validate(full=True)
        assert all(len(column) == len(batch.texts) for column in batch.kept.values())
    return [text for batch in batches for text in batch.texts.to_pylist()]


def write(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def failure(path: Path | str, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read_all(path, **options)
    assert str(caught.value).startswith(str(path)), "an input error begins with the file"
    return caught.value
