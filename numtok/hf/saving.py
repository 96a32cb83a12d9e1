"""Save a drop-in tokenizer: the files of transformers, each in one step (``numtok.files``),
``numtok.json``, and one line of Python with which AutoTokenizer finds the class. Also remove the
number tokens of a tokenizer that is to be exported or trained anew.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerFast

from numtok.arrays.text_rows import TextRows
from numtok.engines.hf_tokenizers import load
from numtok.errors import NumtokError, OutputError
from numtok.files import write_file
from numtok.hf.general import with_backend
from numtok.hf.placeholders import replace_numbers
from numtok.tokenizer.saving import write_json
from numtok.tokenizer.tokenizer import Tokenizer
from numtok.tokenizer.tokenizer_json import SETTINGS_FILE

SHIM = "numtok_tokenizer"  # the module in a saved folder that imports the class, for AutoTokenizer


def write_own_files(folder: str | os.PathLike[str], settings: Any) -> tuple[str, str]:
    """Write the files that transformers does not write, and return their names."""
    settings_path, shim = Path(folder, SETTINGS_FILE), Path(folder, f"{SHIM}.py")
    write_json(settings_path, settings)
    shim.write_text("from numtok.hf import NumberTokenizer as NumberTokenizer\n", "utf-8")
    return str(settings_path), str(shim)


def save_whole(
    folder: str | os.PathLike[str], save: Callable[[str], tuple[str, ...] | None]
) -> tuple[str, ...]:
    """Let ``save`` write into a temporary folder, then bring its files into ``folder``; returns the
    names that it returned, there.

    transformers and ``tokenizers`` write straight into the folder they are given, and so leave half
    a file on a full disk. OutputError if the system refuses; no file is left half-written.
    """
    with tempfile.TemporaryDirectory(prefix="numtok-") as staging:
        try:
            names = save(staging) or ()
        except NumtokError:
            raise
        except Exception as error:
            if not isinstance(error, OSError) and type(error) is not Exception:  # of `tokenizers`
                raise
            raise OutputError(
                f"cannot save to {folder}: {error}; make room for temporary files, then run again"
            ) from error
        for path in sorted(Path(staging).rglob("*")):
            if path.is_file():
                write_file(Path(folder, path.relative_to(staging)), path.read_bytes())
        return tuple(str(Path(folder, Path(name).relative_to(staging))) for name in names)


def without_number_tokens(
    tokenizer: PreTrainedTokenizerFast, numtok: Tokenizer
) -> PreTrainedTokenizerFast:
    """Return a stock tokenizer, the same except for the number tokens and settings."""
    config = json.loads(tokenizer.backend_tokenizer.to_str())
    added = config["added_tokens"]
    config["added_tokens"] = [one for one in added if one["content"] not in numtok.own_tokens]
    stock = with_backend(tokenizer, load(config))
    options = tokenizer.init_kwargs
    stock.init_kwargs = {name: options[name] for name in options if name != "number_settings"}
    return stock


def between_numbers(batches: Iterable[Any], numtok: Tokenizer) -> Iterator[list[str]]:
    """Yield the chunks of text between the numbers of each batch; the texts, if numbers are text."""
    for batch in batches:
        texts = [batch] if isinstance(batch, str) else list(batch)
        if numtok.representations[0].stays_text:
            yield texts
            continue
        chunks = []
        for one in replace_numbers(texts, numtok.selector.select(TextRows.of(texts)).numbers, None):
            starts, stops = [*one.starts.tolist(), len(one.text)], [0, *one.stops.tolist()]
            chunks += [one.text[a:b] for a, b in zip(stops, starts, strict=True) if a < b]
        yield chunks
