"""Read a source tokenizer from wherever it is: its tokenizer.json as a dict, and nothing else.

A source is a tokenizer.json, a folder that holds one, a hub id, a ``tokenizers.Tokenizer``, a
transformers tokenizer, or ``None`` for the small default tokenizer of this package. Only JSON is
read: nothing in a folder can run code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from numtok.engines.config import TOKENIZER_FILE, Model, vocabulary_of
from numtok.errors import MissingDependencyError, TokenizerError
from numtok.options import conform

SETTINGS_FILE = "numtok.json"  # beside a tokenizer.json that numtok saved
SEALED = "numtok"  # where a sealed file holds the tokenizer.json
ADVICE = (  # reads on from "Unknown tokenizer version", which is how `tokenizers` refuses it
    "numtok: it knows numbers, which plain tokenizers would give wrong ids; pip install numtok,"
    " then load the folder with numtok.hf.NumberTokenizer or numtok.Tokenizer"
)
CHILDREN = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
LARGEST_ID = 2**31 - 2**20  # ids are int32, with room for the tokens that are added
DEFAULT_FOLDER = Path(__file__).parents[1] / "default"


class _AddedToken(TypedDict):
    content: str
    single_word: bool
    lstrip: bool
    rstrip: bool
    normalized: bool
    special: bool


class _Model(TypedDict):
    type: NotRequired[Literal["BPE", "WordPiece", "Unigram", "WordLevel"]]
    vocab: dict[str, int] | list[tuple[str, float]]  # of Unigram: tokens with their scores


class _Config(TypedDict):
    """The keys of a tokenizer.json that numtok itself reads; ``tokenizers`` checks all others."""

    model: _Model
    added_tokens: NotRequired[list[_AddedToken] | None]


def sealed(text: str) -> str:
    """Return the text of a tokenizer.json, put where only numtok reads it: any other reader would
    cut numbers as ordinary text, and fails on this one with :data:`ADVICE`.
    """
    refusal: dict[str, Any] = {"version": ADVICE, "model": {"type": ADVICE}, "added_tokens": []}
    refusal |= dict.fromkeys(CHILDREN)  # else transformers.js says only that they lack
    return f"{json.dumps(refusal)[:-1]}, {json.dumps(SEALED)}: {text.strip()}}}\n"


def load_source(source: Any = None) -> dict[str, Any]:
    """Return the tokenizer.json of ``source``.

    Raises:
        TokenizerError: if there is none, or it is not a tokenizer.json.
        MissingDependencyError: for a hub id without the ``huggingface_hub`` package.
    """
    if source is None:
        source = DEFAULT_FOLDER
    if isinstance(source, str | Path):
        path = _find(source)
        return numbered(_read(path), path)
    # transformers' fast tokenizers wrap a tokenizers.Tokenizer
    backend = getattr(source, "backend_tokenizer", source)
    if hasattr(backend, "to_str"):
        return numbered(dict(json.loads(backend.to_str())), type(source).__name__)
    raise TokenizerError(
        f"cannot read a tokenizer from {type(source).__name__}; give a tokenizer.json, its folder,"
        " a hub id, a tokenizers.Tokenizer or a fast transformers tokenizer (slow ones have no"
        " tokenizer.json: load them with use_fast=True)"
    )


def numbered(config: dict[str, Any], name: Any) -> dict[str, Any]:
    """Return ``config`` with the ids that its added tokens really have: ``tokenizers`` does not
    read them, it numbers those it does not know anew.

    Raises:
        TokenizerError: if a part is not what it should be, or an added token would get the id of
            another token, as the vocabulary has holes.
    """
    conform(config, _Config, str(name), TokenizerError)
    model = config["model"]
    _check_merges(model, name)
    _check_parts(config, name)
    vocabulary = vocabulary_of(config)
    ids: dict[str, int] = {}
    following = len(vocabulary)
    entries = []
    for token in config.get("added_tokens") or []:
        content = token["content"]
        if any("\ud800" <= character <= "\udfff" for character in content):
            raise TokenizerError(f"{name}: {content!a} in added_tokens is half of a character")
        ids[content] = vocabulary.get(content, ids.get(content, following))
        following = max(following, ids[content] + 1)
        entries.append(token | {"id": ids[content]})
    numbers = vocabulary.values()
    smallest, largest = min(numbers, default=0), max(numbers, default=-1)
    if len(set(numbers)) < len(numbers) or smallest < 0 or largest >= LARGEST_ID:
        raise TokenizerError(
            f"{name}: two tokens of the vocabulary have the same id, or one is below 0 or from"
            " 2**31 - 2**20 on"
        )
    if largest >= following:
        raise TokenizerError(
            f"{name}: the vocabulary has holes ({len(vocabulary)} tokens, ids up to {largest}), so"
            " that an added token would get the id of another one; fill the holes with unused"
            " tokens"
        )
    return config | {"model": Model(model), "added_tokens": entries}


def check_exists(source: str | Path) -> None:
    """Raise TokenizerError for what looks like a path, but is none; a hub id passes."""
    path, text = Path(source), str(source)
    local = path.suffix == ".json" or path.is_absolute() or text.startswith(".")
    if (local or text.count("/") > 1) and not path.exists():
        raise TokenizerError(
            f"{path} does not exist; give a tokenizer.json, its folder or a hub id such as"
            " EleutherAI/pythia-70m"
        )


def _find(source: str | Path) -> Path:
    check_exists(source)
    path = Path(source)
    if path.exists() and not (path.is_dir() or path.is_file()):
        raise TokenizerError(
            f"{path} is neither a file nor a folder, but a pipe or a device; give one"
        )
    if not path.is_dir():
        return path if path.is_file() else _download(str(source))
    if not (path / TOKENIZER_FILE).is_file():
        raise TokenizerError(
            f"{path} holds no {TOKENIZER_FILE}; save the tokenizer there with save_pretrained (fast"
            " tokenizers only)"
        )
    return path / TOKENIZER_FILE


def _download(hub_id: str) -> Path:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        message = (
            f"{hub_id} is neither a file nor a folder; loading it from the hub needs: pip install"
            " 'numtok[hf]'"
        )
        raise MissingDependencyError(message) from error
    try:
        return Path(hf_hub_download(hub_id, TOKENIZER_FILE))
    except Exception as error:  # network, HTTP, authorisation and cache errors have no common base
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise TokenizerError(
            f"{hub_id} is neither a file nor a folder, and the hub did not give its"
            f" {TOKENIZER_FILE}: {reason}"
        ) from error


def read_json(path: Path) -> Any:
    """Return the JSON in a file.

    Raises:
        TokenizerError: if it is none, or none that Python reads: nested without end, integers of
            thousands of digits.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise TokenizerError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TokenizerError(
            f"{path}: not UTF-8 at byte {error.start}, so not a {path.name}"
        ) from error
    except json.JSONDecodeError as error:
        raise TokenizerError(
            f"{path}:{error.lineno}:{error.colno}: not JSON ({error.msg}), so not a {path.name}"
        ) from error
    except RecursionError as error:
        raise TokenizerError(f"{path}: nested more deeply than any {path.name} is") from error
    except ValueError as error:
        raise TokenizerError(f"{path}: holds a number that is too long ({error})") from error


