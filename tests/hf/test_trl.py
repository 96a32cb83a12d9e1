"""The drop-in in trl's trainers, for real, and what is said when a stock model would never see the
values.
"""

import logging
import pickle

import numpy as np
import pytest

import numtok
from numtok.representations import P10, ExponentBins, PlaceValue, Subword, XVal

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
datasets = pytest.importorskip("datasets")

from numtok.hf import NumberTokenizer

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
def said(caplog, monkeypatch):
    """What is logged, whatever the verbosity of the tests."""
    records, handler = [], logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    monkeypatch.setattr(logging.getLogger("transformers.numtok"), "handlers", [handler])
    caplog.set_level(logging.WARNING, "transformers.numtok")
    return records


# What is said


def test_bare_numbers_are_told_once_with_the_way_out(said):
    tokenizer = made()
    tokenizer("no number"), tokenizer(["none", "at all"])
    assert not said
    before = datasets.fingerprint.Hasher.hash(tokenizer)
    assert tokenizer("5")["input_ids"] == tokenizer("11")["input_ids"]
    tokenizer(["7", "8"]), tokenizer.encode("9")
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


CALLS = {
    "one": lambda tokenizer: tokenizer("5"),
    "many": lambda tokenizer: tokenizer(["a number 5"] * 6),
    "so many that another engine has them": lambda tokenizer: tokenizer(["a number 5"] * 60_000),
    "chat": lambda tokenizer: tokenizer.apply_chat_template([{"role": "user", "content": "5"}]),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_way_to_encode_says_it(call, said):
    CALLS[call](made(ExponentBins()))
    assert len(said) == 1


def test_nothing_is_said_where_values_are_seen(said, monkeypatch):
    for numbers in (PlaceValue(), P10(), Subword()):
        tokenizer = made(numbers)
        tokenizer("5 and 11")
    made(XVal(), return_numbers=True)("5")
    tokenizer = made(XVal())
    tokenizer(["5"] * 3, return_numbers=True)
    monkeypatch.setenv("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    tokenizer("5")
    assert not said


# trl's trainers

ROWS = {"text": [f"what is {n} plus 3.5? {total}" for n, total in SUMS]}
BRIEFLY = {"report_to": [], "save_strategy": "no", "max_steps": 2, "logging_steps": 1}
BRIEFLY |= {"disable_tqdm": True, "use_cpu": True, "bf16": False}


def model(tokenizer):
    torch.manual_seed(0)
    ends = {f"{name}_token_id": tokenizer.eos_token_id for name in ("eos", "pad")}
    sizes = {"n_positions": 128, "n_embd": 8, "n_layer": 1, "n_head": 1, "bos_token_id": None}
    config = transformers.GPT2Config(vocab_size=len(tokenizer), **sizes, **ends)
    return transformers.GPT2LMHeadModel(config)


@pytest.mark.parametrize("numbers", [PlaceValue(), XVal()], ids=str)
def test_trainers(numbers, said, tmp_path, monkeypatch):
    """What reaches the loss holds the numbers of the rows, or it is said that it does not."""
    trl = pytest.importorskip("trl")
    tokenizer, batches = made(numbers), []
    compute_loss = trl.SFTTrainer.compute_loss

    def noted(self, model, inputs, *rest, **more):
        batches.append(inputs["input_ids"].clone())
        return compute_loss(self, model, inputs, *rest, **more)

    monkeypatch.setattr(trl.SFTTrainer, "compute_loss", noted)
    monkeypatch.setattr(logging.getLogger("trl"), "disabled", True)  # its advice on attention
    packed = {"packing": True, "packing_strategy": "bfd", "max_length": 64}
    trainer = trl.SFTTrainer(
        model(tokenizer),
        args=trl.SFTConfig(tmp_path, **BRIEFLY, **packed, per_device_train_batch_size=4),
        train_dataset=datasets.Dataset.from_dict(ROWS),
        processing_class=tokenizer,
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert len(losses) == 2 and np.isfinite(losses).all()
    lines = [line for batch in batches for line in batch.reshape(len(batch), -1)]
    texts = " ".join(map(tokenizer.decode, lines)).replace("<|endoftext|>", " ")
    if isinstance(numbers, XVal):
        assert len(said) >= 1 and "[NUM]" in texts and "3.5" not in texts
        return
    assert not said
    found = {float(number.value) for number in numtok.extract(texts)}
    right = {total for _, total in SUMS}
    assert {value for value in found if value != int(value)} <= right | {3.5}
    assert 3.5 in found and len(found & right) >= 4


@pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
@pytest.mark.filterwarnings("ignore:Could not find a config file:UserWarning")
def test_lora_with_single_rows_of_a_tied_model(tmp_path):
    """As docs/training.md has it: the rows of the number tokens are learnt."""
    trl, peft = pytest.importorskip("trl"), pytest.importorskip("peft")
    tokenizer = made(PlaceValue())
    rows = sorted(tokenizer.numtok.own_tokens.values())
    lora = peft.LoraConfig(
        target_modules=["c_attn"], trainable_token_indices=rows, fan_in_fan_out=True
    )
    adapted = peft.get_peft_model(model(tokenizer), lora)
    adapted.get_output_embeddings().bias = None
    words = adapted.get_input_embeddings()
    before = words.weight[rows].detach().clone()
    trainer = trl.SFTTrainer(
        adapted,
        args=trl.SFTConfig(tmp_path, **BRIEFLY, learning_rate=1e-2),
        train_dataset=datasets.Dataset.from_dict(ROWS),
        processing_class=tokenizer,
    )
    trainer.train()
    assert all(np.isfinite(one["loss"]) for one in trainer.state.log_history if "loss" in one)
    moved = (words.weight[rows] != before).any(1)
    assert moved.sum() > 2
