"""Saving and loading: everything comes back, other programs read what is saved, and AutoTokenizer
finds the class; what works without transformers or torch.
"""

import functools
import json
import pickle

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
import trained
import transformers
from hf_cases import SETTINGS, TAKES_ALL, TEXTS, build_ours, build_source, ours
from hf_compare import same
from new_process import run
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Qwen2Config

import numtok
from numtok.errors import MissingDependencyError
from numtok.hf import tokenizer as hf
from numtok.numbers.grammar import Grammar
from numtok.representations import Digits, FoNE, Subword, XVal


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        *(("bert", settings) for settings in SETTINGS),
        *(("roberta", "combined"), ("t5", "spelled"), ("llama", "combined")),
    ],
)
def test_saved_and_loaded(kind, settings, tmp_path):
    tok = build_ours(kind, **SETTINGS[settings])
    tok.save_pretrained(tmp_path)
    code = [path.name for path in tmp_path.iterdir() if path.suffix not in (".json", ".jinja")]
    assert code == ["numtok_tokenizer.py"]
    for read in (hf.NumberTokenizer.from_pretrained, AutoTokenizer.from_pretrained):
        loaded = read(str(tmp_path))
        checks.check_same_tokenizer(tok, loaded, TEXTS)
        assert ("number_value" in loaded("a 5")) == bool(SETTINGS[settings].get("return_numbers"))
        loaded.save_pretrained(tmp_path / "again")
    # the configuration may gain what transformers notes about loading
    for name in ("tokenizer.json", "numtok.json"):
        saved, again = ((folder / name).read_text() for folder in (tmp_path, tmp_path / "again"))
        assert json.loads(saved) == json.loads(again), name
    core = numtok.Tokenizer.from_pretrained(tmp_path)
    assert core.fingerprint == tok.numtok.fingerprint
    ids = core.encode(TEXTS[0], add_special_tokens=True).input_ids.tolist()
    assert ids == tok(TEXTS[0])["input_ids"]


def test_defaults_of_a_model_class(tmp_path):
    """Llama's pads on the left and BERT's returns token types, without either being an option."""
    llama, bert = (trained.config(kind)["model"] for kind in ("metaspace_first", "bert"))
    merges = [tuple(pair) for pair in llama["merges"]]
    for number, stock in enumerate(
        [
            transformers.LlamaTokenizer(vocab=llama["vocab"], merges=merges, pad_token="</s>"),
            transformers.BertTokenizer(vocab=bert["vocab"]),
        ]
    ):
        tok = hf.NumberTokenizer.from_tokenizer(stock, numbers=[Digits(1)])
        tok.save_pretrained(tmp_path / f"{number}")
        tok.export(tmp_path / f"{number} exported")
        others = [
            *(AutoTokenizer.from_pretrained(path) for path in tmp_path.glob(f"{number}*")),
            tok.train_new_from_iterator([["a few words"]], 400),
        ]
        for other in [tok, *others]:
            assert other.padding_side == stock.padding_side
            assert other(TEXTS[0], "a").keys() == stock(TEXTS[0], "a").keys()


def test_loading_with_other_settings(tmp_path):
    """What is given goes before what was saved; a folder without ours is a source."""
    read, stock = hf.NumberTokenizer.from_pretrained, tmp_path / "stock"
    build_source("roberta").save_pretrained(stock)
    tok = read(stock, numbers=[TAKES_ALL], padding_side="left", model_max_length=7)
    assert (tok.padding_side, tok.model_max_length) == ("left", 7)
    assert tok.numtok.representations == (TAKES_ALL,)
    assert tok(TEXTS[0])["input_ids"] == ours("roberta")(TEXTS[0])["input_ids"]
    assert read(str(stock)).numtok.representations == (XVal(),)
    tok.save_pretrained(tmp_path / "ours")
    other = read(
        tmp_path / "ours", numbers=[FoNE(3, 2)], grammar=Grammar.data(), return_numbers=True
    )
    assert other.numtok.representations == (FoNE(3, 2),)
    assert (other.numtok.grammar, other.padding_side) == (Grammar.data(), "left")
    assert "number_fourier" in other("a 5") and "number_scaled" not in other("a 5")
    wrapped = hf.NumberTokenizer.from_tokenizer(AutoTokenizer.from_pretrained(tmp_path / "ours"))
    assert len(wrapped) == len(tok) and wrapped(TEXTS)["input_ids"] == tok(TEXTS)["input_ids"]


