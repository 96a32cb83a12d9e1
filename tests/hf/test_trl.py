"""The drop-in in trl's trainers, for real, and what is said when a stock model would never see the
values.
"""

import logging
import pickle

import numpy as np
import pyarrow as pa
import pytest

import numtok
from numtok.representations import P10, ExponentBins, PlaceValue, Subword, XVal

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
datasets = pytest.importorskip("datasets")

from numtok.hf import NumberTokenizer
from numtok.hf import batch as quick_way

TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}{% if"
    " add_generation_prompt %}assistant: {% endif %}"
)
SUMS = [(n, n + 3.5) for n in range(12)]


def made(*numbers, **options):
    tokenizer = NumberTokenizer.from_pretrained(
        None, numbers=list(numbers) or None, eos_token="<|endoftext|>", **options
    )
    tokenizer.pad_token = tokenizer.eos_token
    tokenizer.chat_template = TEMPLATE
    return tokenizer


@pytest.fixture
def said():
    """What is logged, whatever the verbosity of the tests."""
    records = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("transformers.numtok")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(level)


# What is said


def test_bare_numbers_are_told_once_with_the_way_out(said):
    tokenizer = made()
    tokenizer("no number"), tokenizer(["none", "at all"])
    assert not said
    before = datasets.fingerprint.Hasher.hash(tokenizer)
    assert tokenizer("5")["input_ids"] == tokenizer("11")["input_ids"]
    tokenizer(["7", "8"]), tokenizer.encode("9"), tokenizer.encode_arrow(pa.array(["5"]))
    assert len(said) == 1
    for words in (
        "5 and 11 get the same ids",
        "return_numbers=True",
        "NumberModel",
        "numbers=[numtok.PlaceValue()]",
    ):
        assert words in said[0]
    assert datasets.fingerprint.Hasher.hash(tokenizer) == before
    pickle.loads(pickle.dumps(tokenizer))("6")
    assert len(said) == 1


@pytest.mark.parametrize("call", ["one", "many", "arrow", "chat"])
def test_every_way_to_encode_says_it(call, said, monkeypatch):
    monkeypatch.setattr(quick_way, "SMALL", 0)  # the size from which the fast engine is used
    tokenizer = made(ExponentBins())
    many = ["a number 5"] * 6
    calls = {
        "one": lambda: tokenizer("5"),
        "many": lambda: tokenizer(many),
        "arrow": lambda: tokenizer.encode_arrow(pa.array(["5"])),
        "chat": lambda: tokenizer.apply_chat_template([{"role": "user", "content": "5"}]),
    }
    calls[call]()
    assert len(said) == 1


def test_nothing_is_said_where_values_are_seen(said, monkeypatch):
    for numbers in (PlaceValue(), P10(), Subword()):
        tokenizer = made(numbers)
        tokenizer("5 and 11"), tokenizer.encode_arrow(pa.array(["5"]))
    made(XVal(), return_numbers=True)("5")
    tokenizer = made(XVal())
    (
        tokenizer(["5"] * 3, return_numbers=True),
        tokenizer.encode_arrow(pa.array(["5"]), return_numbers=True),
    )
    monkeypatch.setenv("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    tokenizer("5")
    assert not said


# trl's trainers


def model(tokenizer):
    torch.manual_seed(0)
    ends = {
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=len(tokenizer), n_positions=128, n_embd=8, n_layer=1, n_head=1, **ends
        )
    )


def conversation(user, assistant):
    return [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]


def settings(folder, **more):
    quiet = {
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": True,
        "bf16": False,
        "logging_steps": 1,
    }
    return {
        "output_dir": str(folder),
        "max_steps": 2,
        "per_device_train_batch_size": 4,
        "max_length": 64,
        **quiet,
        **more,
    }


