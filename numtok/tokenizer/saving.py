"""A saved tokenizer: a folder with ``tokenizer.json`` and ``numtok.json``, which says what it is
besides; every part of it is checked when it is read. And the plain tokenizer.json of an export: groups
of digits are rows of the vocabulary, behind the ids that there are, and its own pre-tokenizer cuts
them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from numtok import storage
from numtok.arrays import file_cache
from numtok.engines.config import (
    TOKENIZER_FILE,
    Config,
    Model,
    to_json,
    tokenizer_errors,
    vocabulary_of,
)
from numtok.engines.hf_tokenizers import complete_library, load
from numtok.engines.vocabulary_rows import rows_refused, with_splits, with_vocabulary
from numtok.errors import NumtokError, OutputError, TokenizerError
from numtok.files import write_file
from numtok.numbers.grammar import Grammar
from numtok.options import conform
from numtok.representations import Representation, XVal, from_dict, representations_of
from numtok.representations.base import PlainForm
from numtok.tokenizer.tokenizer_json import SETTINGS_FILE, numbered, read_json, sealed
from numtok.tokenizer.vocabulary import OWN_SYMBOL

SAVED_VERSION = 1
CONFIG_FILE = "tokenizer_config.json"
STOCK = "PreTrainedTokenizerFast"
STOCK_SHIM = "stock_tokenizer"  # the module in an exported folder that imports that class


def save(
    folder: str | Path, config: Mapping[str, Any], settings: Mapping[str, Any], plain: bool
) -> None:
    """Write both files to a folder; ``plain``: other programs read the tokenizer.json rightly, and
    ``AutoTokenizer`` reads it too.
    """
    if not isinstance(folder, str | Path):
        raise OutputError(f"expected the folder to save to, got {type(folder).__name__}")
    text = json.dumps(config, ensure_ascii=False) + "\n"
    write_file(storage.join(folder, TOKENIZER_FILE), text if plain else sealed(text))
    write_json(storage.join(folder, SETTINGS_FILE), settings)
    if plain:
        _name_stock_class(folder)


def _name_stock_class(folder: str | Path) -> None:
    """Name the class for ``AutoTokenizer``. What transformers wrote before, such as a chat
    template, stays.
    """
    path = Path(folder, CONFIG_FILE)
    before = {} if storage.is_url(folder) or not path.is_file() else read_json(path)
    stale = ("number_settings", "added_tokens_decoder")
    config = {name: value for name, value in before.items() if name not in stale} | {
        "tokenizer_class": STOCK,
        # else, beside the config.json of some models, such as Qwen2, AutoTokenizer takes the class
        # of that model, which has a pre-tokenizer of its own
        "auto_map": {"AutoTokenizer": [None, f"{STOCK_SHIM}.{STOCK}"]},
    }
    write_json(storage.join(folder, CONFIG_FILE), config)
    shim = f"from transformers import {STOCK} as {STOCK}\n"
    write_file(storage.join(folder, f"{STOCK_SHIM}.py"), shim)


def refuse_to_replace(folder: str | Path, overwrite: bool) -> None:
    """Raise OutputError if there is a tokenizer.json already that is not to be replaced."""
    if overwrite or storage.is_url(folder):
        return
    if (path := Path(folder, TOKENIZER_FILE)).exists():
        raise OutputError(
            f"{path} exists already; choose another folder, or overwrite it with overwrite=True"
            " (--overwrite)"
        )


@contextlib.contextmanager
def fetched(source: Any) -> Iterator[Any]:
    """Yield the source, or a local copy of what was saved to a URL: the tokenizer.json, and what
    lies beside it.
    """
    if not storage.is_url(source):
        yield source
        return
    url: str = source
    folder, _, name = url.rstrip("/").rpartition("/")
    if not name.endswith(".json"):
        folder, name = url, TOKENIZER_FILE
    wanted = [name, SETTINGS_FILE] if name == TOKENIZER_FILE else [name]
    with storage.fetched(folder, wanted) as local:
        if not (local / name).exists():
            raise TokenizerError(f"{url}: there is no {TOKENIZER_FILE}; check the URL")
        yield local / name


def write_json(path: str | Path, content: Any) -> None:
    """Write JSON in one step; ``OutputError`` if the disk refuses."""
    write_file(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def fingerprint_of(
    config: dict[str, Any],
    representations: Sequence[Representation],
    grammar: Grammar,
    leading_space: str,
    with_form: bool = False,
) -> str:
    """Return a fingerprint that is equal for tokenizers that give equal ids, whatever a
    representation was called when they were saved, and, unless ``with_form``, whether its columns
    are dense or compact.
    """
    numbers = [one.identity() for one in representations]
    for identity, one in zip(numbers, representations, strict=True):
        if with_form and "compact" in identity:
            identity["compact"] = one.to_dict()["compact"]
    options = {"leading_space": leading_space, "grammar": grammar.to_dict(), "numbers": numbers}

    def compute() -> str:
        text = json.dumps({"tokenizer": essential(config), **options}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    key = [to_json(config), json.dumps(options, sort_keys=True)]
    return file_cache.cached("fingerprint", key, compute)


def settings(
    representations: Sequence[Representation],
    grammar: Grammar,
    leading_space: str,
    own_tokens: Collection[str],
) -> dict[str, Any]:
    """Return the content of ``numtok.json``: all settings but the tokenizer.json."""
    return {
        "format": SAVED_VERSION,
        "grammar": grammar.to_dict(),
        "numbers": [representation.to_dict() for representation in representations],
        "leading_space": leading_space,
        "tokens": [content for content in own_tokens if not OWN_SYMBOL.fullmatch(content)],
    }


def complete_options(source: Any, **given: Any) -> dict[str, Any]:
    """Return the options of :class:`numtok.Tokenizer` (``numbers``, ``grammar``, ``leading_space``
    and ``own``): those of ``given`` that are not None, else those of the saved source, else the
    defaults.
    """
    options: dict[str, Any] = {"numbers": [XVal()]}
    if saved := read_settings(source):
        options["numbers"] = [*map(from_dict, saved["numbers"])]
        options["grammar"] = Grammar.from_dict(saved["grammar"])
        options["leading_space"] = saved["leading_space"]
        options["own"] = saved.get("tokens", ())
    return options | {name: value for name, value in given.items() if value is not None}


def read_settings(source: Any) -> dict[str, Any] | None:
    """Return the numtok.json beside a saved tokenizer, or None; TokenizerError if damaged."""
    if not isinstance(source, str | Path):
        return None
    path = Path(source)
    path = (path if path.is_dir() else path.parent) / SETTINGS_FILE
    if not path.is_file() or (Path(source).is_file() and Path(source).name != TOKENIZER_FILE):
        return None
    return check_settings(read_json(path), path)


class _Settings(TypedDict):
    grammar: Any
    numbers: list[Any]
    leading_space: Literal["auto", "separate"]
    tokens: NotRequired[list[str]]


def check_settings(settings: Any, where: Any) -> dict[str, Any]:
    """Return ``settings``, if they are what :meth:`Tokenizer.saved_settings` makes; ``where`` they
    are from is for the message.
    """
    version = settings.get("format") if isinstance(settings, Mapping) else None
    if type(version) is int and version != SAVED_VERSION:
        raise TokenizerError(
            f"{where} has format {str(version)[:20]}, this version of numtok reads format"
            f" {SAVED_VERSION}; upgrade numtok"
        )
    if type(version) is not int:
        raise TokenizerError(f"{where} is damaged: it tells no format; save the tokenizer again")
    conform(settings, _Settings, f"{where} is damaged", TokenizerError)
    try:
        Grammar.from_dict(settings["grammar"])
        representations_of([*map(from_dict, settings["numbers"])])
    except NumtokError as error:
        raise TokenizerError(f"{where} is damaged: {error}; save the tokenizer again") from error
    return dict(settings)


def essential(config: dict[str, Any]) -> dict[str, Any]:
    """Return what decides on the ids in a tokenizer.json, in one way of writing it: `tokenizers`
    and transformers write the same differently.

    Merges are pairs, a template without special tokens is none, and truncation and padding, which
    belong to a call, are left out.
    """
    model, processor = config["model"], config.get("post_processor") or {}
    if merges := model.get("merges"):
        pairs = [pair.split(" ") if isinstance(pair, str) else list(pair) for pair in merges]
        model = model | {"merges": pairs}
    if processor.get("type") == "TemplateProcessing" and not processor.get("special_tokens"):
        processor = {}
    left_out = ("version", "truncation", "padding")
    kept = {name: part for name, part in config.items() if name not in left_out}
    return kept | {"model": model, "post_processor": processor or None}


# A plain tokenizer.json
# -------------------------------------------------------------------------------------------------


def plain_config(
    config: Config, own_tokens: Collection[str], form: PlainForm
) -> tuple[Config, tuple[str, ...]]:
    """Return (``config`` without numtok's ``own_tokens``, with numbers in this form; the rows that it
    lacked). TokenizerError if the source's model or pre-tokenizer lets no groups of digits be rows.
    """
    kept = [token for token in config["added_tokens"] if token["content"] not in own_tokens]
    source = config | {"added_tokens": kept, "truncation": None, "padding": None}
    if numbered(source, "the tokenizer")["added_tokens"] != kept:
        raise TokenizerError(
            "the source has tokens that were added after numtok's own, whose ids would change"
            " without them; export a tokenizer that is made from the original source"
        )
    if not form.rows:
        return source, ()
    complete_library("writing a tokenizer.json with groups of digits")
    vocabulary = {*vocabulary_of(source), *(token["content"] for token in kept)}
    added = tuple(row for row in form.rows if row not in vocabulary)
    rows = [row for row in form.rows if row not in {token["content"] for token in kept}]
    exported = with_splits(source, form.splits) | {"model": _with_rows(source, rows, added)}
    _check_rows(exported, form.rows)
    return exported, added


def _with_rows(source: Config, rows: Sequence[str], added: Sequence[str]) -> Model:
    """Return the source's model with every row as one token of its own; ids stay."""
    model = with_vocabulary(source, added)
    if isinstance(model["vocab"], list):
        return _likelier(model, rows)
    return _merged(model, rows) if model.get("type", "BPE") == "BPE" else Model(model)


