"""Which engine a tokenizer gets, what is said where it is the slower one, and that the ids are
right by either.
"""

import json
import pickle
import warnings

import gigatoken
import new_process
import numpy as np
import pyarrow as pa
import pytest
import trained
from engine_oracle import TAKES_ALL, Oracle, check, tokenizer
from tokenizers import AddedToken

from numtok.arrays import memory
from numtok.engines.choose import EngineWarning
from numtok.engines.config import byte_of_character
from numtok.engines.gigatoken import pool
from numtok.engines.gigatoken.byte_level import ByteLevelEngine, cuts_at_digits
from numtok.engines.gigatoken.pool import GigatokenPool
from numtok.errors import NumtokError, TokenizerError
from numtok.representations import PlaceValue, Subword, XVal
from numtok.tokenizer.tokenizer import Tokenizer

FAST = [*trained.BYTE_LEVEL, *trained.SENTENCEPIECE]
TEXTS = ["The mass is 5", "a 5 b -7.5, x <|a|> 6", "cafe\u0301 5", "\xe9 6", "<|a|>b 7", None, ""]


@pytest.mark.parametrize("kind", trained.KINDS)
@pytest.mark.filterwarnings("error::numtok.engines.choose.EngineWarning")
def test_auto_takes_gigatoken_where_it_can(kind):
    """And says nothing of kinds for which nobody expects it."""
    tok = Tokenizer(trained.config(kind), [TAKES_ALL])
    assert tok.engine.name == ("gigatoken" if kind in FAST else "tokenizers")
    if kind not in FAST:
        with pytest.raises(TokenizerError, match=r"cannot be used .*byte-level"):
            Tokenizer(trained.config(kind), [TAKES_ALL], engine="gigatoken")


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def before(kind, *steps):
    """These pre-tokenizers before those of a kind."""
    own = trained.config(kind)["pre_tokenizer"]
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, own]}}


def with_tokens(kind, *tokens):
    """The added tokens of a kind, and these."""
    source = trained.source(kind)
    for content, flags in tokens:
        source.add_tokens([AddedToken(content, **({"normalized": False} | flags))])
    return {"added_tokens": json.loads(source.to_str())["added_tokens"]}


def lacking(kind, missing):
    """The tokenizer.json of a kind without tokens for some bytes."""
    config = trained.config(kind)
    model, table = config["model"], {byte: one for one, byte in byte_of_character().items()}
    unwanted = {table[byte] for byte in missing}
    left = [token for token in model["vocab"] if not unwanted & set(token)]
    left.sort(key=model["vocab"].__getitem__)
    lost = len(model["vocab"]) - len(left)
    model["vocab"] = {token: number for number, token in enumerate(left)}
    for token in config["added_tokens"]:
        token["id"] = model["vocab"].get(token["content"], token["id"] - lost)
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"]]
    model["merges"] = [pair for pair in pairs if not unwanted & set("".join(pair))]
    return config


def model(kind, **changes):
    return {"model": trained.config(kind)["model"] | changes}


def twice(kind):
    """gigatoken takes the first rank of a pair that is merged twice, ``tokenizers`` the last."""
    merges = trained.config(kind)["model"]["merges"]
    return model(kind, merges=[*merges, merges[0]])


