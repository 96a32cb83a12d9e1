"""A real pretrained model, SmolLM2, with numbers around it: what docs/pretrained.md says of one."""

import json

import pretrained
import pytest
import torch
import torch_models as tiny
import transformers
from places import SAMPLE

import numtok
from numtok import Tokenizer
from numtok.representations import XVal
from numtok_torch import NumberDataset, NumberModel, add_number_rows, generate
from numtok_torch.trainer import NumberTrainer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:using the slower engine"),
    pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning"),
]
TEXTS = [json.loads(line)["text"] for line in SAMPLE.read_text("utf-8").splitlines()]


def encoded(numbers):
    """The tokenizer, with the scale of the texts, and a few rows of them."""
    tokenizer = Tokenizer.from_pretrained(str(pretrained.smollm2()), numbers=numbers)
    if numbers == "xval":
        tokenizer = tokenizer.with_options([XVal.fit(numtok.scan(TEXTS))])
    return tokenizer, NumberDataset(tokenizer.encode_batch(TEXTS), block_size=48)


def losses(model, data, folder, head_learning_rate=None, **options):
    """Of each step on the same four rows."""
    trainer = NumberTrainer(
        model,
        tiny.arguments(folder, max_steps=6, per_device_train_batch_size=4, **options),
        train_dataset=torch.utils.data.Subset(data, range(4)),
        head_learning_rate=head_learning_rate,
    )
    trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def backbone():
    folder = pretrained.smollm2()
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


@pytest.mark.parametrize("numbers", ["fone:6,4", "bits"])
def test_the_loss_never_rises_far_above_its_start(numbers, tmp_path):
    tokenizer, data = encoded(numbers)
    model = NumberModel.build(backbone(), data, tokenizer)
    found = losses(model, data, tmp_path, learning_rate=5e-5, head_learning_rate=1e-3)
    assert max(found) <= 1.15 * found[0] and found[-1] < 0.8 * found[0], found


def test_lora_learns_numbers_and_is_small_on_disk(tmp_path):
    """With a layer that starts from zeros, at a rate of 1e-3; the text it then writes has numbers."""
    peft = pytest.importorskip("peft")
    tokenizer, data = encoded("xval")
    inner = backbone()
    rows = add_number_rows(inner, tokenizer)
    lora = peft.LoraConfig(target_modules=["q_proj", "v_proj"], trainable_token_indices=rows)
    model = NumberModel.build(
        peft.get_peft_model(inner, lora), data, tokenizer, embedding={"zero_init": True}
    )
    found = losses(model, data, tmp_path, learning_rate=1e-3, save_steps=6)
    assert max(found) <= 1.15 * found[0] and found[-1] < 0.8 * found[0], found
    checkpoint = tmp_path / "checkpoint-6"
    assert (checkpoint / "model.safetensors").stat().st_size < 10e6
    loaded = NumberModel.from_pretrained(checkpoint)
    written = generate(loaded, tokenizer, ["The mass is"], max_new_tokens=12, details=True)
    assert sum(map(len, written.values)) >= 1
