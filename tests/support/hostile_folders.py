"""Tokenizer folders that are damaged or hostile: each variant is (what was done, text of
tokenizer.json, text of numtok.json).
"""

import copy
import json

import trained

from numtok import Tokenizer

WRONG = [None, 5, -1, 1.5, True, "a", [], {}, [None], [[]], {"type": None}]
WRONG += [{"type": "Nope"}]
PARTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
TEMPLATE = {"single": [{"SpecialToken": {"id": "no", "type_id": 0}}], "pair": []}
COMPONENTS = [
    {"type": "Sequence"},
    {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
    {"type": "Precompiled", "precompiled_charsmap": "/////w=="},
    {"type": "Metaspace", "replacement": "ab"},
    {"type": "ByteLevel"},
    {"type": "TemplateProcessing", **TEMPLATE, "special_tokens": {}},
]
Variant = tuple[str, str, str]


def deep(depth=100_000, kind="[]"):
    return kind[:-1] * depth + kind[-1] * depth


def with_one(content, path, value):
    """A copy with another value at the path; without it, if the value is ``...``."""
    # a vocabulary is long: only what leads to the place is copied
    changed = inner = copy.copy(content)
    for step in path[:-1]:
        inner[step] = copy.copy(inner[step])
        inner = inner[step]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


def changes(content, path):
    """Every key of the object at the path missing, and of every wrong type."""
    inner = content
    for step in path:
        inner = inner[step]
    for key in list(inner):
        for value in (..., *WRONG):
            yield f"{path} {key}={value}", with_one(content, [*path, key], value)


def of_tokenizer(config):
    """What is done to a tokenizer.json."""
    model = config["model"]
    for path in ([], ["model"], ["added_tokens", 0]):
        yield from ((name, json.dumps(changed)) for name, changed in changes(config, path))
    first = next(iter(model["vocab"])) if isinstance(model["vocab"], dict) else 5
    for value in [*WRONG, 2**31, 2**32, 10**30, 3, ["a"], ["a", None], [5, 1.0], ["a", 1.0, 2]]:
        yield f"vocab {value}", json.dumps(with_one(config, ["model", "vocab", first], value))
    if "merges" in model:
        for value in [*WRONG, "ab", "a b c", ["zz", "qq"], ["a"], [1, 2], ""]:
            merges = [value, *model["merges"]]
            yield f"merge {value}", json.dumps(with_one(config, ["model", "merges"], merges))
    for pattern in ("(", "[", "*", "(?P<x>", "\\p{Nope}"):
        regex = {"pattern": {"Regex": pattern}}
        split = {"type": "Split", **regex, "behavior": "Isolated", "invert": False}
        yield f"split {pattern}", json.dumps(with_one(config, ["pre_tokenizer"], split))
        replace = {"type": "Replace", **regex, "content": ""}
        yield f"replace {pattern}", json.dumps(with_one(config, ["normalizer"], replace))
    for part, children in PARTS.items():
        nested = [{"type": "Sequence", children: [child]} for child in (5, None)]
        for component in [*COMPONENTS, *nested]:
            yield f"{part} {component}", json.dumps(with_one(config, [part], component))
    yield from of_any_json(json.dumps(config))


def of_any_json(text):
    """What is done to any file."""
    inside = {"deep": deep(3000), "huge integer": "1" * 5000, "huge float": "1e999999999"}
    for name, value in (inside | {"not a number": "NaN"}).items():
        yield f"key {name}", f'{text[:-1]}, "x": {value}}}'
    nested = deep(kind='{"a":}').replace(":}", ":1}", 1)
    whole = [deep(), nested, "1" * 5000, "", "null", "{}", '"a"', "[1]"]
    for raw in (*whole, f"\ufeff{text}", f"{text}x", text[:-9]):
        yield f"all {raw[:9]}", raw
    yield "surrogate", '{"model": {"vocab": {"a": 0}}, "added_tokens": [{"content": "\\ud800"}]}'


def of_settings(settings):
    """What is done to a numtok.json."""
    for path in ([], ["grammar"], ["numbers", 0]):
        yield from ((name, json.dumps(changed)) for name, changed in changes(settings, path))
    for version in (99, 0, "1", 2):
        yield f"format {version}", json.dumps(settings | {"format": version})
    for options in (
        {"name": "no"},
        {"name": "fone", "int_digits": 10**9, "frac_digits": 1},
        {"name": "fone", "int_digits": 1, "frac_digits": 0, "chunk": 10**30},
        {"name": "fp15", "decades": [0, 10**9]},
        {"name": "exponent_bins", "n": 2**40},
        {"name": "xval", "scale": float("inf")},
    ):
        yield f"numbers {options}", json.dumps(settings | {"numbers": [options]})
    yield "pattern", json.dumps(with_one(settings, ["grammar", "pattern"], "("))
    yield from of_any_json(json.dumps(settings))


def variants(kind, folder):
    """Of the folder of one kind of tokenizer, which is saved to ``folder`` first."""
    Tokenizer(trained.config(kind), "xval").save_pretrained(folder)
    config, settings = (
        (folder / name).read_text("utf-8") for name in ("tokenizer.json", "numtok.json")
    )
    read = json.loads(config)
    for value in (..., *WRONG):
        yield f"sealed {value}", json.dumps(with_one(read, ["numtok"], value)), settings
    yield from ((name, text, settings) for name, text in of_tokenizer(read["numtok"]))
    yield from ((name, config, text) for name, text in of_settings(json.loads(settings)))