# What is left to tokenizers, and what the warning names; SentencePiece gets none.
LEFT = {
    "three digits": ("gpt2", before("gpt2", split("[0-9][0-9][0-9]")), "[0-9][0-9][0-9]"),
    "digits": ("gpt2", before("gpt2", {"type": "Digits", "individual_digits": True}), "pre_tokenizer"),
    "lower case": ("gpt2", {"normalizer": {"type": "Lowercase"}}, "ormalizer"),
    "merged twice": ("gpt2", twice("gpt2"), "twice"),
    # NFC makes an e with an accent of two characters without these bytes
    "bytes": ("neox", lacking("neox", b"\xc3"), "lacks bytes"),
    "strips normalized text": ("neox", with_tokens("neox", ("<a>", {"rstrip": True, "normalized": True})), "<a>"),
    "other normalizer": ("llama_legacy", {"normalizer": {"type": "NFKC"}}, ""),
    "other pre-tokenizer": ("llama_legacy", {"pre_tokenizer": {"type": "WhitespaceSplit"}}, ""),
    "no spaces": ("llama_legacy", {"normalizer": None, "pre_tokenizer": None}, ""),
    "whole words": ("llama_legacy", model("llama_legacy", ignore_merges=True), ""),
    "no bytes": ("llama_legacy", model("llama_legacy", byte_fallback=False), ""),
    "pieces merged twice": ("llama_legacy", twice("llama_legacy"), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_what_gigatoken_would_encode_otherwise_is_left_to_tokenizers(name):
    kind, changes, told = LEFT[name]
    config = trained.config(kind) | changes
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tok = Tokenizer(config, [TAKES_ALL])
    assert [told in str(one.message) for one in caught] == [True] * bool(told)
    assert tok.engine.name == "tokenizers"
    check(tok, Oracle(config, tok.tokens), TEXTS)


def test_whole_words_that_begin_with_a_space():
    """Whole words are told by the character before the space, also in words that come again."""
    config = trained.config("gpt2") | with_tokens("gpt2", (" qab", {"single_word": True}))
    for engine in ("auto", "tokenizers"):
        tok = Tokenizer(config, [TAKES_ALL], engine=engine)
        check(tok, Oracle(config, tok.tokens), ["b qab 5, ( qab " * 50])


def test_other_pre_tokenizers_are_not_taken_for_known_ones():
    prefix = '"add_prefix_space": {}'
    for kind in ("gpt2", "neox", "llama3", "qwen", "gpt4o"):
        known = trained.config(kind)["pre_tokenizer"]
        assert cuts_at_digits(known)
        changed = json.dumps(known).replace("|", "|x|", 1)
        changed = changed.replace(prefix.format("false"), prefix.format("true"))
        assert not cuts_at_digits(json.loads(changed))
    assert not cuts_at_digits({"type": "Sequence", "pretokenizers": []})
    assert not cuts_at_digits({"type": "Whitespace"})


# Rows with added tokens

STRIPS = {"lstrip": True, "special": True}
SPECIAL = {"special": True}
NORMALIZED = {"normalized": True}
# What stands beside most of these decides what they take along. A special token is passed over as a
# whole, also where it is not parsed, and what overlaps it is no token either.
ADDED = {
    "strips": ("lstrip_token", [], False),
    "strips and is parsed": ("roberta", [], True),
    "strips and is not parsed": ("gpt2", [("<|a|>", STRIPS)], False),
    "whole words": ("gpt2", [("<|a|>", {"single_word": True})], False),
    "a space behind": ("gpt2", [("<|a|> ", {})], False),
    "hides the end": ("gpt2", [("<|a|>", SPECIAL), ("|>b", {})], False),
    "hides the inside": ("gpt2", [("<|a|>", SPECIAL), ("a", {})], False),
    "over the edge of rows": ("gpt2", [("9<", STRIPS), ("<|a|>", STRIPS)], True),
    "hides a space": ("gpt2", [("<|a|> ", SPECIAL), ("zz", {})], False),
    # found whatever word or run of spaces they begin or end in
    "white space": ("neox", [("\n  <a>", NORMALIZED), ("x é", NORMALIZED), ("<b>\t", NORMALIZED)], False),
    "in two rows": ("gpt2", [("qa", {}), ("ab", {})], False),
}  # fmt: skip
ROWS = ["5 <mask> 7 of <mask>", None, "8 and 1,234 é", "", "<|endoftext|>", "-3 9 <|a|> 5 <|a|>b"]
ROWS += ["a <right_1> b 5", "a <left> 5 <left>6", "to 9", "<|a|>  6"]
ROWS += ["b\n  <a> 5", "b   <a>5", "ax e\u0301 5", "x  é", "<b>\t5 <b>\t\t7", "xq", "ab 5", "b qab"]


@pytest.mark.parametrize("name", ADDED)
@pytest.mark.filterwarnings("error::numtok.engines.choose.EngineWarning")
def test_rows_with_added_tokens(name):
    """Each row as alone, by whichever engine; a null row stays null."""
    kind, added, parse_special = ADDED[name]
    config = trained.config(kind) | with_tokens(kind, *added)
    fast = Tokenizer(config, [TAKES_ALL])
    assert fast.engine_for(parse_special).name == "gigatoken"
    reference = Oracle(config, fast.tokens, parse_special)
    for documents in (ROWS, ROWS[2:4], ROWS[:2], ROWS[::-1]):
        check(fast, reference, documents, parse_special=parse_special)
    for numbers in (Subword(), PlaceValue()):
        fast, slow = (Tokenizer(config, [numbers], engine=one) for one in ("auto", "tokenizers"))
        ours, theirs = (one.encode_batch(ROWS, parse_special=parse_special) for one in (fast, slow))
        assert ours.equals(theirs)


@pytest.mark.parametrize(
    ("kind", "token"), [("lstrip_token", "<right_1>"), ("llama_legacy", "<|0.00|>")]
)
def test_words_behind_tokens_that_change_the_space(kind, token):
    tok = tokenizer(kind)
    check(tok, Oracle(trained.config(kind), tok.tokens), [f"a {token} b 5", "a b 5", f"{token} 5"])


# Vocabularies that lack bytes

LACKED = bytes([0x04, 0x06, 0x13, 0x1D, 0xC0, 0xF1, 0xF5, 0xFF])


# "neox" with a fallback to byte tokens that it does not have, as GGUF files may have it
@pytest.mark.parametrize("kind", ["gpt2", "neox", "llama3"])
@pytest.mark.filterwarnings("error::numtok.engines.choose.EngineWarning")
def test_a_vocabulary_that_lacks_bytes_has_the_fast_engine(kind):
    """Texts that hold such bytes have the ids of ``tokenizers``, which passes over them."""
    config = lacking(kind, LACKED)
    config["model"]["byte_fallback"] = kind == "neox"
    rows = [
        *("it is 5 km", "a\x04b 6", "\x04", "\x06 7\x138", None, "", "9 \U00050000 10", "11"),
        *("5 -3.5e7 \x1d", "e\u0301 12", " 13  14\n15 "),
    ]
    tok = Tokenizer(config, [TAKES_ALL])
    assert tok.engine.name == "gigatoken"
    never_in_text = Tokenizer(lacking(kind, b"\xc0\xf5\xff"), [TAKES_ALL])
    assert isinstance(never_in_text.engine, ByteLevelEngine)
    for documents in (rows, rows[:1], rows[1:2], rows[::-1]):
        check(tok, Oracle(config, tok.tokens), documents)
        parsing = Oracle(config, tok.tokens, parse_special=True)
        special = [*documents, "<|endoftext|> 5", "<|endoftext|>\x04"]
        check(tok, parsing, special, parse_special=True)
    subword = Tokenizer(config, [Subword()])
    check(subword, Oracle(config, {}), ["a b", "a\x04b c"])


# What is said


@pytest.mark.parametrize("package", ["numtok_torch.data", "transformers"])
def test_the_warning_is_about_the_users_line(package):
    kind, changes, told = LEFT["lower case"]
    config = trained.config(kind) | changes
    names = {"__name__": package, "Tokenizer": Tokenizer, "TAKES_ALL": TAKES_ALL}
    code = "def make(config):\n    return Tokenizer(config, [TAKES_ALL])\n"
    exec(compile(code, "library.py", "exec"), names)
    with pytest.warns(EngineWarning, match=told) as caught:
        tok = names["make"](config)
    assert [one.filename for one in caught] == [__file__]
    with warnings.catch_warnings():  # once for one tokenizer, copies included
        warnings.simplefilter("error")
        tok.encode_batch(["5"], parse_special=True)
        pickle.loads(pickle.dumps(tok)).encode_batch(["5"])


@pytest.mark.parametrize(
    ("absent", "error"),
    [("gigatoken", "ImportError"), ("awkward", "ImportError"), ("awkward", "LookupError")],
)
def test_what_is_not_installed_is_not_needed(absent, error, tmp_path):
    """Another platform, a release that was taken back, or one that fails under `python -X dev`:
    other ways give the same ids.
    """
    program = """
        import builtins, sys, warnings
        class Absent:
            def find_spec(name, *_):
                if name == sys.argv[1]:
                    raise getattr(builtins, sys.argv[2])(name)
        sys.meta_path.insert(0, Absent)
        import numtok
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tok = numtok.Tokenizer.from_pretrained(None, [numtok.XVal()])
            batch = tok.encode_batch(["a 5\u00b2 b"] * 100)
            tok.encode_batch(["a 5"], parse_special=True)
        ours = [one for one in caught if one.category.__name__ == "EngineWarning"]  # not Numba's
        print(tok.engine.name, [str(one.message).split(":")[0] for one in ours])
        print(batch["input_ids"].to_pylist())
    """
    named, ids = new_process.run(program, tmp_path, absent, error).splitlines()
    slow = "using the slower engine 'tokenizers', because gigatoken cannot be imported"
    expected = {"gigatoken": f'tokenizers ["{slow}"]', "awkward": "gigatoken []"}
    assert named == expected[absent]
    tok = Tokenizer.from_pretrained(None, [XVal()])
    assert ids == str(tok.encode_batch(["a 5\u00b2 b"] * 100)["input_ids"].to_pylist())


@pytest.mark.parametrize("fault", ["ids", "error"])
def test_self_check_catches_a_wrong_engine(monkeypatch, fault, tmp_path):
    """A fast engine that is wrong on one text of the self-check is not used, and the verdict is not
    kept for the next run.
    """
    right = ByteLevelEngine.encode

    def wrong(self, texts, cuts):
        if fault == "error":
            raise NumtokError("cannot")
        encoded = right(self, texts, cuts)
        encoded.ids[-1] = 0
        return encoded

    monkeypatch.setenv("NUMTOK_CACHE", str(tmp_path))
    monkeypatch.setattr(ByteLevelEngine, "encode", wrong)
    with pytest.warns(EngineWarning, match="slower engine 'tokenizers'"):
        tok = Tokenizer(trained.config("gpt2"), [TAKES_ALL])
    assert tok.engine.name == "tokenizers" and not [*tmp_path.glob("facts/same-ids-*")]
    with pytest.raises(TokenizerError, match=r"engine='gigatoken' .*cannot be used"):
        Tokenizer(trained.config("gpt2"), [TAKES_ALL], engine="gigatoken")


# Memory


def test_a_long_text_is_held_twice_beside_its_tokens_and_not_three_times(monkeypatch):
    """Arrow's own array, and a copy without what the complete tokenizer has: "cafe" with an accent
    apart.
    """
    allocated = []
    tokens, encoding, composed = GigatokenPool.tokens, tokenizer("neox", "gigatoken"), "cafe\u0301 "
    text = f"a few words, {composed}" + "and many more words " * (memory.MOST_KEPT // 16)

    def noted(source, text, offsets):
        allocated.append(
            pa.total_allocated_bytes() - already if len(text) > memory.MOST_KEPT else 0
        )
        return tokens(source, text, offsets)

    encoding.encode_batch([composed])
    monkeypatch.setattr(GigatokenPool, "tokens", noted)
    already = pa.total_allocated_bytes()
    encoding.encode_batch([text])
    assert 1.9 * len(text) < max(allocated) < 2.2 * len(text)


@pytest.mark.parametrize(
    ("told", "freed", "fewest", "most"),
    [
        pytest.param(True, 0, 2, 4, id="by memory"),
        pytest.param(True, pool.MOST_GROWN, 1, 1, id="of other code"),
        pytest.param(False, 0, 2, 4, id="by text"),
    ],
)
def test_what_gigatoken_caches_is_bounded(told, freed, fewest, most, monkeypatch):
    """A tokenizer is made anew when the process has grown by more than what is given back to the
    system when asked, else it stays.
    """
    size, made, make = [1 << 30], [], gigatoken.Tokenizer.from_json
    monkeypatch.setattr(memory, "resident", lambda: size[0] if told else None)
    monkeypatch.setattr(memory, "release", lambda: size.insert(0, size[0] - freed))
    monkeypatch.setattr(pool, "LEAST_TEXT", 1 << 14)
    monkeypatch.setattr(pool, "MOST_TEXT", 1 << 16)
    monkeypatch.setattr(gigatoken.Tokenizer, "from_json", lambda text: made.append(1) or make(text))
    encoders = GigatokenPool(json.dumps(trained.config("gpt2") | {"added_tokens": []}))
    text = np.full(1 << 14, ord("a"), np.uint8)
    for turn in range(12):
        encoders.tokens(text, np.array([0, len(text)]))
        assert turn > 1 or len(made) == 1
        size[0] += pool.MOST_GROWN // 4
    assert fewest <= len(made) <= most


@pytest.mark.slow
def test_memory_is_bounded_on_words_that_never_come_again(tmp_path):
    program = """
        import pathlib, re, numpy, numtok
        rng, tok = numpy.random.default_rng(5), numtok.Tokenizer.from_pretrained(numbers="xval")
        for _ in range(60):
            letters = rng.integers(97, 123, (400_000, 9), numpy.uint8)
            letters[:, 0] = 32
            text = letters.tobytes().decode()
            tok.encode_batch([text[k : k + 4000] for k in range(0, len(text), 4000)], threads=2)
        print(re.search(r'VmHWM:\\s+(\\d+)', pathlib.Path('/proc/self/status').read_text())[1])
    """
    # kB; 1.9 GB for these 216 MB when everything was kept
    assert int(new_process.run(program, tmp_path)) < 1 << 20
