"""Every block of the documentation runs as it stands, from the top of its page, and does what the
page promises.

A block without a promise fails, and so does a promise without a block. What the pages take for
granted, such as the files that they name, lies in
the folder they run in: see ``FOUND_THERE``.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jobs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trained
from docs_runner import Block, Session, blocks, documents
from places import ROOT

import numtok
from numtok.engines.tokenizer_json import DEFAULT_FOLDER

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

SAMPLE = ROOT / "examples" / "sample.jsonl"
Promise = Callable[[Session, str], None]
PROMISES: dict[tuple[str, str], Promise] = {}


def promise(document: str, words: str) -> Callable[[Promise], Promise]:
    """The decorated function checks the one block of ``document`` that holds ``words``; it gets the
    session and what the block printed.
    """

    def add(check: Promise) -> Promise:
        PROMISES[document, words] = check
        return check

    return add


# What the pages take for granted
# -----------------------------------------------------------------------------------------


def sample(folder: Path) -> None:
    shutil.copy(SAMPLE, folder / "sample.jsonl")


def corpus(folder: Path) -> None:
    """corpus/*.jsonl.zst: the sample, in two files."""
    lines = SAMPLE.read_bytes().splitlines(keepends=True)
    (folder / "corpus").mkdir()
    for name, part in (("a", lines[:20]), ("b", lines[20:])):
        with pa.CompressedOutputStream(
            str(folder / "corpus" / f"{name}.jsonl.zst"), "zstd"
        ) as file:
            file.write(b"".join(part))


def prices(folder: Path) -> None:
    (folder / "prices.csv").write_text(
        'id,text\nA7,"tea 3.50, cake 1,25"\nB2,"rent -1200"\n', "utf-8"
    )


def tokenizer_json(folder: Path) -> None:
    shutil.copy(DEFAULT_FOLDER / "tokenizer.json", folder)


def pythia(folder: Path) -> None:
    """A folder of the name that Pythia has on the hub: tokenizer and model of the same kind and the
    same special tokens, but small, with random weights.
    """
    target = folder / "EleutherAI" / "pythia-70m"
    end = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    source = transformers.PreTrainedTokenizerFast(tokenizer_object=trained.source("neox"), **end)
    source.save_pretrained(target)
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "max_position_embeddings": 256,
    }
    config = transformers.GPTNeoXConfig(
        vocab_size=len(source), bos_token_id=0, eos_token_id=0, **sizes
    )
    transformers.GPTNeoXForCausalLM(config).save_pretrained(target)


def out_parquet(folder: Path) -> None:
    """What a page about reading files reads."""
    from numtok.corpus.encode import encode_corpus

    tokenizer = numtok.Tokenizer.from_pretrained(
        numbers=[numtok.XVal(), numtok.FloatBits(compact=True)]
    )
    encode_corpus([SAMPLE], folder / "out.parquet", tokenizer)


FOUND_THERE: dict[str, list[Callable[[Path], None]]] = {
    "README.md": [sample, corpus, prices, tokenizer_json, pythia],
    "docs/huggingface.md": [sample, pythia],
    "docs/corpora.md": [corpus],
    "docs/packing.md": [sample],
    "docs/stats.md": [sample],
    "docs/training.md": [sample],
    "numtok/FORMAT.md": [out_parquet],
    "docs/files.md": [sample],
}


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder, the CPU, one thread, and a cache that goes away with the folder."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / ".cache")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def the_promise(document: str, block: Block) -> Promise | None:
    """Every block that runs has one; a text may have one."""
    found = [
        check
        for (page, words), check in PROMISES.items()
        if page == document and words in block.source
    ]
    one = len(found) == 1 or (block.language == "text" and not found)
    assert one, (
        f"{block}: {len(found)} promises are about this block; write one, with words that no other"
        " block of the page has"
    )
    return found[0] if found else None


LONG = {
    "corpora.md",
    "packing.md",
    "training.md",
}  # a third of the pages, most of whose seconds go to starting and training


def pages() -> Iterator[Any]:
    for path in documents():
        yield pytest.param(
            path, id=path.name, marks=[pytest.mark.slow] if path.name in LONG else []
        )


@pytest.mark.parametrize("path", pages())
def test_the_blocks_run_and_keep_their_promise(path: Path) -> None:
    document = str(path.relative_to(ROOT))
    session = Session(Path.cwd(), {"__name__": "__main__"})
    for prepare in FOUND_THERE.get(document, []):
        prepare(session.folder)
    for block in blocks(path):
        printed = session.run(block)
        if check := the_promise(document, block):
            check(session, printed)


def test_every_promise_is_about_a_block() -> None:
    sources = {
        str(path.relative_to(ROOT)): [block.source for block in blocks(path)]
        for path in documents()
    }
    assert not [key for key in PROMISES if sum(key[1] in source for source in sources[key[0]]) != 1]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("```\nls\n```\n", r"no way to run a block in ''"),
        ("```sh\nls nothing\n```\n", r"exit code [1-9]"),
        ("```sh\nfalse | true\n```\n", r"exit code 1"),
        ("```console\n$ echo a\nb\n```\n", r"echo a prints something else"),
        ("```python\n1 + 1  # 3\n```\n", r"is 2"),
        ("```python\n[1, 2]  # [2, ...]\n```\n", r"is \[1, 2\]"),
        ("- ```sh\n  ls\n  ```\n", "does not close|indented"),
    ],
)
def test_what_does_not_hold_is_found(
    source: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docs_runner.ROOT", Path.cwd())
    page = Path("page.md").absolute()
    page.write_text("# Page\n\n" + source, "utf-8")
    with pytest.raises(AssertionError, match=message):
        for block in blocks(page):
            Session(Path.cwd(), {}).run(block)


# Promises
# ----------------------------------------------------------------------------------------------------------------


def texts(path: Path) -> list[str]:
    return [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]


def numbers_in(table: pa.Table) -> int:
    return int(pa.compute.sum(pa.compute.list_value_length(table["number_index"])).as_py())


@promise("README.md", 'numtok inspect "The mass is')
def _(session: Session, printed: str) -> None:
    """The runner compares what is printed."""


@promise("README.md", "numtok encode corpus/*.jsonl.zst")
def _(session: Session, printed: str) -> None:
    assert texts(session.folder / "back.jsonl") == texts(SAMPLE)
    assert {"number_scaled", "number_text"} <= set(
        pq.read_schema(session.folder / "corpus.parquet").names
    )
    with pa.memory_map(str(session.folder / "prices.arrow")) as file:
        table = pa.ipc.open_file(file).read_all()
    assert table["id"].to_pylist() == ["A7", "B2"]
    assert table["number_value"].to_pylist() == [
        [3.5, 1, 25],
        [-1200],
    ]  # the data grammar: no grouping
    assert {"number_scaled", "number_bits"} <= set(table.column_names)
    assert "-12.5e-3" in (session.folder / "page.html").read_text("utf-8")
    assert "183 numbers in 31 documents" in (session.folder / "report.html").read_text("utf-8")
    assert (
        257 < numtok.Tokenizer.from_pretrained(session.folder / "my-tokenizer").vocab_size <= 16_004
    )


@promise("README.md", "numtok.extract(")
def _(session: Session, printed: str) -> None:
    assert session.names["numbers"].format().to_pylist() == ["10", "1234.5"]
    assert session.names["batch"]["number_scaled"].to_pylist() == [[-1500]]
    assert len(session.names["batch"]["number_bits"][0].as_py()[0]) == 32
    assert session.names["tok"].decode_batch(session.names["batch"]).to_pylist() == [
        "The mass is -1.5e3 kg"
    ]
    numtok.Tokenizer.from_pretrained(session.folder / "folder")
    with pytest.raises(Exception, match="pip install numtok"):
        transformers.PreTrainedTokenizerFast.from_pretrained(session.folder / "folder")
    rows = [
        json.loads(line)
        for line in (session.folder / "prices.jsonl").read_text("utf-8").splitlines()
    ]
    assert rows == [{"text": "tea 3.50, cake 1,25", "id": "A7"}, {"text": "rent -1200", "id": "B2"}]


@promise("README.md", "from numtok.hf import NumberTokenizer")
def _(session: Session, printed: str) -> None:
    tokenizer = session.names["tokenizer"]
    ids = tokenizer(["It weighs -1.5e3 kg", "It weighs 11 kg"])["input_ids"]
    assert tokenizer.batch_decode(ids) == ["It weighs -1.5e3 kg", "It weighs 11 kg"]
    assert [len(tokenizer(text)["input_ids"]) for text in ("5", "11")] == [3, 4]


def check_blocks(session: Session, file: str, separators: int) -> None:
    """The data set that the page trains on holds every token and every number of the file."""
    table, blocks_ = pq.read_table(session.folder / file), list(session.names["data"])
    assert (
        sum(len(block["input_ids"]) for block in blocks_)
        == pa.compute.sum(pa.compute.list_value_length(table["input_ids"])).as_py() + separators
    )
    assert sum(len(block["number_value"]) for block in blocks_) == numbers_in(table)


@promise("README.md", "trainer = Trainer(")
def _(session: Session, printed: str) -> None:
    """The loss is finite and falls, and what the model writes behind the beginnings of its texts
    holds numbers.
    """
    names = session.names
    check_blocks(session, "corpus.parquet", separators=0)
    losses = [entry["loss"] for entry in names["trainer"].state.log_history if "loss" in entry]
    check_training(names["model"], losses)
    assert losses[-1] < losses[0] / 1.5
    written = names["generate"](
        names["model"], names["tokenizer"], [text[:30] for text in texts(SAMPLE)], max_new_tokens=20
    )
    assert len(numtok.extract(" ".join(written))) > 1


@promise("docs/corpora.md", "numtok decode data/")
def _(session: Session, printed: str) -> None:
    assert texts(session.folder / "back.jsonl") == texts(SAMPLE)
    assert len(list((session.folder / "data").glob("*.parquet"))) == 2


@promise("docs/corpora.md", 'tokenizer_of("data/")')
def _(session: Session, printed: str) -> None:
    whole = jobs.table(session.folder / "data")
    assert sum(len(block["input_ids"]) for block in session.names["data"]) == sum(
        map(len, whole["input_ids"].to_pylist())
    )
    assert session.names["tokenizer"].representations[0].scale != 1


@promise("docs/corpora.md", "duckdb.sql(")
def _(session: Session, printed: str) -> None:
    names, expected = session.names, jobs.table(session.folder / "data")["input_ids"].to_pylist()
    assert (
        names["rows"]["input_ids"][:]
        == names["table"]["input_ids"].to_pylist()
        == names["frame"]["input_ids"].to_list()
        == expected
    )
    assert names["found"] == [(len(expected),)]


@promise("docs/corpora.md", "--pack 256")
def _(session: Session, printed: str) -> None:
    rows = jobs.table(session.folder / "packed")
    assert (
        max(map(len, rows["input_ids"].to_pylist())) == 256
        and len(jobs.shards(session.folder / "packed")) == 2
    )


@promise("docs/corpora.md", "n_positions=256")
def _(session: Session, printed: str) -> None:
    losses = [
        entry["loss"] for entry in session.names["trainer"].state.log_history if "loss" in entry
    ]
    assert math.isfinite(sum(losses)) and losses[-1] < 0.9 * losses[0]


@promise("docs/corpora.md", "all done: says so at once")
def _(session: Session, printed: str) -> None:
    assert re.search(r"shards +2 +2 were done before", printed), printed


@promise("docs/corpora.md", "numtok status parts/")
def _(session: Session, printed: str) -> None:
    assert "done      2 of 2 shards" in printed and "finished" in printed


@promise("docs/corpora.md", "numtok finish shares/")
def _(session: Session, printed: str) -> None:
    assert len(jobs.table(session.folder / "shares")) == len(texts(SAMPLE))
    assert jobs.shards(session.folder / "shares") == jobs.shards(session.folder / "parts")


@promise("docs/corpora.md", "memory://bucket/data/")
def _(session: Session, printed: str) -> None:
    assert (
        texts(session.folder / "from-store.jsonl") == texts(SAMPLE)
        and session.names["summary"].shards_done == 2
    )


@promise("docs/corpora.md", "cat > job.toml")
def _(session: Session, printed: str) -> None:
    assert jobs.shards(session.folder / "again") == jobs.shards(session.folder / "from-file")
    data, again = jobs.table(session.folder / "data"), jobs.table(session.folder / "from-file")
    assert data.replace_schema_metadata(None).equals(again.replace_schema_metadata(None))


@promise("docs/corpora.md", "data/__numtok/plan.json ")
def _(session: Session, printed: str) -> None:
    """What the page lists is there, and nothing else."""
    listed = {line.split()[0].rstrip("/") for line in printed.splitlines()}
    found = {str(path.relative_to(session.folder)) for path in (session.folder / "data").rglob("*")}
    assert {
        path
        for path in found
        if not path.endswith(("lock", "__numtok")) and "tokenizer/" not in path
    } == listed


@promise("docs/huggingface.md", "# was: AutoTokenizer.from_pretrained(...)")
def _(session: Session, printed: str) -> None:
    tokenizer = session.names["tokenizer"]
    assert isinstance(tokenizer, transformers.PreTrainedTokenizerFast)
    assert tokenizer.decode(tokenizer("It weighs -1.5e3 kg").input_ids) == "It weighs -1.5e3 kg"
    plain = transformers.AutoTokenizer.from_pretrained("EleutherAI/pythia-70m")
    assert tokenizer("no number here").input_ids == plain("no number here").input_ids


@promise("docs/huggingface.md", "number_value=batch")
def _(session: Session, printed: str) -> None:
    batch = session.names["batch"]
    assert batch["number_value"].dtype == torch.float64
    assert batch["number_value"].shape == batch["number_scaled"].shape == batch["input_ids"].shape


@promise("docs/huggingface.md", "stream.step(digits")
def _(session: Session, printed: str) -> None:
    assert "".join(session.names["pieces"]) == "It weighs -1.5e3 kg"
    assert " -1.5e3" in session.names["pieces"]


@promise("docs/huggingface.md", "tokenizer.encode_arrow")
def _(session: Session, printed: str) -> None:
    dataset, tokenizer = session.names["dataset"], session.names["tokenizer"]
    lists = dataset.map(lambda rows: tokenizer(rows["text"]), batched=True)
    arrow = dataset.with_format("arrow").map(
        tokenizer.encode_arrow, batched=True, remove_columns=["text"]
    )
    assert len(dataset) == 31 and dataset[0]["text"] == texts(SAMPLE)[0]
    assert arrow.with_format(None)["input_ids"][:] == lists["input_ids"][:]


@promise("docs/packing.md", "--layout token")
def _(session: Session, printed: str) -> None:
    table = pq.read_table(session.folder / "tokens.parquet")
    assert table.column_names == ["input_ids", "number_mask", "number_value", "number_scaled"]
    lengths = [pa.compute.list_value_length(column).to_pylist() for column in table.columns]
    assert all(own == lengths[0] for own in lengths)


@promise("docs/packing.md", "--pack 128")
def _(session: Session, printed: str) -> None:
    rows = pq.read_table(session.folder / "packed.parquet")["input_ids"].to_pylist()
    assert [len(row) for row in rows[:-1]] == [128] * (len(rows) - 1) and len(rows) > 5
    assert texts(session.folder / "back.jsonl") == texts(SAMPLE)


@promise("docs/packing.md", "LlamaForCausalLM(LlamaConfig")
def _(session: Session, printed: str) -> None:
    losses = [
        entry["loss"] for entry in session.names["trainer"].state.log_history if "loss" in entry
    ]
    assert math.isfinite(sum(losses)) and losses[-1] < 0.9 * losses[0]
    assert session.names["data"][0]["position_ids"].tolist().count(0) > 1


@promise("docs/packing.md", 'load_dataset("parquet"')
def _(session: Session, printed: str) -> None:
    batch, data = session.names["batch"], session.names["data"]
    assert batch["position_ids"].tolist() == [data[row]["position_ids"].tolist() for row in (0, 1)]


@promise("docs/packing.md", "--to megatron twins/sample")
def _(session: Session, printed: str) -> None:
    streams = ["", "_number_mask", "_number_scaled", "_number_value"]
    names = {f"sample{stream}.{suffix}" for stream in streams for suffix in ("bin", "idx")} | {
        "sample.json"
    }
    assert {path.name for path in (session.folder / "twins").iterdir()} == names


@promise("docs/packing.md", "class Twins(Dataset)")
def _(session: Session, printed: str) -> None:
    from numtok_torch import NumberCollator, NumberDataset

    data, twins = NumberDataset(session.folder / "sample.parquet"), session.names["twins"]
    assert len(twins) == len(data)
    collate = NumberCollator(pad_token_id=0, objective=None)
    batch, stored = collate(list(twins)), collate(list(data))
    for name, values in stored.items():  # but for the end token, which stands behind each document
        ended = (
            stored["attention_mask"].bool() if name == "number_mask" or values.dim() == 2 else ...
        )
        assert torch.equal(batch[name][:, :-1][ended], values[ended]), name
    assert (batch["input_ids"] != 0).sum() == (stored["input_ids"] != 0).sum()


@promise("docs/stats.md", "numtok stats sample.jsonl --html")
def _(session: Session, printed: str) -> None:
    assert "183 numbers in 31 documents" in (session.folder / "report.html").read_text("utf-8")
    data = json.loads((session.folder / "report.json").read_text("utf-8"))
    assert "--numbers fone:16,16" in printed and {"xval", "fone:16,16"} <= {
        loss["name"] for loss in data["representations"]
    }
    encoded = printed[printed.rindex("sample.parquet\n  documents") :]
    assert (
        "fone:4,2" in encoded and "p1000" not in encoded and "Encoded files do not tell" in encoded
    )


@promise("docs/stats.md", "numtok.Statistics.of_batch(")
def _(session: Session, printed: str) -> None:
    report = session.names["report"]
    assert report.statistics == session.names["two"] + session.names["one"]
    assert report.xval.clip == 5 and report.xval.scale > 0


@promise("docs/training.md", "numtok encode sample.jsonl -o sample.parquet")
def _(session: Session, printed: str) -> None:
    table = pq.read_table(session.folder / "sample.parquet")
    assert len(table) == 31 and {"number_scaled", "number_bits"} <= set(table.column_names)
    assert table["number_bits"].type.value_type == pa.uint32()


@promise("docs/training.md", 'print(generate(model, tokenizer, ["The tower is"]')
def _(session: Session, printed: str) -> None:
    check_blocks(session, "sample.parquet", separators=31)
    assert (session.folder / "model" / "model.safetensors").is_file()
    losses = [
        entry["loss"] for entry in session.names["trainer"].state.log_history if "loss" in entry
    ]
    check_training(session.names["model"], losses)
    assert losses[-1] < losses[0] / 1.5
    assert numtok.extract(printed.splitlines()[-1])


@promise("docs/training.md", "TextStreamer(tokenizer)")
def _(session: Session, printed: str) -> None:
    assert numtok.extract(printed)


def check_training(model: torch.nn.Module, losses: list[float]) -> None:
    """Losses are finite, and so is all that was learnt."""
    assert losses and all(math.isfinite(loss) for loss in losses)
    wrong = [
        name for name, parameter in model.named_parameters() if not torch.isfinite(parameter).all()
    ]
    assert not wrong


@promise("docs/training.md", "compute_metrics=number_metrics")
def _(session: Session, printed: str) -> None:
    found = session.names["trainer"].evaluate()
    assert found["eval_numbers"] > 100 and found["eval_log_error"] == pytest.approx(
        float(printed.splitlines()[-1])
    )


@promise("docs/training.md", "from peft import")
def _(session: Session, printed: str) -> None:
    """Both folders hold what they should."""
    from numtok_torch import NumberModel

    adapted, merged = (
        NumberModel.from_pretrained(session.folder / name) for name in ("model", "merged")
    )
    assert [name for name, _ in adapted.named_parameters() if "lora_" in name]
    assert not [
        name for name, _ in merged.named_parameters() if "lora_" in name or "token_adapter" in name
    ]


@promise("docs/training.md", "Seq2SeqNumberCollator.from_schema")
def _(session: Session, printed: str) -> None:
    """Training moved the loss, which is finite, and a number was written in the words of the
    targets.
    """
    from numtok_torch import NumberModel

    names = session.names
    pairs = list(zip(names["sources"], names["targets"], strict=True))
    batch = names["collator"](pairs)
    fresh = NumberModel(
        type(names["backbone"])(names["backbone"].config),
        names["model"].embedding,
        names["model"].head,
    )
    with torch.no_grad():
        before, after = (float(one.eval()(**batch).loss) for one in (fresh, names["model"]))
    assert math.isfinite(after) and after < before - 1
    assert re.search(r"\['.*is \d+.*'\]", printed), printed


@promise("docs/training.md", "class WithValues(Trainer):")
def _(session: Session, printed: str) -> None:
    """The loss fell and all parts of it are finite; what stands in front of the colon has no part
    in two of them.
    """
    names = session.names
    losses = [entry["loss"] for entry in names["trainer"].state.log_history if "loss" in entry]
    check_training(names["model"], losses)
    assert losses[-1] < losses[0] / 2
    batch = names["collator"]([names["data"][0]])
    before = int((batch["labels"][0] == names["colon"]).nonzero()[0])
    with torch.no_grad():
        logits = names["model"](**batch).logits
    for loss in (names["digits"], names["values"]):
        amounts = (batch["labels"] == names["colon"]).cumsum(1) > 0
        found = loss(logits, batch["labels"], causal=True, weights=amounts)
        behind = loss(logits[:, before:], batch["labels"][:, before:], causal=True)
        assert float(found) == pytest.approx(float(behind)) and 0 < found < 9


@promise("docs/training.md", "NumberLogitsProcessor(tokenizer, longest=8")
def _(session: Session, printed: str) -> None:
    """The number that the prompt began was written to its end, and so were all others."""
    tokenizer, written = session.names["tokenizer"], session.names["written"][0].numpy()
    numbers = tokenizer.numbers_in(written.astype("int32"))
    assert numbers[0][0] == session.names["ids"].shape[1] - 1
    assert all(
        written[stop - 1] == tokenizer.tokens["[/NUM]"] and len(numtok.Numbers.parse([text]))
        for _, stop, text in numbers
    )
    assert numtok.extract(printed)


@promise("docs/representations.md", "class Root(SingleToken)")
def _(session: Session, printed: str) -> None:
    """It is one like ours; other pages are about ours alone."""
    assert numtok.representations.parse("root") == (session.names["Root"](),)
    del numtok.representations.REPRESENTATIONS["root"]


@promise("docs/files.md", "compact.parquet")
def _(session: Session, printed: str) -> None:
    expanded = numtok.expand(session.names["table"])
    assert session.names["table"].schema.field("number_bits").type == pa.list_(pa.uint32())
    assert expanded.schema.field("number_bits").type.value_type.shape == [32]


@promise("docs/files.md", "numtok encode prices.csv")
def _(session: Session, printed: str) -> None:
    values = pq.read_table(session.folder / "prices.parquet")["number_value"].to_pylist()
    assert values == [[2.5], [1234.0]]
    rows = pq.read_table(session.folder / "rows.parquet")["number_value"].to_pylist()
    assert rows[0] == [1.0, 2.5, 2020.0, 1.0, 2.0]


@promise("docs/files.md", "answers.jsonl")
def _(session: Session, printed: str) -> None:
    values = pq.read_table(session.folder / "answers.parquet")["number_value"].to_pylist()
    assert values == [[7.0, 8.0, 56.0]]


@promise("numtok/FORMAT.md", "It     is   [NUM]")
def _(session: Session, printed: str) -> None:
    encoded = numtok.Tokenizer.from_pretrained(
        numbers=numtok.representations.parse("xval,bits", compact=True)
    )
    check_worked("It is -28.5 or 10,000", encoded.encode_batch(["It is -28.5 or 10,000"]), printed)


@promise("numtok/FORMAT.md", "place_value    [0,")
def _(session: Session, printed: str) -> None:
    check_worked(
        "It is 123.45",
        numtok.Tokenizer.from_pretrained(numbers=[numtok.PlaceValue()]).encode_batch(
            ["It is 123.45"]
        ),
        printed,
    )


def check_worked(text: str, batch: pa.RecordBatch, block: str) -> None:
    """Lines ``column [values] hex hex ...``, the hex words being the values as they lie in memory,
    little-endian.
    """
    lines = [
        found
        for line in block.splitlines()
        if (found := re.match(r"(\w+) +(\[.*?\]) *((?:[0-9a-f]{8,} ?)*)$", line))
    ]
    assert len(lines) >= 3
    for line in lines:
        (values,) = batch[line[1]]
        assert json.loads(line[2]) == values.as_py(), f"{text}: {line[1]} is {values}"
        assert not line[3] or bytes.fromhex(line[3]) == values.values.to_numpy().tobytes(), (
            f"{text}: bytes of {line[1]}"
        )


@promise("numtok/FORMAT.md", 'pq.read_table("out.parquet")')
def _(session: Session, printed: str) -> None:
    table = session.names["table"]
    expected = [
        list(
            zip(
                [row["input_ids"][i] for i in row["number_index"]], row["number_value"], strict=True
            )
        )
        for row in table.to_pylist()
    ]
    assert [eval(line) for line in printed.splitlines()] == expected and len(expected) == 31
    assert session.names["metadata"]["format"] == 2
    words = [int("".join(map(str, bits)), 2) for bits in session.names["matrix"].tolist()]
    floats = torch.tensor(words).to(torch.uint32).view(torch.float32).tolist()
    values = [value for row in table["number_value"].to_pylist() for value in row]
    assert len(floats) == numbers_in(table) and all(
        math.isclose(a, b, rel_tol=1e-7) for a, b in zip(floats, values, strict=True)
    )
