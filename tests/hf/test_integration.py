"""The drop-in tokenizer in what people use tokenizers with: files, processes, ``datasets``, collators, pipelines, ``generate``, chats."""

from __future__ import annotations

import copy
import functools
import json
import os
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import tokenizers
import torch
import transformers
from hf_cases import CHAT_TEMPLATE, TAKES_ALL, build_ours, build_source, ours, source
from hf_oracle import Oracle
from transformers import AutoTokenizer, BertConfig, GPT2Config, PreTrainedTokenizerFast

import numtok
from numtok.errors import MissingDependencyError
from numtok.hf import tokenizer as hf
from numtok.numbers.grammar import Grammar
from numtok.representations import NUM, FoNE, PlaceValue, Representation, XVal

TEXTS = ["a 5 and -1,234.5 of them", "no numbers [NUM]", "  ½ 7 <|0.00|> <mask> b"]
KINDS = ["gpt2", "bert", "t5", "llama", "roberta"]
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "combined": {"numbers": (XVal(scale=0.5), FoNE(6, 4, overflow="clip")), "return_numbers": True},
    "spelled": {"numbers": (PlaceValue(overflow="clip"),), "grammar": Grammar.data()},
    "separate": {"leading_space": "separate", "grammar": Grammar(signs=False)},
}
TESTS = Path(__file__).parents[1] / "support"


@functools.lru_cache(24)
def oracle(kind: str, numbers: tuple[Representation, ...] = (TAKES_ALL,)) -> Oracle:
    return Oracle(source(kind), ours(kind, numbers).numtok)


