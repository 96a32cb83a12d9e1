"""Every block of the documentation runs as it stands, from the top of its page, and does what the
page promises.

What a block trains has finite losses that fall, and what it decodes is what was encoded; a block
that promises more has a check of its own in ``PROMISES``. What the pages take for granted, such as
the files that they name, lies in the folder they run in: see ``FOUND_THERE``.
"""

import dataclasses
import json
import logging
import math
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import jobs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trained
from docs_runner import Session, blocks, documents
from places import ROOT, SAMPLE, shared_folder
from pretrained import smollm2

import numtok
import numtok_torch

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

Promise = Callable[[Session, str], None]
PROMISES: dict[tuple[str, str], Promise] = {}


def promise(document, words):
    """The decorated function checks the one block of ``document`` that holds ``words``; it gets the
    session and what the block printed.
    """

    def add(check):
        PROMISES[document, words] = check
        return check

    return add


# What the pages take for granted


def sample(folder):
    shutil.copy(SAMPLE, folder / "sample.jsonl")


SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"


def pythia(folder, name="EleutherAI/pythia-70m"):
    """Make a folder of the name that Pythia has on the hub: tokenizer and model of the same kind and
    the same special tokens, but small, with random weights.
    """
    target = folder / name
    end = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    source = trained.stock("neox", **end)
    source.save_pretrained(target)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": len(source)}
    config = transformers.GPTNeoXConfig(bos_token_id=0, eos_token_id=0, **sizes)
    transformers.GPTNeoXForCausalLM(config).save_pretrained(target)


GPT2 = "openai-community/gpt2"


def gpt2(folder):
    """Put GPT-2's own tokenizer there under its name, if the shared data have it."""
    shared = shared_folder()
    if shared is not None and (source := shared / "tokenizers" / "gpt2.json").exists():
        (folder / GPT2).mkdir(parents=True)
        shutil.copy(source, folder / GPT2 / "tokenizer.json")


def small_smollm2(folder):
    """Make the same under the name of SmolLM2, which :func:`test_a_pretrained_model_learns` takes."""
    pythia(folder, SMOLLM2)


def out_parquet(folder):
    """What a page about reading files reads."""
    numtok.encode_files(SAMPLE, folder / "out.parquet", numbers="xval,bits", scale=1.0)


FOUND_THERE: dict[str, list[Callable[[Path], None]]] = {
    "README.md": [sample, pythia, gpt2],
    "docs/start.md": [sample, pythia],
    "docs/huggingface.md": [sample, pythia],
    "docs/serving.md": [pythia],
    "docs/corpora.md": [sample],
    "docs/packing.md": [sample],
    "docs/stats.md": [sample],
    "docs/training.md": [sample],
    "numtok/FORMAT.md": [out_parquet],
    "docs/files.md": [sample],
    "docs/choosing.md": [sample],
    "docs/distribution.md": [small_smollm2],
    "docs/grounded.md": [small_smollm2],
    "docs/number_format.md": [small_smollm2],
    "docs/predict.md": [small_smollm2],
    "docs/pretrained.md": [sample, small_smollm2],
}


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    """An empty folder, the CPU, one thread, a seed, and a cache that goes away with the folder."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / ".cache")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)  # what an untrained model writes is not to depend on the tests before
    yield
    torch.set_num_threads(threads)


# a third of the pages, most of whose seconds go to starting and training
LONG = {"adding.md", "corpora.md", "packing.md", "predict.md", "pretrained.md", "serving.md"}
LONG |= {"start.md", "stats.md", "tables.md", "training.md"}
PAGES = [
    pytest.param(path, id=path.name, marks=[pytest.mark.slow] if path.name in LONG else [])
    for path in documents()
]


@pytest.fixture
def complaints():
    """What transformers says of a config: ids beyond the vocabulary, and deprecated names."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_warning()
    transformers.logging.add_handler(handler)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", FutureWarning)
        yield said
    transformers.logging.remove_handler(handler)
    transformers.logging.set_verbosity(verbosity)
    said += [str(one.message) for one in warned]
    words, of_peft = ("within the vocabulary", "deprecated"), "is_gradient_checkpointing"
    ours = [one for one in said if of_peft not in one and any(word in one for word in words)]
    assert ours == []


