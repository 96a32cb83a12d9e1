"""The folder of a job as its readers know it: what the job keeps about itself, which is no data,
and whether it is finished.

In: paths. Out: the names of the job's own files, which ``FORMAT.md`` describes; the tokenizer that
    lies beside the shards.
"""

from __future__ import annotations

import os
from pathlib import Path

from numtok import locations
from numtok.errors import InputError

# all that is not data; other programs skip such a name: datasets for its two underscores, pyarrow
# and Spark for one
OWN = "__numtok"
PLAN, MANIFEST, TOKENIZER = f"{OWN}/plan.json", f"{OWN}/manifest.json", f"{OWN}/tokenizer"
DATA = (
    ".parquet",
    ".arrow",
    ".feather",
    ".ipc",
)  # files that readers of a folder take for a part of the corpus


def refuse_unfinished(folder: str | Path) -> None:
    """``InputError`` if shards may be missing: a part of a corpus must not be taken for all of it."""
    if locations.exists(locations.join(folder, PLAN)) and not locations.exists(
        locations.join(folder, MANIFEST)
    ):
        raise InputError(
            "its job is not finished, so that documents are missing; run the same `numtok encode`"
            " again, or `numtok finish`",
            str(folder),
        )


def saved_beside(path: str | Path) -> str | None:
    """The tokenizer.json of the job that the folder, or the file in it, belongs to; None if there
    is none.
    """
    folder = path if locations.is_folder(path) else os.path.dirname(path)
    found = locations.join(folder, f"{TOKENIZER}/tokenizer.json")
    return found if locations.is_file(found) else None
