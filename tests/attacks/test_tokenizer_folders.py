"""A tokenizer folder that is damaged, or was made to harm, is one clear error that names the
folder; never another exception, and never a wrong tokenizer.
"""

import hostile_folders
import pytest
import trained
from hypothesis import given
from hypothesis import strategies as st

from numtok import Tokenizer
from numtok.errors import NumtokError, TokenizerError
from numtok.tokenizer.saving import check_settings
from numtok.tokenizer.tokenizer_json import numbered

# What breaks only when a text comes, and is then an error of numtok that cannot know the folder.
LATER = ["post_processor", "pattern=a", "vocab={}"]
MUST_FAIL = ["format", "tokens=a", "tokens=[None]", "vocab None", "vocab -1", "vocab 3"]
MUST_FAIL += ["vocab 2147483648", "merge ab", "split (", "all ", "key deep"]


def outcomes(kind, folder, load):
    """What became of every variant: "good", "named" for an error that names the folder, or what
    else it was.
    """
    found = {}
    for name, config, options in hostile_folders.variants(kind, folder):
        (folder / "tokenizer.json").write_text(config, "utf-8")
        (folder / "numtok.json").write_text(options, "utf-8")
        try:
            load(folder)
            found[name] = "good"
        except TokenizerError as error:
            found[name] = "named" if str(folder) in str(error) else f"not named: {error}"
        except NumtokError as error:
            found[name] = f"not named: {error}"
        except BaseException as error:  # Rust's panics are no Exception
            found[name] = f"{type(error).__name__}: {str(error)[:80]}"
    return found


def use(folder):
    Tokenizer.from_pretrained(folder).encode("a -5.2 é7", keep_text=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "several"), [pytest.param("gpt2", 500, marks=pytest.mark.slow), ("t5", 400)]
)
def test_every_variant_is_one_clear_error(kind, several, tmp_path):
    found = outcomes(kind, tmp_path, use)
    assert len(found) > several
    for name, what in found.items():
        later = any(one in name for one in LATER) and what.startswith("not named")
        assert what in ("good", "named") or later, (name, what)
        assert what != "good" or not any(one in name for one in MUST_FAIL), name


@pytest.mark.filterwarnings("ignore")
def test_the_drop_in_too(tmp_path):
    pytest.importorskip("transformers")
    from numtok import hf

    found = outcomes("t5", tmp_path, lambda folder: hf.NumberTokenizer.from_pretrained(folder))
    assert set(found.values()) == {"good", "named"}
    assert found["format 99"] == "named"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("numtok.json", '{"format": 99, ', "format 99, this version of numtok reads format 1"),
        ("numtok.json", "[" * 100_000, "nested more deeply"),
        ("numtok.json", "9" * 5000, "too long"),
        ("tokenizer.json", "[" * 100_000, "nested more deeply"),
    ],
)
def test_what_the_error_says(name, text, message, tmp_path):
    Tokenizer(trained.config("bert"), "xval").save_pretrained(tmp_path)
    path = tmp_path / name
    rest = path.read_text("utf-8").partition('"format": 1,')[2] if "format" in text else ""
    path.write_text(text + rest, "utf-8")
    with pytest.raises(TokenizerError, match=message) as caught:
        Tokenizer.from_pretrained(tmp_path)
    assert str(path) in str(caught.value)


def test_a_panic_is_an_error():
    normalizer = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    with pytest.raises(TokenizerError, match="tokenizers cannot load it"):
        Tokenizer(trained.config("bert") | {"normalizer": normalizer}, "xval")


NAMES = st.sampled_from(["type", "name", "vocab", "content", "id", "a"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
GOOD = {"format": 1, "grammar": {}, "numbers": [{"name": "xval"}], "leading_space": "auto"}
GOOD |= {"tokens": []}
PARTS = ["added_tokens", "normalizer", "pre_tokenizer", "decoder"]


@given(st.dictionaries(st.sampled_from([*GOOD]), json_values), st.booleans())
def test_any_settings(changed, whole):
    try:
        check_settings(changed if whole else GOOD | changed, "numtok.json")
    except TokenizerError as error:
        assert "numtok.json" in str(error)


@pytest.mark.filterwarnings("ignore")
@given(st.dictionaries(st.sampled_from(PARTS), json_values), json_values, json_values)
def test_any_tokenizer_json(changed, vocabulary, merges):
    config = {"model": {"type": "BPE", "vocab": vocabulary, "merges": merges}} | changed
    try:
        Tokenizer(numbered(config, "tokenizer.json"), "xval").encode("a 5")
    except NumtokError as error:
        assert str(error)