@pytest.mark.parametrize("path", PAGES)
def test_the_blocks_run_and_keep_their_promise(path, complaints):
    document = str(path.relative_to(ROOT))
    session = Session(Path.cwd(), {"__name__": "__main__"})
    for prepare in FOUND_THERE.get(document, []):
        prepare(session.folder)
    for block in blocks(path):
        if GPT2 in block.source and not (session.folder / GPT2).exists():
            continue
        trainer = session.names.get("trainer")
        printed = session.run(block)
        if session.names.get("trainer") is not trainer and "trainer.train()" in block.source:
            check_training(session.names["trainer"])
        if block.language == "sh":
            for decoded in re.findall(r"numtok decode .* -o (\S+\.jsonl)", block.source):
                assert texts(session.folder / decoded) == texts(SAMPLE)
        for (page, words), check in PROMISES.items():
            if page == document and words in block.source:
                check(session, printed)


STEPS = re.compile(r"(max_steps|warmup_steps|logging_steps)=(\d+)")
FEW = {"max_steps": 3, "warmup_steps": 1, "logging_steps": 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["predict.md", "pretrained.md"])
def test_a_pretrained_model_learns(name):
    """The blocks of the page run on SmolLM2 itself, in fewer steps. Its loss never rises above 1.15
    times its start.
    """
    session = Session(Path.cwd(), {"__name__": "__main__"})
    sample(session.folder)
    (session.folder / "HuggingFaceTB").mkdir()
    (session.folder / SMOLLM2).symlink_to(smollm2())
    trained = None
    for block in blocks(ROOT / "docs" / name):
        fewer = STEPS.sub(lambda found: f"{found[1]}={FEW[found[1]]}", block.source)
        session.run(dataclasses.replace(block, source=fewer))
        trainer = session.names.get("trainer")
        if trainer is not trained:
            losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
            assert len(losses) == FEW["max_steps"] and math.isfinite(sum(losses))
            assert max(losses) <= 1.15 * losses[0]
        trained = trainer
    assert trained is not None


def test_every_promise_is_about_one_block():
    sources = {
        str(path.relative_to(ROOT)): [one.source for one in blocks(path)] for path in documents()
    }
    about = [sum(words in source for source in sources[page]) for page, words in PROMISES]
    assert [key for key, count in zip(PROMISES, about, strict=True) if count != 1] == []


# Promises


def texts(path):
    return [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]


FALLS = {False: {"loss": 0.9}, True: {"loss": 1.0, "number_loss": 0.9}}


def check_training(trainer):
    """Losses are finite and fall, and all that was learnt is finite. Where the new layers have a rate
    of their own, which is meant for a pretrained model, it is the loss of numbers that falls fast.
    """
    of_layers = getattr(trainer, "head_learning_rate", None) is not None
    for name, falls_to in FALLS[of_layers].items():
        losses = [entry[name] for entry in trainer.state.log_history if name in entry]
        assert losses and math.isfinite(sum(losses)) and losses[-1] < falls_to * losses[0]
    assert all(torch.isfinite(parameter).all() for parameter in trainer.model.parameters())


def check_blocks(session, file, separators):
    """The data set that the page trains on holds every token and every number of the file."""
    table, data = pq.read_table(session.folder / file), list(session.names["data"])
    tokens, numbers = (
        pa.compute.sum(pa.compute.list_value_length(table[name])).as_py()
        for name in ("input_ids", "number_index")
    )
    assert sum(len(block["input_ids"]) for block in data) == tokens + separators
    assert sum(len(block["number_value"]) for block in data) == numbers


@promise("docs/start.md", "numtok train sample")
def _(session, printed):
    table = pa.ipc.open_file(str(session.folder / "prices.arrow")).read_all()
    assert table["id"].to_pylist() == ["A7", "B2"]
    assert table["number_value"].to_pylist() == [[3.5, 1.25], [-1200]]
    assert {"number_scaled", "number_bits"} <= set(table.column_names)
    assert "-12.5e-3" in (session.folder / "page.html").read_text("utf-8")
    assert "183 numbers in 31 documents" in (session.folder / "report.html").read_text("utf-8")
    made = numtok.Tokenizer.from_pretrained(session.folder / "my-tokenizer")
    assert 257 < made.vocab_size <= 16_004


