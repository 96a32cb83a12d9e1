"""The house: imports point one way and in no circle, nobody takes a private name from another
module, what differs between representations is theirs to say, and files stay short.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from places import ROOT

import numtok.representations
from numtok.representations import Representation, SingleToken, SpelledOut

PACKAGES = {"numtok": "numtok", "numtok_torch": "numtok_torch", "numtok_cli": "cli"}
LINES = 500

# A room imports only rooms before it. "numtok" is the face: what `import numtok` gives.
ROOMS = ["errors", "score", "locations", "arrays", "numbers", "representations", "engines"]
ROOMS += ["tokenizer", "statistics", "corpus", "hf", "testing"]
TORCH_ROOMS = ["data", "embeddings", "heads", "model", "generation", "metrics"]


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of ours by its dotted name."""
    found = {}
    for package, folder in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join([package, *inner]).removesuffix(".__init__")] = path
    return found


def imports_in(source: str, module: str, is_package: bool) -> Iterator[tuple[str, str | None]]:
    """(module, name taken from it) of each import, wherever it stands: at the top, inside functions
    and under TYPE_CHECKING.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[
                    : None if is_package and node.level == 1 else -(node.level - is_package)
                ]
                base = ".".join([*parents, base] if base else parents)
            yield from ((base, alias.name) for alias in node.names)


def resolve(target: str, name: str | None, known: dict[str, Path]) -> tuple[str, str | None] | None:
    """The module of ours that is meant, and the name taken from it if that is not itself a module;
    None for what is not ours.
    """
    if name is not None and f"{target}.{name}" in known:
        return f"{target}.{name}", None
    return (target, name) if target in known else None


@functools.cache
def imports() -> dict[str, set[tuple[str, str | None]]]:
    known = modules()
    return {
        module: {
            place
            for target, name in imports_in(
                path.read_text("utf-8"), module, path.name == "__init__.py"
            )
            if (place := resolve(target, name, known)) and place[0] != module
        }
        for module, path in known.items()
    }


def circles_of(arrows: dict[str, set[str]]) -> set[frozenset[str]]:
    """Groups of modules each of which imports, over however many steps, every other."""

    @functools.cache
    def reached(start: str) -> frozenset[str]:
        seen, waiting = set(), [start]
        while waiting:
            fresh = arrows[waiting.pop()] - seen
            seen |= fresh
            waiting += fresh
        return frozenset(seen)

    return {
        frozenset(other for other in reached(module) if module in reached(other))
        for module in arrows
        if module in reached(module)
    }


def private(name: str | None) -> bool:
    return name is not None and name.startswith("_") and not name.startswith("__")


def room(module: str) -> tuple[str, int] | None:
    """(package, place in its list of rooms); None for faces and for the command line, which may
    import everything.
    """
    package, _, rest = module.partition(".")
    rooms = {"numtok": ROOMS, "numtok_torch": TORCH_ROOMS}.get(package, [])
    name = rest.split(".")[0]
    return (package, rooms.index(name)) if name in rooms else None


def test_no_module_imports_itself_by_way_of_others() -> None:
    circles = circles_of(
        {module: {target for target, _ in taken} for module, taken in imports().items()}
    )
    assert circles == set()


def test_private_names_stay_in_their_module() -> None:
    assert [
        (module, target, name)
        for module, taken in imports().items()
        for target, name in taken
        if private(name)
    ] == []


def test_a_room_imports_only_rooms_before_it() -> None:
    upward = set()
    for module, taken in imports().items():
        for target, _ in taken:
            here, there = room(module), room(target)
            if here and there and here[0] == there[0] and there[1] > here[1]:
                upward.add((module, target))
    assert upward == set()


def test_the_core_imports_neither_torch_layers_nor_the_command_line() -> None:
    for module, taken in imports().items():
        packages = {target.partition(".")[0] for target, _ in taken}
        allowed = {
            "numtok": {"numtok"},
            "numtok_torch": {"numtok", "numtok_torch"},
            "numtok_cli": set(PACKAGES),
        }[module.partition(".")[0]]
        assert packages <= allowed, module


def kinds_asked_for(source: str, names: frozenset[str]) -> Iterator[tuple[int, str]]:
    """(line, class) wherever code asks whether something is one of these classes: ``isinstance``,
    ``issubclass``, ``type(x) is`` and ``case``.
    """
    for node in ast.walk(ast.parse(source)):
        asked: list[ast.expr] = []
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            asked = node.args[1:]
        elif isinstance(node, ast.Compare) and any(
            isinstance(part, ast.Call) and ast.unparse(part.func) == "type"
            for part in ast.walk(node)
        ):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        for part in (part for expression in asked for part in ast.walk(expression)):
            name = {ast.Name: "id", ast.Attribute: "attr"}.get(type(part))
            if name is not None and getattr(part, name) in names:
                yield part.lineno, getattr(part, name)


def test_no_one_outside_their_room_asks_which_representation_it_is() -> None:
    """What differs is an attribute or a method that they have, so that one of a user's own is
    served like ours.
    """
    classes = frozenset(
        name
        for name, kind in representation_classes().items()
        if kind
        not in (Representation, SingleToken, SpelledOut)  # the kinds, which may be asked for
    )
    assert {"XVal", "PlaceValue", "Subword", "Charton"} <= classes
    others = [
        path for package in ("benchmarks", "examples") for path in (ROOT / package).rglob("*.py")
    ]
    paths = [
        path
        for module, path in modules().items()
        if not module.startswith("numtok.representations")
    ]
    asked = {
        str(path.relative_to(ROOT)): list(kinds_asked_for(path.read_text("utf-8"), classes))
        for path in paths + others
    }
    assert {path: places for path, places in asked.items() if places} == {}


def representation_classes() -> dict[str, type[Representation]]:
    """Every class of the room by its name; those of tests are not meant."""
    found, waiting = {}, [Representation]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith(numtok.representations.__name__):
            found[kind.__name__] = kind
    return found


def test_files_are_short_enough_to_read() -> None:
    long = {
        str(path.relative_to(ROOT))
        for path in modules().values()
        if path.read_text("utf-8").count("\n") > LINES
    }
    assert long == set()


def test_each_room_says_what_it_holds() -> None:
    for module, path in modules().items():
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), module


# The checker itself


def test_circles_are_found() -> None:
    arrows = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}
    assert circles_of(arrows) == {frozenset("abc")}


def test_the_modules_and_what_they_import_are_seen() -> None:
    assert {"numtok", "numtok.tokenizer", "numtok_torch.data", "numtok_cli.main"} <= set(modules())
    assert ("numtok.errors", "InputError") in imports()["numtok.corpus.read.csv_table"]
