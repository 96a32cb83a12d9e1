"""The house: imports point one way and in no circle, nobody takes a private name from another
module, what differs between representations is theirs to say, and files stay short.
"""

import ast
import functools
import graphlib
import re
import sys
import tomllib

import docstrings
import pytest
from places import ROOT

import numtok.representations
from numtok.representations import Representation, SingleToken, SpelledOut

PACKAGES = {"numtok": "numtok", "numtok_torch": "numtok_torch", "numtok_cli": "cli"}
LINES = 500

# A room imports only rooms before it.
ROOMS = {
    "numtok": ["errors", "storage", "arrays", "numbers", "score", "representations", "engines",
               "tokenizer", "number_format", "statistics", "corpus", "hf", "testing"],
    "numtok_torch": ["data", "embeddings", "heads", "model", "generation", "export", "metrics"],
}  # fmt: skip
MODULES = {}  # paths by dotted names
for package, folder in PACKAGES.items():
    for path in sorted((ROOT / folder).rglob("*.py")):
        inner = path.relative_to(ROOT / folder).with_suffix("").parts
        MODULES[".".join([package, *inner]).removesuffix(".__init__")] = path


@functools.cache
def parsed(path):
    return ast.parse(path.read_text("utf-8"))


def imports_in(tree, module, is_package):
    """(module, name taken from it) of each import, wherever it stands: at the top, inside functions
    and under TYPE_CHECKING.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: len(module.split(".")) - node.level + is_package]
            base = ".".join([*parents * bool(node.level), *filter(None, [node.module])])
            yield from ((base, alias.name) for alias in node.names)


@functools.cache
def imports():
    """Of each module, what it takes of ours: (module, name, or None for the module itself)."""
    found = {module: set() for module in MODULES}
    for module, path in MODULES.items():
        for base, name in imports_in(parsed(path), module, path.stem == "__init__"):
            taken = (f"{base}.{name}", None) if f"{base}.{name}" in MODULES else (base, name)
            if taken[0] in MODULES and taken[0] != module:
                found[module].add(taken)
    return found


def room(module):
    """(package, place in its list of rooms); None for faces and for the command line, which may
    import everything.
    """
    package, name, *_ = [*module.split("."), ""]
    rooms = ROOMS.get(package, [])
    return (package, rooms.index(name)) if name in rooms else None


def test_no_module_imports_itself_by_way_of_others():
    graph = {module: {target for target, _ in taken} for module, taken in imports().items()}
    graphlib.TopologicalSorter(graph).prepare()
    graph["numtok.errors"] = {"numtok.corpus.encode_files"}
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(graph).prepare()


def test_private_names_stay_in_their_module():
    every = [(module, *one) for module, taken in imports().items() for one in taken]
    assert ("numtok.corpus.read.csv_table", "numtok.errors", "InputError") in every
    names = [(module, target, name or "") for module, target, name in every]
    assert [one for one in names if one[2].startswith("_") and one[2][:2] != "__"] == []


def test_a_room_imports_only_rooms_before_it():
    upward = set()
    for module, taken in imports().items():
        for target, _ in taken:
            here, there = room(module), room(target)
            if here and there and here[0] == there[0] and there[1] > here[1]:
                upward.add((module, target))
    assert upward == set()


def test_the_core_imports_neither_torch_layers_nor_the_command_line():
    for module, taken in imports().items():
        packages = {target.partition(".")[0] for target, _ in taken}
        assert (
            packages
            <= {
                "numtok": {"numtok"},
                "numtok_torch": {"numtok", "numtok_torch"},
                "numtok_cli": set(PACKAGES),
            }[module.partition(".")[0]]
        ), module


def kinds_asked_for(tree):
    """The names that code compares classes with: ``isinstance``, ``issubclass``, ``type(x) is`` and
    ``case``.
    """
    for node in ast.walk(tree):
        code = ast.unparse(node) if isinstance(node, ast.Call | ast.Compare) else ""
        asked = []
        if isinstance(node, ast.Call) and code.startswith(("isinstance(", "issubclass(")):
            asked = node.args[1:]
        elif isinstance(node, ast.Compare) and "type(" in code:
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        for part in (part for one in asked for part in ast.walk(one)):
            yield getattr(part, "id", None) or getattr(part, "attr", None)


def test_no_one_outside_their_room_asks_which_representation_it_is():
    """What differs is an attribute or a method that they have, so that one of a user's own is
    served like ours; only the two kinds may be asked for.
    """
    classes, waiting = set(), [Representation]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith(numtok.representations.__name__):
            classes.add(kind.__name__)
    classes -= {one.__name__ for one in (Representation, SingleToken, SpelledOut)}
    assert {"XVal", "PlaceValue", "Subword", "Charton"} <= classes
    room = "numtok.representations"
    paths = [path for module, path in MODULES.items() if not module.startswith(room)]
    for folder in ("benchmarks", "examples"):
        paths += (ROOT / folder).rglob("*.py")
    for path in paths:
        assert classes.isdisjoint(kinds_asked_for(parsed(path))), path
    asking = "isinstance(a, (b, c.D)) and type(e) is F\nmatch g:\n    case H():\n        pass"
    assert {"D", "F", "H"} <= set(kinds_asked_for(ast.parse(asking)))


def test_one_module_imports_tokenizers():
    """Its next version has another interface, so all that depends on it stands in one place."""
    only = "numtok.engines.hf_tokenizers"
    taken = {
        module
        for module, path in MODULES.items()
        for base, _ in imports_in(parsed(path), module, path.stem == "__init__")
        if base.partition(".")[0] == "tokenizers"
    }
    assert taken == {only}
    within = "def f():\n    from tokenizers.decoders import Fuse\n    import tokenizers as t"
    bases = [base for base, _ in imports_in(ast.parse(within), "numtok.anything", False)]
    assert bases == ["tokenizers.decoders", "tokenizers"]


def test_what_the_core_imports_is_a_dependency():
    """Environments with all extras have ``regex`` and the like in any case."""
    taken = {
        base.partition(".")[0]
        for module, path in MODULES.items()
        if module.partition(".")[0] != "numtok_torch"
        for base, _ in imports_in(parsed(path), module, path.stem == "__init__")
    }
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.match(r"[\w-]+", one)[0] for one in declared["dependencies"]}
    # imported for users who have them: extras, and what numtok adds to or avoids
    optional = {"transformers", "torch", "hypothesis", "fsspec", "huggingface_hub"}
    optional |= {"lm_eval", "inspect_ai"}
    assert taken - sys.stdlib_module_names - {*PACKAGES, "__future__"} == needed | optional


def test_each_module_says_what_it_holds_and_is_short_enough_to_read():
    assert [path for path in MODULES.values() if not ast.get_docstring(parsed(path))] == []
    lines = {path: path.read_text("utf-8").count("\n") for path in MODULES.values()}
    assert [path for path, count in lines.items() if count > LINES] == []


def test_docstrings_say_what_a_thing_does_or_is(capsys):
    assert docstrings.main() == 0, capsys.readouterr().out
    source = 'class A:\n    """As b."""\n    def f():\n        """Seek."""\n    def g():\n        """Of c\nd."""'
    assert list(docstrings.refused_in(source)) == [(1, "As b."), (5, "Of c")]