@promise("docs/start.md", "tok.save_pretrained(")
def _(session, printed):
    names = session.names
    assert names["tok"].decode_batch(names["batch"]).to_pylist() == ["The mass is -1.5e3 kg"]
    assert numtok.Tokenizer.from_pretrained(session.folder / "folder") == names["tok"]
    rows = (session.folder / "prices.jsonl").read_text("utf-8").splitlines()
    assert json.loads(rows[0]) == {"text": "tea 3.50, cake 1.25", "id": "A7"}


@promise("README.md", "numtok encode sample.jsonl -o shards/")
def _(session, printed):
    assert texts(session.folder / "back.jsonl") == texts(SAMPLE)
    assert "183 numbers in 31 documents" in (session.folder / "report.html").read_text("utf-8")
    assert len(jobs.table(session.folder / "shards")) == len(texts(SAMPLE))


@promise("README.md", "from numtok.hf import NumberTokenizer")
def _(session, printed):
    tokenizer, weights = session.names["tokenizer"], ["It weighs -1.5e3 kg", "It weighs 11 kg"]
    assert tokenizer.batch_decode(tokenizer(weights)["input_ids"]) == weights
    assert [len(tokenizer(text)["input_ids"]) for text in ("5", "11")] == [3, 4]


@promise("docs/start.md", "trainer = NumberTrainer(")
def _(session, printed):
    """What the model writes behind the beginnings of its texts holds numbers. (It is drawn, as the
    small model has random weights in place of pretrained ones, and repeats its likeliest word.)
    """
    check_blocks(session, "corpus.parquet", separators=0)
    generate, beginnings = session.names["generate"], [text[:30] for text in texts(SAMPLE)]
    model, tokenizer = session.names["model"], session.names["tokenizer"]
    written = generate(model, tokenizer, beginnings, max_new_tokens=60, do_sample=True)
    assert len(numtok.extract(" ".join(written))) > 1


@promise("docs/tutorials/adding.md", "right = sum(")
def _(session, printed):
    """The loss falls, and nearly all sums that were not seen are right."""
    losses, asked = session.names["losses"], session.names["asked"]
    assert math.isfinite(sum(losses)) and sum(losses[-50:]) < 0.3 * sum(losses[:50])
    assert len(asked) > 190 and session.names["right"] > 0.95 * len(asked)


@promise("docs/corpora.md", "duckdb.sql(")
def _(session, printed):
    names, expected = session.names, jobs.table(session.folder / "data")["input_ids"].to_pylist()
    assert names["rows"]["input_ids"][:] == names["frame"]["input_ids"].to_list() == expected
    assert names["table"]["input_ids"].to_pylist() == expected
    assert names["found"] == [(len(expected),)]


@promise("docs/corpora.md", "data/__numtok/plan.json ")
def _(session, printed):
    """What the page lists is there, and nothing else."""
    listed = {line.split()[0].rstrip("/") for line in printed.splitlines()}
    paths = (session.folder / "data").rglob("*")
    found = {str(path.relative_to(session.folder)) for path in paths}
    told = {one for one in found if "tokenizer/" not in one}
    assert {one for one in told if not one.endswith(("lock", "__numtok"))} == listed


@promise("docs/packing.md", "class MegatronRows(Dataset)")
def _(session, printed):
    """Every row holds what the file holds, with the end token behind it."""
    from numtok_torch import NumberDataset

    data, rows = NumberDataset(session.folder / "sample.parquet"), session.names["rows"]
    assert len(rows) == len(data)
    for row, stored in zip(rows, data, strict=True):
        assert row["input_ids"][:-1].tolist() == stored["input_ids"].tolist()
        assert row["number_value"][row["number_mask"]].tolist() == stored["number_value"].tolist()


@promise("docs/stats.md", "numtok stats sample.jsonl --html")
def _(session, printed):
    assert "183 numbers in 31 documents" in (session.folder / "report.html").read_text("utf-8")
    data = json.loads((session.folder / "report.json").read_text("utf-8"))
    assert data["recommendation"]["options"] == {"numbers": "fone:16,16"}
    assert "recommended: --numbers fone:16,16" in printed


