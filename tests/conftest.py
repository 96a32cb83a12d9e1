"""Hypothesis profiles, the shared data, and golden files, for all tests."""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

# Before any test imports the libraries that read these: tests neither reach the network nor open a
# window.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
if (
    "NUMTOK_CACHE" not in os.environ
    # processes that run tests, and those that tests start, share what one of them found out; a new run
    # knows nothing
):
    os.environ["NUMTOK_CACHE"] = tempfile.mkdtemp(prefix="numtok-tests-")
    atexit.register(shutil.rmtree, os.environ["NUMTOK_CACHE"], ignore_errors=True)
os.environ.setdefault("HF_DATASETS_CACHE", os.path.join(os.environ["NUMTOK_CACHE"], "datasets"))
# what is compiled is good for the next run too, as long as its source is the same
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "compiled"))
# two processes share two cores, and torch would take both for each
os.environ.setdefault("OMP_NUM_THREADS", "1")

import kept
import pytest
from hypothesis import settings
from places import ROOT, shared_folder

from numtok.engines.hf_tokenizers import ADVICE, library

pytest.register_assert_rewrite("hf_compare", "hf_checks")

# `make next` has numtok run on `tokenizers` 1.0, while tests hold it to 0.23, which they import.
EARLIER = Path(sys.prefix, "tokenizers-0.23")
if EARLIER.is_dir():
    library()  # it stays numtok's
    for name in [name for name in sys.modules if name.partition(".")[0] == "tokenizers"]:
        del sys.modules[name]
    sys.path.insert(0, str(EARLIER))
    importlib.import_module("tokenizers")
    sys.path.pop(0)  # versions that are asked for are those of the environment
    # 1.0 needs no cache of words, and cannot train
    collect_ignore = ["engines/test_words.py", "tokenizer/test_train.py"]

# No deadline anywhere: the first example of a property pays for a Numba compilation. A property
# with a costly example takes fewer by its own settings.
settings.register_profile("local", deadline=None, max_examples=100)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True, print_blob=True)
settings.register_profile(
    "thorough", deadline=None, max_examples=1000, derandomize=True, print_blob=True
)
# --hypothesis-profile=NAME overrides
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the files under tests/golden with what the code gives now",
    )


# 800,000 objects of torch, transformers and Numba live to the end of the run; passing over them
# again and again took a tenth of its time.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect only what the tests make, and not what they import."""
    gc.enable()
    gc.collect()
    gc.freeze()
    # a tokenizer.json is a hundred thousand objects, none of them garbage
    gc.set_threshold(50_000, 10, 10)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip a test of what `tokenizers` 1.0 cannot do, with the reason that a user is told."""
    try:
        return (yield)
    except Exception as error:  # ours, or a test's that expected another
        # Hypothesis tells those of several examples together
        errors = error.exceptions if isinstance(error, ExceptionGroup) else [error]
        advised = all(ADVICE in str(one) for one in errors)
        if EARLIER.is_dir() and advised and "test_version_1" not in item.nodeid:
            pytest.skip(str(errors[0]))
        raise


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)`` holds ``text`` to the file tests/golden/``name``, byte for byte.

    The file changes only under ``--update-golden``; a missing one is a failure, not an invitation.
    """

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            return
        if not path.is_file():
            pytest.fail(
                f"{path} does not exist; run pytest with --update-golden and review what it writes"
            )
        assert text == path.read_bytes().decode(), (
            f"differs from {path}; if that is meant, run pytest with --update-golden"
        )

    return check


@pytest.fixture(scope="module", autouse=True)
def nothing_is_kept() -> Iterator[None]:
    """What the tests of a module share goes with it."""
    yield
    kept.drop()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of corpora and tokenizers that are too large for the repository; tests that need
    it skip without it.
    """
    folder = shared_folder()
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}: set NUMTOK_SHARED to the folder that has them")
    return folder


def _existing(path: Path) -> Path:
    if not path.is_file():
        pytest.skip(f"the shared data lack {path}")
    return path


@pytest.fixture(scope="session")
def gpt2_json(shared: Path) -> Path:
    """tokenizer.json of GPT-2: byte-level BPE."""
    return _existing(shared / "tokenizers" / "gpt2.json")


@pytest.fixture(scope="session")
def neox_json(shared: Path) -> Path:
    """tokenizer.json of GPT-NeoX-20B and Pythia: byte-level BPE with runs of spaces as added
    tokens.
    """
    return _existing(shared / "tokenizers" / "gpt-neox-20b.json")


@pytest.fixture(scope="session")
def wiki_texts(shared: Path) -> list[str]:
    """420 Wikipedia pages as plain text, 6.5 MB, full of tables and numbers."""
    with _existing(shared / "corpora" / "wiki.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]