def run(script: str, folder: Path, *arguments: Any) -> str:
    """Standard output of a new Python process, whose caches are in ``folder``."""
    environment = os.environ | {
        "HF_HOME": str(folder / "home"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
    }
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return done.stdout


# Saving, loading, copying -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings"), [("gpt2", "combined")] + [(kind, settings) for kind in KINDS if kind != "gpt2" for settings in SETTINGS]
)
def test_saved_and_loaded(kind: str, settings: str, tmp_path: Path) -> None:
    tok = build_ours(kind, **SETTINGS[settings])
    tok.save_pretrained(tmp_path)
    for loaded in (hf.NumberTokenizer.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(str(tmp_path))):
        checks.check_same_tokenizer(tok, loaded, TEXTS)
        assert ("number_values" in loaded("a 5")) == bool(SETTINGS[settings].get("return_numbers"))
        loaded.save_pretrained(tmp_path / "again")
    for name in ("tokenizer.json", "numtok.json"):  # the configuration may gain what transformers notes about loading
        assert json.loads((tmp_path / name).read_text()) == json.loads((tmp_path / "again" / name).read_text()), name
    core = numtok.Tokenizer.from_pretrained(tmp_path)
    assert core.fingerprint == tok.numtok.fingerprint
    assert core.encode(TEXTS[0], add_special_tokens=True).input_ids.tolist() == tok(TEXTS[0])["input_ids"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved(kind: str, tmp_path: Path) -> None:
    """JSON, a template, and one line of Python; other programs read a tokenizer that knows the number token."""
    tok = ours(kind)
    tok.save_pretrained(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"tokenizer.json", "tokenizer_config.json", "numtok.json"}
    code = [path for path in tmp_path.iterdir() if path.suffix == ".py"]
    assert len(code) == 1 and {path.suffix for path in tmp_path.iterdir()} <= {".json", ".py", ".jinja"}
    lines = [line for line in code[0].read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) == 1 and lines[0].startswith("from numtok.hf import NumberTokenizer")
    configured = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert "AutoTokenizer" in configured["auto_map"] and "Fast" not in configured["tokenizer_class"]

    number = tok.convert_tokens_to_ids(NUM)
    plain = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert plain.token_to_id(NUM) == number and number in plain.encode(f"a{NUM}b").ids
    stock = PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert type(stock) is PreTrainedTokenizerFast and len(stock) == len(tok)
    assert number in stock(f"a{NUM}b")["input_ids"] and stock("a text")["input_ids"] == source(kind)("a text")["input_ids"]
    assert number in stock(f"a{NUM}", split_special_tokens=True)["input_ids"] and number not in stock.all_special_ids


def test_loading_with_other_settings(tmp_path: Path) -> None:
    """What is given goes before what was saved; a folder without ours is a source."""
    build_source("roberta").save_pretrained(tmp_path / "stock")
    tok = hf.NumberTokenizer.from_pretrained(tmp_path / "stock", numbers=[TAKES_ALL], padding_side="left", model_max_length=7)
    assert tok.padding_side == "left" and tok.model_max_length == 7 and tok.numtok.numbers == (TAKES_ALL,)
    assert tok(TEXTS[0])["input_ids"] == ours("roberta")(TEXTS[0])["input_ids"] and "number_values" not in tok(TEXTS[0])
    assert hf.NumberTokenizer.from_pretrained(str(tmp_path / "stock")).numtok.numbers == (XVal(),)
    tok.save_pretrained(tmp_path / "ours")
    other = hf.NumberTokenizer.from_pretrained(tmp_path / "ours", numbers=[FoNE(3, 2)], grammar=Grammar.data(), return_numbers=True)
    assert other.numtok.numbers == (FoNE(3, 2),) and other.numtok.grammar == Grammar.data() and other.padding_side == "left"
    assert "number_fourier" in other("a 5") and "number_scaled" not in other("a 5")
    wrapped = hf.NumberTokenizer.from_tokenizer(AutoTokenizer.from_pretrained(tmp_path / "ours"))
    assert len(wrapped) == len(tok) and wrapped(TEXTS)["input_ids"] == tok(TEXTS)["input_ids"]


def test_from_tokenizer_leaves_the_source_alone() -> None:
    stock = build_source("bert")
    before, names = stock.backend_tokenizer.to_str(), set(vars(stock))
    tok = hf.NumberTokenizer.from_tokenizer(stock, numbers=[TAKES_ALL])
    tok.add_tokens(["zyx"])
    tok.pad_token = "[SEP]"
    tok(TEXTS, padding=True, truncation=True, max_length=4)
    assert stock.backend_tokenizer.to_str() == before and set(vars(stock)) == names and stock.pad_token == "[PAD]"
    assert type(stock) is PreTrainedTokenizerFast


@pytest.mark.parametrize("model", ["gpt2", "qwen2", "phi3", "bert", "llama", "t5"])
def test_beside_a_model(model: str, tmp_path: Path) -> None:
    """For many types of models AutoTokenizer has a class of its own in mind."""
    kind = {"qwen2": "roberta", "gpt2": "roberta", "phi3": "legacy"}.get(model, model)
    tok = ours(kind)
    tok.save_pretrained(tmp_path)
    transformers.AutoConfig.for_model(model).save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == model
    checks.check_same_tokenizer(tok, AutoTokenizer.from_pretrained(tmp_path), TEXTS)
    checks.check_same_tokenizer(tok, hf.NumberTokenizer.from_pretrained(tmp_path), TEXTS)


def dilled(tok: Any) -> Any:
    import dill

    return dill.loads(dill.dumps(tok))


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda tok: pickle.loads(pickle.dumps(tok)),
    "dill": dilled,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("settings", ["default", "combined", "spelled"])
def test_copies(settings: str, way: str) -> None:
    for kind in ("bert", "roberta"):
        tok = build_ours(kind, **SETTINGS[settings])
        checks.check_same_tokenizer(tok, COPIES[way](tok), TEXTS)  # before anything is made on demand
        checks.check_same_tokenizer(tok, COPIES[way](tok), TEXTS)  # and after
        assert ("number_values" in COPIES[way](tok)("a 5")) == bool(SETTINGS[settings].get("return_numbers"))


def test_a_deep_copy_is_independent() -> None:
    tok = build_ours("bert")
    tok(TEXTS)
    other = copy.deepcopy(tok)
    other.add_tokens(["<9>"])
    other.padding_side = "left"
    assert "<9>" not in tok.get_vocab() and len(other) == len(tok) + 1 and tok.padding_side == "right"
    values = [tok("<9> 5", return_numbers=True)["number_values"], other("<9> 5", return_numbers=True)["number_values"]]
    assert [sum(value != 1 for value in one) for one in values] == [2, 1]


def test_class_may_be_swapped() -> None:
    """As serving engines do it: a copy whose class is a subclass made on the spot."""
    tok = build_ours("roberta")
    other = copy.copy(tok)
    other.__class__ = type(f"Cached{type(tok).__name__}", (type(tok),), {"get_vocab": lambda self: tok.get_vocab()})
    checks.same(other(TEXTS, return_numbers=True), tok(TEXTS, return_numbers=True))
    assert other.decode(tok(TEXTS[0])["input_ids"]) == tok.decode(tok(TEXTS[0])["input_ids"])


@pytest.mark.slow
def test_new_process(tmp_path: Path) -> None:
    """AutoTokenizer where nobody imported numtok: a plain tokenizer, with trust ours, and ours once the class is imported; pickle and dill."""
    tok = ours("roberta")
    tok.save_pretrained(tmp_path / "saved")
    GPT2Config().save_pretrained(tmp_path / "saved")
    (tmp_path / "tok.pickle").write_bytes(pickle.dumps(tok))
    import dill

    (tmp_path / "tok.dill").write_bytes(dill.dumps(tok))
    script = """
        import json, pickle, sys
        from pathlib import Path
        from transformers import AutoTokenizer
        folder, texts = Path(sys.argv[1]), json.loads(sys.argv[2])
        seen = {}
        def see(name, tok):
            seen[name] = [type(tok).__name__, tok(texts)["input_ids"], tok.convert_tokens_to_ids("[NUM]")]
        see("plain", AutoTokenizer.from_pretrained(folder / "saved", trust_remote_code=False))
        assert "numtok.hf" not in sys.modules
        see("trusted", AutoTokenizer.from_pretrained(folder / "saved", trust_remote_code=True))
        import numtok.hf
        see("imported", AutoTokenizer.from_pretrained(folder / "saved"))
        see("pickle", pickle.loads((folder / "tok.pickle").read_bytes()))
        import dill
        see("dill", dill.loads((folder / "tok.dill").read_bytes()))
        print(json.dumps(seen))
    """
    seen = json.loads(run(script, tmp_path, tmp_path, json.dumps(TEXTS)).splitlines()[-1])
    number = tok.convert_tokens_to_ids(NUM)
    assert seen["plain"][0] != "NumberTokenizer" and seen["plain"][2] == number
    for way in ("trusted", "imported", "pickle", "dill"):
        assert seen[way] == ["NumberTokenizer", tok(TEXTS)["input_ids"], number], way


@pytest.mark.slow
def test_spawned_workers() -> None:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    tok = ours("bert", (XVal(), FoNE(6, 4, overflow="clip")))
    texts = [*TEXTS[:2], "[NUM] 5"]
    call = functools.partial(tok, return_numbers=True, return_offsets_mapping=True)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        got = list(pool.map(call, texts))
    for text, one in zip(texts, got, strict=True):
        checks.same(one, pickle.loads(pickle.dumps(call(text))), text)  # the result comes back through a pickle, encodings and all


# datasets -----------------------------------------------------------------------------------------------------------------------


def fingerprint_of(tok: Any) -> str:
    hasher = pytest.importorskip("datasets.fingerprint")
    return str(hasher.Hasher.hash(tok))


@pytest.mark.parametrize("kind", ["bert", "roberta", "t5"])
def test_fingerprint(kind: str, tmp_path: Path) -> None:
    """Equal for equal tokenizers, another for others, and unchanged by use."""
    tok = build_ours(kind)
    before = fingerprint_of(tok)
    assert fingerprint_of(build_ours(kind)) == before
    assert fingerprint_of(copy.deepcopy(tok)) == before and fingerprint_of(pickle.loads(pickle.dumps(tok))) == before
    uses: list[Callable[[], Any]] = [
        lambda: tok(TEXTS),
        lambda: tok(TEXTS, return_numbers=True, return_offsets_mapping=True).word_ids(1),
        lambda: tok("literal [NUM] [/NUM] 5"),
        lambda: tok(TEXTS, padding=True, truncation=True, max_length=4, return_tensors="np"),
        lambda: tok(TEXTS, split_special_tokens=True),
        lambda: tok.batch_decode(tok(TEXTS)["input_ids"]),
        lambda: tok.decode(tok("a 5")["input_ids"], number_values=tok("a 5", return_numbers=True)["number_values"]),
        lambda: tok.pad([tok("a 5", return_numbers=True)], padding="max_length", max_length=8),
        lambda: tok.numtok.encode_batch(TEXTS),
        lambda: tok("x" * 3000 + " 5"),
    ]
    for k, use in enumerate(uses):
        use()
        assert fingerprint_of(tok) == before, k
    others = [build_ours(kind, (XVal(scale=2.0),)), build_ours(kind, grammar=Grammar.data()), build_ours(kind, return_numbers=True)]
    assert len({before, *map(fingerprint_of, others)}) == 4
    tok.save_pretrained(tmp_path)
    loaded = [fingerprint_of(hf.NumberTokenizer.from_pretrained(tmp_path)) for _ in range(2)]
    assert loaded[0] == loaded[1]


def test_map_with_two_processes(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    tok = build_ours("roberta", (XVal(), FoNE(6, 4, overflow="clip")))
    datasets.Dataset.from_dict({"text": TEXTS * 8}).save_to_disk(tmp_path / "data")
    dataset = datasets.load_from_disk(tmp_path / "data")

    def encode(batch: dict[str, Any]) -> Any:
        return tok(batch["text"], return_numbers=True, truncation=True, max_length=8)

    mapped = dataset.map(encode, batched=True, batch_size=5, num_proc=2)
    expected = tok(TEXTS * 8, return_numbers=True, truncation=True, max_length=8)
    assert mapped["input_ids"][:] == expected["input_ids"]
    assert [list(map(float, row)) for row in mapped["number_values"]] == [list(map(float, row)) for row in expected["number_values"]]
    assert np.asarray(mapped[0]["number_fourier"]).shape == (len(expected["input_ids"][0]), 10, 2)
    files = sorted(path.name for path in (tmp_path / "data").glob("cache-*"))
    again = dataset.map(encode, batched=True, batch_size=5, num_proc=2)
    assert files and again._fingerprint == mapped._fingerprint
    assert sorted(path.name for path in (tmp_path / "data").glob("cache-*")) == files, "the cache was not used"


@pytest.mark.filterwarnings("ignore::numtok.engines.choose.EngineWarning")  # of tokens that strip spaces
@pytest.mark.parametrize("settings", ["default", "combined", "spelled"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "llama3"])
def test_map_to_arrow(kind: str, settings: str) -> None:
    """Without a Python list in between, the same ids, masks and streams."""
    datasets = pytest.importorskip("datasets")
    tok = build_ours(kind, **SETTINGS[settings])
    dataset = datasets.Dataset.from_dict({"text": TEXTS}).with_format("arrow")
    for options in ({}, {"max_length": 5}, {"add_special_tokens": False}, {"return_numbers": True}):
        mapped = dataset.map(tok.encode_arrow, batched=True, remove_columns=["text"], fn_kwargs=options).with_format(None)
        expected = tok(TEXTS, truncation="max_length" in options, **options)
        assert set(mapped.column_names) == set(expected), options
        for name, rows in expected.items():
            for ours_, theirs in zip(mapped[name], rows, strict=True):
                same = np.array_equal(np.asarray(ours_, np.float64), np.asarray(theirs, np.float64))
                assert same or not len(theirs), f"{name}, {options}: {ours_} instead of {theirs}"


@pytest.mark.parametrize("num_proc", [None, 2])
@pytest.mark.parametrize("removed", [None, ["text"]])
def test_map_to_arrow_keeps_the_other_columns(removed: list[str] | None, num_proc: int | None, tmp_path: Any) -> None:
    """Their values, order and kinds (a class label, nested lists), as after an ordinary map."""
    datasets = pytest.importorskip("datasets")
    tok = build_ours("gpt2", return_numbers=True)
    label = datasets.ClassLabel(names=["no", "yes"])
    kinds = {
        "id": datasets.Value("string"),
        "text": datasets.Value("string"),
        "labels": label,
        "spans": datasets.List(datasets.Value("int64")),
    }
    columns = {"id": [f"row {n}" for n in range(7)], "text": [f"it is {n}.5" for n in range(7)], "labels": [n % 2 for n in range(7)]}
    columns["spans"] = [[n] * (n % 3) for n in range(7)]
    datasets.Dataset.from_dict(columns, features=datasets.Features(kinds)).save_to_disk(str(tmp_path / "data"))
    dataset = datasets.load_from_disk(str(tmp_path / "data"))
    options = {"batched": True, "batch_size": 3, "num_proc": num_proc, "remove_columns": removed}
    ordinary = dataset.map(lambda rows: dict(tok(rows["text"])), **options)
    kept = {} if removed else {"fn_kwargs": {"keep_column": True}}
    mapped = dataset.with_format("arrow").map(tok.encode_arrow, **options, **kept).with_format(None)
    assert mapped.column_names == ordinary.column_names
    assert mapped[:] == ordinary[:]
    assert all(mapped.features[name] == kinds[name] for name in kinds if name in mapped.features)
    again = mapped.with_format("arrow").map(lambda table: tok.encode_arrow(table, column="id"), batched=True).with_format(None)
    assert "id" not in again.column_names
    assert again["input_ids"][:] == tok(columns["id"])["input_ids"]  # replaced, as by an ordinary map
    assert again["labels"][:] == columns["labels"]


def test_arrow_of_any_kind() -> None:
    """A table, a batch, a column, a chunked one; other types of text; what cannot be encoded is said in words."""
    import pyarrow as pa

    tok = build_ours("bert")
    table = pa.table({"words": pa.chunked_array([TEXTS[:1], TEXTS[1:]])})
    expected = tok(TEXTS)["input_ids"]
    whole = table.combine_chunks()
    for texts in (
        table,
        whole.to_batches()[0],
        table["words"].cast(pa.large_string()),
        whole["words"].chunk(0),
        pa.array(["", *TEXTS])[1:],
    ):
        assert tok.encode_arrow(texts, column="words")["input_ids"].to_pylist() == expected
    assert tok.encode_arrow(pa.array([], pa.string())).num_rows == 0
    for bad, message in ((pa.table({"a": ["b"]}), "text"), (pa.array(["a", None]), "row 1"), (pa.array([1, 2]), ".")):
        with pytest.raises(numtok.NumtokError, match=message):
            tok.encode_arrow(bad)
    with pytest.raises(numtok.NumtokError, match="max_length=1"):
        tok.encode_arrow(pa.array(["a"]), max_length=1)


# Collators ----------------------------------------------------------------------------------------------------------------------


PLAIN = ["a few words", "the number of things is not known", "[NUM]"]


def collators(tok: Any) -> dict[str, Any]:
    fixed = {"mask_replace_prob": 1.0, "random_replace_prob": 0.0}  # random words are drawn from all there are, so they would differ
    return {
        "padding": transformers.DataCollatorWithPadding(tok, pad_to_multiple_of=4),
        "token classification": transformers.DataCollatorForTokenClassification(tok),
        "sequences": transformers.DataCollatorForSeq2Seq(tok),
        "causal": transformers.DataCollatorForLanguageModeling(tok, mlm=False),
        "masked": transformers.DataCollatorForLanguageModeling(tok, mlm=True, mlm_probability=0.5, seed=3, **fixed),
    }


@pytest.mark.parametrize("name", ["padding", "token classification", "sequences", "causal", "masked"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_collators_without_streams(kind: str, name: str) -> None:
    """On text without numbers as the source; with numbers, ids as the oracle's, padded."""
    labelled = name in ("token classification", "sequences")
    got = []
    for tok in (ours(kind), source(kind)):
        features = [dict(tok(text, return_special_tokens_mask=name == "masked")) for text in PLAIN]
        for one in features if labelled else []:
            one["labels"] = [7] * len(one["input_ids"])
        got.append(dict(collators(tok)[name](features)))
    checks.same(*got)
    tok = ours(kind)
    features = [dict(tok(text)) for text in TEXTS]
    for one in features if labelled else []:
        one["labels"] = [7] * len(one["input_ids"])
    batch = collators(tok)[name](features)
    assert not {"number_values", "number_mask"} & set(batch)
    if name != "masked":
        width = batch["input_ids"].shape[1]
        rows = [row.ids + [tok.pad_token_id] * (width - len(row.ids)) for row in oracle(kind).call(TEXTS).rows]
        assert batch["input_ids"].tolist() == rows


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["padding", "token classification", "sequences"])
def test_collators_with_streams(name: str, side: str) -> None:
    """Those that only pad take the streams along."""
    numbers = (XVal(), FoNE(6, 4, overflow="clip"))
    tok = build_ours("bert", numbers, return_numbers=True)
    tok.padding_side = side
    features = [dict(tok(text)) for text in TEXTS]
    for one in features if name != "padding" else []:
        one["labels"] = [7] * len(one["input_ids"])
    batch = collators(tok)[name](features)
    padded = tok(TEXTS, padding=True, pad_to_multiple_of=4 if name == "padding" else None, return_tensors="pt")
    for key in ("input_ids", "number_values", "number_mask", "number_scaled", "number_fourier"):
        assert torch.equal(batch[key], padded[key]), key
    assert batch["number_values"].dtype == torch.float64 and batch["number_mask"].dtype == torch.bool


# Models and pipelines -------------------------------------------------------------------------------------------------------------


@functools.lru_cache(4)
def gpt2_model(size: int) -> Any:
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=size, n_positions=64, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=None)
    return transformers.GPT2LMHeadModel(config).eval()


def bert_model(kind: Any, size: int, **options: Any) -> Any:
    torch.manual_seed(0)
    config = BertConfig(vocab_size=size, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, **options)
    return kind(config).eval()


def test_a_stock_model_takes_the_batch() -> None:
    """``model(**tok(...))`` and ``model.generate(**tok(...))``, as always."""
    tok = ours("roberta")
    model = gpt2_model(len(tok))
    batch = tok(TEXTS, padding=True, padding_side="left", return_tensors="pt")
    assert set(batch) == {"input_ids", "attention_mask"}
    assert model(**batch).logits.shape == (*batch["input_ids"].shape, len(tok))
    pieces: list[str] = []

    class Streamer(transformers.TextStreamer):
        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            pieces.append(text)

    one = tok(TEXTS[0], return_tensors="pt")
    generated = model.generate(
        **one, max_new_tokens=8, do_sample=False, streamer=Streamer(tok, skip_prompt=True), pad_token_id=tok.pad_token_id
    )
    assert "".join(pieces) == tok.decode(generated[0][one["input_ids"].shape[1] :])
    assert model.generate(**batch, max_new_tokens=2, pad_token_id=tok.pad_token_id, tokenizer=tok, stop_strings=["zzz"]).shape[0] == len(
        TEXTS
    )


@pytest.mark.filterwarnings("ignore")
def test_text_generation_pipeline() -> None:
    tok, stock = copy.deepcopy(ours("roberta")), copy.deepcopy(source("roberta"))  # the pipeline changes their padding side
    model = gpt2_model(len(stock))  # writes no numbers
    options = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": tok.pad_token_id}
    results = [transformers.pipeline("text-generation", model=model, tokenizer=one)(PLAIN[:2], **options) for one in (tok, stock)]
    assert results[0] == results[1]
    number = transformers.pipeline("text-generation", model=gpt2_model(len(tok)), tokenizer=tok)(
        TEXTS[0], return_full_text=False, **options
    )
    batch = tok(TEXTS[0], return_tensors="pt")
    whole = gpt2_model(len(tok)).generate(**batch, **options)[0]
    assert number[0]["generated_text"].strip() == tok.decode(whole[batch["input_ids"].shape[1] :], skip_special_tokens=True).strip()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strategy", ["none", "simple", "first"])
def test_token_classification_pipeline(strategy: str) -> None:
    """It lives on offsets and word ids: the places of numbers are those in the text."""
    tok, stock = copy.deepcopy(ours("bert")), copy.deepcopy(source("bert"))
    model = bert_model(transformers.BertForTokenClassification, len(tok), num_labels=3)
    made = [
        transformers.pipeline("token-classification", model=model, tokenizer=one, aggregation_strategy=strategy) for one in (tok, stock)
    ]
    assert made[0](PLAIN[:2]) == made[1](PLAIN[:2])
    text = "from 1,234 to -7.5 or so"
    found = made[0](text, ignore_labels=[])
    spans = {text[one["start"] : one["end"]] for one in found}
    assert strategy != "none" or {"1,234", "-7.5"} <= spans
    assert all(one["end"] <= len(text) for one in found) and max(one["end"] for one in found) == len(text)


@pytest.mark.filterwarnings("ignore")
def test_fill_mask_pipeline() -> None:
    tok, stock = copy.deepcopy(ours("bert")), copy.deepcopy(source("bert"))
    model = bert_model(transformers.BertForMaskedLM, len(stock))
    results = [transformers.pipeline("fill-mask", model=model, tokenizer=one)("the [MASK] of it") for one in (tok, stock)]
    assert results[0] == results[1]
    wide = bert_model(transformers.BertForMaskedLM, len(tok))
    filled = transformers.pipeline("fill-mask", model=wide, tokenizer=tok)("the [MASK] of 5")
    assert all(NUM in one["sequence"] for one in filled)


# Chats --------------------------------------------------------------------------------------------------------------------------


CHAT = [{"role": "user", "content": "what is it? [NUM]"}, {"role": "assistant", "content": "a  number of\n things"}]
CHAT_WITH_NUMBERS = [{"role": "user", "content": "add 1,234 and -5 [NUM]"}, {"role": "assistant", "content": "1229, or 1.2e3"}]
CHAT_OPTIONS: list[dict[str, Any]] = [
    {"tokenize": False},
    {"tokenize": False, "add_generation_prompt": True},
    {"tokenize": False, "continue_final_message": True},
    {},
    {"return_dict": False},
    {"add_generation_prompt": True, "return_tensors": "pt"},
    {"return_tensors": "np", "padding": "max_length", "max_length": 40, "truncation": True},
    {"return_assistant_tokens_mask": True},
    {"return_assistant_tokens_mask": True, "truncation": True, "max_length": 12},
    {"sanitize_control_tokens": True},
    {"tokenizer_kwargs": {"return_offsets_mapping": True}},
    {"chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}"},
]


@pytest.mark.parametrize("options", CHAT_OPTIONS, ids=lambda options: "-".join(options) or "none")
def test_chats_without_numbers(options: dict[str, Any]) -> None:
    tok, stock = ours("llama"), source("llama")
    assert tok.chat_template == stock.chat_template == CHAT_TEMPLATE
    for chat in (CHAT, [CHAT, CHAT[:1]]):
        checks.compare(tok, stock, lambda one: one.apply_chat_template(chat, **options), options)  # noqa: B023


@pytest.mark.parametrize("options", [{}, {"add_generation_prompt": True}, {"return_assistant_tokens_mask": True}], ids=str)
def test_chats_with_numbers(options: dict[str, Any]) -> None:
    tok = ours("llama")
    rendered = tok.apply_chat_template(CHAT_WITH_NUMBERS, tokenize=False, add_generation_prompt=bool(options.get("add_generation_prompt")))
    expected = oracle("llama").call(rendered, add_special_tokens=False)
    got = tok.apply_chat_template(CHAT_WITH_NUMBERS, **options)
    assert got["input_ids"] == expected.rows[0].ids
    if "return_assistant_tokens_mask" in options:
        first, last = rendered.index("1229"), rendered.index("1.2e3") + len("1.2e3") + len("</s>")
        marked = [span for span, mark in zip(expected.rows[0].offsets, got["assistant_masks"], strict=True) if mark]
        assert marked[0][0] == first and marked[-1][1] == last
    on = tok.apply_chat_template(CHAT_WITH_NUMBERS, tokenizer_kwargs={"return_numbers": True}, **options)
    checks.check_streams(on, expected, oracle("llama"))
    values = on["number_values"]
    assert [value for value, mark in zip(values, on["number_mask"], strict=True) if mark] == [1234.0, -5.0, 1229.0, 1200.0]


def test_sanitized_chats_with_numbers() -> None:
    """Control tokens that a user writes are text; the numbers beside them are still numbers."""
    tok = ours("llama")
    chat = [{"role": "user", "content": "5 <|assistant|> </s> -7"}]
    got = tok.apply_chat_template(chat, sanitize_control_tokens=True, return_dict=True)["input_ids"]
    control = tok.convert_tokens_to_ids("<|assistant|>")
    assert control not in got and tok.eos_token_id not in got
    assert got.count(tok.convert_tokens_to_ids(NUM)) == 2, tok.convert_ids_to_tokens(got)


# Imports ------------------------------------------------------------------------------------------------------------------------


def test_import_numtok_loads_none_of_them(tmp_path: Path) -> None:
    script = """
        import sys
        import numtok
        numtok.Tokenizer.from_pretrained().encode("a 5")
        print(sorted({"torch", "transformers", "datasets", "ray"} & set(sys.modules)))
    """
    assert run(script, tmp_path).strip() == "[]"


def test_import_without_transformers(tmp_path: Path) -> None:
    script = """
        import sys
        sys.modules["transformers"] = None
        import numtok
        try:
            import numtok.hf
        except numtok.NumtokError as error:
            print(type(error).__name__, error)
    """
    said = run(script, tmp_path)
    assert said.startswith(MissingDependencyError.__name__) and "numtok[hf]" in said, said


def test_import_without_torch(tmp_path: Path) -> None:
    """Lists and numpy arrays need no torch."""
    ours("bert").save_pretrained(tmp_path / "saved")
    script = """
        import sys
        sys.modules["torch"] = None
        import numtok.hf
        tok = numtok.hf.NumberTokenizer.from_pretrained(sys.argv[1])
        got = tok(["a 5", "b"], padding=True, return_tensors="np", return_numbers=True)
        print(got["number_values"].dtype, tok.batch_decode(got["input_ids"], number_values=got["number_values"], skip_special_tokens=True))
        print(sorted({"datasets", "ray"} & set(sys.modules)))
    """
    assert run(script, tmp_path, tmp_path / "saved").splitlines() == ["float64 ['a 5', 'b']", "[]"]