@promise("docs/stats.md", "numtok stats sample.parquet")
def _(session, printed):
    encoded = printed[printed.rindex("sample.parquet\n  documents") :]
    assert "fone:4,2" in encoded and "p1000" not in encoded
    assert "Encoded files do not tell" in encoded


@promise("docs/training.md", 'print(generate(model, tokenizer, ["The tower is"]')
def _(session, printed):
    check_blocks(session, "sample.parquet", separators=31)
    assert (session.folder / "model" / "model.safetensors").is_file()
    assert numtok.extract(printed.splitlines()[-1])


@promise("docs/serving.md", 'pipeline("text-generation", model="model"')
def _(session, printed):
    decoded, text = printed.splitlines()[:1], session.names["text"]
    assert decoded[0].startswith("It weighs 12.5 kg and")
    model, tokenizer = session.names["model"], session.names["tokenizer"]
    prompt = "It weighs 12.5 kg and"
    found = numtok_torch.generate(model, tokenizer, [prompt], max_new_tokens=20, full_text=True)
    assert found == [text] and text.startswith(prompt)


@promise("docs/training.md", "compute_metrics=number_metrics")
def _(session, printed):
    found = session.names["trainer"].evaluate()
    told = float(printed.splitlines()[-1])
    assert found["eval_numbers"] > 100 and found["eval_median_log_error"] == pytest.approx(told)
    assert told < 3


@promise("docs/training.md", "Seq2SeqNumberCollator.from_schema")
def _(session, printed):
    """Training moved the loss, which is finite, and a number was written in the words of the
    targets.
    """
    from numtok_torch import NumberModel

    names = session.names
    batch = names["collator"](list(zip(names["sources"], names["targets"], strict=True)))
    backbone, model = names["backbone"], names["model"]
    fresh = NumberModel(type(backbone)(backbone.config), model.embedding, model.head)
    with torch.no_grad():
        before, after = (float(one.eval()(**batch).loss) for one in (fresh, model))
    assert math.isfinite(after) and after < before - 1
    assert re.search(r"\['.*is \d+.*'\]", printed), printed


@promise("docs/representations.md", "class Root(SingleToken)")
def _(session, printed):
    """It is one like ours; other pages are about ours alone."""
    assert numtok.representations.parse("root") == (session.names["Root"](),)
    del numtok.representations.REPRESENTATIONS["root"]


@promise("numtok/FORMAT.md", "It     is   [NUM]")
def _(session, printed):
    compact = numtok.representations.parse("xval,bits", compact=True)
    check_worked("It is -28.5 or 10,000", compact, printed)


@promise("numtok/FORMAT.md", "place_value    [0,")
def _(session, printed):
    check_worked("It is 123.45", (numtok.PlaceValue(),), printed)


def check_worked(text, numbers, block):
    """Lines ``column [values] hex hex ...``, the hex words being the values as they lie in memory,
    little-endian.
    """
    batch = numtok.Tokenizer.from_pretrained(numbers=numbers).encode_batch([text])
    lines = re.findall(r"^(\w+) +(\[.*?\]) *((?:[0-9a-f]{8,} ?)*)$", block, re.M)
    assert len(lines) >= 3
    for column, written, held in lines:
        (values,) = batch[column]
        assert json.loads(written) == values.as_py(), f"{text}: {column} is {values}"
        assert not held or bytes.fromhex(held) == values.values.to_numpy().tobytes(), column


@promise("numtok/FORMAT.md", 'pq.read_table("out.parquet")')
def _(session, printed):
    expected = []
    for row in session.names["table"].to_pylist():
        ids = [row["input_ids"][place] for place in row["number_index"]]
        expected.append(list(zip(ids, row["number_value"], strict=True)))
    assert [eval(line) for line in printed.splitlines()] == expected and len(expected) == 31
    assert session.names["metadata"]["format"] == 2
    words = [int("".join(map(str, bits)), 2) for bits in session.names["matrix"].tolist()]
    floats = torch.tensor(words).to(torch.uint32).view(torch.float32).tolist()
    values = [value for row in expected for _, value in row]
    for one, value in zip(floats, values, strict=True):
        assert math.isclose(one, value, rel_tol=1e-7)