def _read(path: Path) -> dict[str, Any]:
    config = read_json(path)
    if isinstance(config, dict) and SEALED in config:
        config = config[SEALED]
        if path.name != TOKENIZER_FILE or not path.with_name(SETTINGS_FILE).is_file():
            raise TokenizerError(
                f"{path} was saved by numtok, but {SETTINGS_FILE} is missing beside it; copy both"
                f" files, as {TOKENIZER_FILE} and {SETTINGS_FILE}"
            )
    if not isinstance(config, dict) or not isinstance(config.get("model"), dict):
        raise TokenizerError(
            f"{path}: has no 'model', so it is not a {TOKENIZER_FILE} (a tokenizer_config.json or"
            " vocab.json will not do)"
        )
    return config


def _check_merges(model: dict[str, Any], name: Any) -> None:
    """Check that merges have the prefix that `tokenizers` takes away: else it ends the process."""
    prefix, merges = model.get("continuing_subword_prefix"), model.get("merges")
    if not isinstance(prefix, str) or not isinstance(merges, list):
        return
    for merge in merges if prefix else ():
        pair = merge.split(" ") if isinstance(merge, str) else merge
        if not (isinstance(pair, list) and pair and str(pair[-1]).startswith(prefix)):
            raise TokenizerError(
                f"{name}: the merge {str(merge)[:40]!r} does not go on with {prefix[:40]!r}, the"
                " model's continuing_subword_prefix"
            )


def _check_parts(config: dict[str, Any], name: Any) -> None:
    """Check that every component is an object with a type, and a sequence has a list of them."""
    parts = [(part, config.get(part)) for part in CHILDREN]
    while parts:
        part, content = parts.pop()
        if content is None:
            continue
        if not isinstance(content, dict) or not isinstance(content.get("type"), str):
            raise TokenizerError(
                f"{name}: {part} holds {str(content)[:40]}, which is not a component with a type"
            )
        if content["type"] == "Sequence":
            children = content.get(CHILDREN[part])
            if not isinstance(children, list) or None in children:
                raise TokenizerError(
                    f"{name}: the Sequence in {part} has no list of {CHILDREN[part]}"
                )
            parts += [(part, child) for child in children]