def _merged(model: dict[str, Any], rows: Sequence[str]) -> Model:
    """Return BPE with further merges, the last of all, that make each row of what the others make
    of it.
    """
    if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        raise rows_refused("its BPE marks where words begin or end")
    as_text = any(isinstance(pair, str) for pair in model["merges"])
    for width in sorted(set(map(len, rows))):
        wide = [row for row in rows if len(row) == width]
        pairs = [tokens for tokens in _tokens(model, wide) if len(tokens) == 2]
        merges = [" ".join(pair) if as_text else pair for pair in pairs]
        model["merges"] = [*model["merges"], *merges]
    return Model(model)


def _likelier(model: dict[str, Any], rows: Sequence[str]) -> Model:
    """Return a Unigram model in which a group (score 0) is likelier than its digits (below 0). Every
    digit is cut off the text beside it, so nothing else changes.
    """
    groups = {row for row in rows if len(row) > 1}
    model["vocab"] = [[one, 0.0 if one in groups else score] for one, score in model["vocab"]]
    return Model(model)


def _tokens(model: dict[str, Any], texts: Sequence[str]) -> list[list[str]]:
    """Return the tokens of texts by the model alone."""
    alone = {"version": "1.0", "added_tokens": [], "model": model}
    with tokenizer_errors("the vocabulary cannot be given rows for digits"):
        bare = load(alone)
        return [one.tokens for one in bare.encode_batch(list(texts), add_special_tokens=False)]


def _check_rows(config: Config, rows: Sequence[str]) -> None:
    """Check that every row is one token, after the space that some tokenizers begin with."""
    with tokenizer_errors("the exported tokenizer.json does not load"):
        loaded = load(config)
        ids = [one.ids for one in loaded.encode_batch(list(rows), add_special_tokens=False)]
        begin = loaded.encode("0", add_special_tokens=False).ids[:-1]
    for row, row_ids in zip(rows, ids, strict=True):
        if row_ids != [*begin, loaded.token_to_id(row)]:
            raise rows_refused(f"it cuts {row!r} by itself")