def test_from_tokenizer_leaves_the_source_alone():
    stock = build_source("bert")
    before, names = stock.backend_tokenizer.to_str(), set(vars(stock))
    tok = hf.NumberTokenizer.from_tokenizer(stock, numbers=[TAKES_ALL])
    tok.add_tokens(["zyx"])
    tok.pad_token = "[SEP]"
    tok(TEXTS, padding=True, truncation=True, max_length=4)
    assert stock.backend_tokenizer.to_str() == before
    assert set(vars(stock)) == names and stock.pad_token == "[PAD]"
    assert type(stock) is PreTrainedTokenizerFast


@pytest.mark.parametrize("model", ["qwen2", "phi3", "bert", "t5"])
def test_beside_a_model(model, tmp_path):
    """For many types of models AutoTokenizer has a class of its own in mind."""
    kind = {"qwen2": "roberta", "phi3": "legacy"}.get(model, model)
    tok = ours(kind)
    tok.save_pretrained(tmp_path)
    transformers.AutoConfig.for_model(model).save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == model
    checks.check_same_tokenizer(tok, AutoTokenizer.from_pretrained(tmp_path), TEXTS)
    checks.check_same_tokenizer(tok, hf.NumberTokenizer.from_pretrained(tmp_path), TEXTS)


def test_new_process(tmp_path):
    """Where nobody imported numtok, AutoTokenizer gives ours with trust, and once the class is
    imported; pickle and dill. And as a worker that was spawned has it: the call comes by a pickle, and
    so do its results go back. None of it needs torch.
    """
    tok = ours("roberta")
    tok.save_pretrained(tmp_path / "saved")
    Qwen2Config().save_pretrained(tmp_path / "saved")
    (tmp_path / "tok.pickle").write_bytes(pickle.dumps(tok))
    import dill

    (tmp_path / "tok.dill").write_bytes(dill.dumps(tok))
    combined = ours("bert", (XVal(), FoNE(6, 4, overflow="clip")))
    options = {"return_offsets_mapping": True, "return_tensors": "np"}
    call = functools.partial(combined, return_numbers=True, **options)
    (tmp_path / "call.pickle").write_bytes(pickle.dumps(call))
    script = """
        import json, pickle, sys
        sys.modules["torch"] = None
        from pathlib import Path
        from transformers import AutoTokenizer
        folder, texts = Path(sys.argv[1]), json.loads(sys.argv[2])
        seen = {}
        def see(name, tok):
            seen[name] = [type(tok).__name__, tok(texts)["input_ids"]]
        see("trusted", AutoTokenizer.from_pretrained(folder / "saved", trust_remote_code=True))
        import numtok.hf
        see("imported", AutoTokenizer.from_pretrained(folder / "saved"))
        see("pickle", pickle.loads((folder / "tok.pickle").read_bytes()))
        import dill
        see("dill", dill.loads((folder / "tok.dill").read_bytes()))
        call = pickle.loads((folder / "call.pickle").read_bytes())
        (folder / "found.pickle").write_bytes(pickle.dumps([call(text) for text in texts]))
        assert not {"datasets", "ray"} & set(sys.modules)
        print(json.dumps(seen))
    """
    seen = json.loads(run(script, tmp_path, tmp_path, json.dumps(TEXTS)).splitlines()[-1])
    for way in ("trusted", "imported", "pickle", "dill"):
        assert seen[way] == ["NumberTokenizer", tok(TEXTS)["input_ids"]], way
    for text, found in zip(
        TEXTS, pickle.loads((tmp_path / "found.pickle").read_bytes()), strict=True
    ):
        same(found, pickle.loads(pickle.dumps(call(text))))  # encodings and all