def seen_by(kind, monkeypatch):
    """The batches that reach the loss of a trainer."""
    batches = []
    original = kind.compute_loss

    def compute_loss(self, model, inputs, *rest, **more):
        batches.append(
            {
                name: value.clone()
                for name, value in inputs.items()
                if isinstance(value, torch.Tensor)
            }
        )
        return original(self, model, inputs, *rest, **more)

    monkeypatch.setattr(kind, "compute_loss", compute_loss)
    return batches


def check_training(trainer):
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 2 and np.isfinite(losses).all()


@pytest.mark.parametrize(
    ("numbers", "way"),
    [
        (PlaceValue(), "packed"),
        pytest.param(P10(), "chat", marks=pytest.mark.slow),
        (XVal(), "packed"),
    ],
    ids=["place", "p10", "xval"],
)
def test_sft(numbers, way, said, tmp_path, monkeypatch):
    trl = pytest.importorskip("trl")
    tokenizer, batches = made(numbers), seen_by(trl.SFTTrainer, monkeypatch)
    rows = {"text": [f"{n} plus 3.5 is {total}" for n, total in SUMS]}
    if way == "chat":
        rows = {
            "messages": [conversation(f"what is {n} plus 3.5", f"{total}") for n, total in SUMS]
        }
    arguments = trl.SFTConfig(**settings(tmp_path, packing=way == "packed", packing_strategy="bfd"))
    if way == "packed":
        monkeypatch.setattr(logging.getLogger("trl"), "disabled", True)  # its advice on attention
    check_training(
        trl.SFTTrainer(
            model(tokenizer),
            arguments,
            train_dataset=datasets.Dataset.from_dict(rows),
            processing_class=tokenizer,
        )
    )
    texts = " ".join(
        tokenizer.decode(line)
        for batch in batches
        for line in batch["input_ids"].reshape(len(batch["input_ids"]), -1)
    )
    if isinstance(numbers, XVal):
        assert len(said) >= 1 and "[NUM]" in texts and "3.5" not in texts
        return
    assert not said
    found = {number.value for number in numtok.extract(texts.replace("<|endoftext|>", " "))}
    assert {value for value in found if value != int(value)} <= {total for _, total in SUMS} | {3.5}
    assert 3.5 in found and len(found & {total for _, total in SUMS}) >= 4


@pytest.mark.parametrize(
    ("numbers", "way"), [(PlaceValue(), "chat"), (XVal(), "plain")], ids=["place", "xval"]
)
def test_dpo(numbers, way, said, tmp_path, monkeypatch):
    trl = pytest.importorskip("trl")
    tokenizer, batches = made(numbers), seen_by(trl.DPOTrainer, monkeypatch)
    asked, right, wrong = (
        [f"what is {n} plus 3.5? " for n, _ in SUMS],
        [f"{total}" for _, total in SUMS],
        [f"{n}.25" for n, _ in SUMS],
    )
    rows = {"prompt": asked, "chosen": right, "rejected": wrong}
    if way == "chat":
        pairs = {"chosen": right, "rejected": wrong}
        rows = {"prompt": [conversation(text, "")[:1] for text in asked]}
        rows |= {
            name: [conversation("", text)[1:] for text in answers]
            for name, answers in pairs.items()
        }
    arguments = trl.DPOConfig(**settings(tmp_path))
    check_training(
        trl.DPOTrainer(
            model(tokenizer),
            model(tokenizer),
            args=arguments,
            train_dataset=datasets.Dataset.from_dict(rows),
            processing_class=tokenizer,
        )
    )
    texts = [tokenizer.decode(line) for batch in batches for line in batch["input_ids"]]
    assert texts
    if isinstance(numbers, XVal):
        assert len(said) >= 1 and not any("3.5" in text for text in texts)
        return
    assert not said
    for text in texts:
        number, added, answer = [
            found.value for found in numtok.extract(text.split("<|endoftext|>")[0])
        ]
        assert float(added) == 3.5 and float(answer) in (float(number) + 3.5, float(number) + 0.25)