def test_without_numtok_nothing_reads_other_ids(tmp_path):
    """In a process that cannot import numtok, whatever reads a saved folder fails and says what to
    install, beside a model's configuration too; numbers that stay text are read rightly.
    """
    text, folders = "The mass is -1.5e3 kg, 12 of 500 in 2020", {}
    for saver in ("core", "drop_in"):
        for numbers, form in (("xval", XVal()), ("subword", Subword())):
            made = build_ours("gpt2", (form,))
            for beside in ("alone", "model"):
                folder = tmp_path / f"{saver}-{numbers}-{beside}"
                (made if saver == "drop_in" else made.numtok).save_pretrained(folder)
                if beside == "model":
                    Qwen2Config().save_pretrained(folder)
                loaded = hf.NumberTokenizer.from_pretrained(folder)
                assert loaded(text)["input_ids"] == made(text)["input_ids"]
                folders[str(folder)] = made(text)["input_ids"] if numbers == "subword" else None
    script = """
        import json, sys, warnings
        class NotInstalled:
            def find_spec(name, *_):
                if name == "numtok":
                    raise ModuleNotFoundError("No module named 'numtok'")
        sys.meta_path.insert(0, NotInstalled)
        import tokenizers
        from transformers import AutoTokenizer, GPT2Tokenizer, PreTrainedTokenizerFast
        text, found = sys.argv[1], {}
        readers = {
            "tokenizers": lambda folder: tokenizers.Tokenizer.from_file(folder + "/tokenizer.json"),
            "file": lambda f: PreTrainedTokenizerFast(tokenizer_file=f + "/tokenizer.json"),
            "auto": lambda folder: AutoTokenizer.from_pretrained(folder, trust_remote_code=False),
            "trusted": lambda folder: AutoTokenizer.from_pretrained(folder, trust_remote_code=True),
            "gpt2": GPT2Tokenizer.from_pretrained,
        }
        for folder in sys.argv[2:]:
            for name, read in readers.items():
                try:
                    ids = read(folder).encode(text)
                    found[folder + " " + name] = getattr(ids, "ids", ids)
                except Exception as error:
                    found[folder + " " + name] = str(error)
        print(json.dumps(found))
    """
    found = json.loads(run(script, tmp_path, text, *folders).splitlines()[-1])
    for case, seen in found.items():
        folder, reader = case.rsplit(" ", 1)
        if isinstance(seen, list):
            assert seen == folders[folder], case
        elif folders[folder] is None:
            asks_for_trust = "drop_in" in folder and "alone" in folder and reader == "auto"
            assert ("trust_remote_code=True" if asks_for_trust else "pip install numtok") in seen
        else:
            assert reader in ("auto", "trusted") and "drop_in" in folder, (case, seen)


def test_an_exported_folder_is_stock_and_whole(tmp_path):
    tok = build_ours("llama", numbers=(Digits(3),))
    assert tok.export(tmp_path) == tok.export(tmp_path, overwrite=True) != ()
    read = AutoTokenizer.from_pretrained(tmp_path)
    assert type(read) is PreTrainedTokenizerFast
    assert (read.eos_token, read.chat_template) == (tok.eos_token, tok.chat_template)
    assert read.tokenize("a -12345.6789")[2:] == ["-", "12", "345", ".", "678", "9"]
    back = hf.NumberTokenizer.from_pretrained(tmp_path, return_numbers=True)
    for text in TEXTS:
        assert back(text)["input_ids"] == read(text)["input_ids"]
    assert [value for value in back("a 12345")["number_value"] if value != 1] == [12345.0]


def test_import_without_transformers(tmp_path):
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
