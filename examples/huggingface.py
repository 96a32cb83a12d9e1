"""Train a model on numbers with the Hugging Face stack, and generate text: ``python
examples/huggingface.py`` (a minute on a CPU).

datasets -> map -> collator -> Trainer -> generate. The model is a tiny GPT-2 with random weights
that learns ``12 + 30 = 42``; put your own model and dataset in its place. Needs ``pip install
'.[hf,torch]'``.
"""

from __future__ import annotations

import argparse
import random
import tempfile

import torch
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

from numtok import XVal, extract
from numtok.hf import NumberTokenizer
from numtok_torch import (
    NumberCollator,
    NumberModel,
    embedding_from_schema,
    generate,
    head_from_schema,
)


def pairs_of_numbers() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return half of all pairs of numbers up to 99, for training, and 200 of the other half, which
    are held out.
    """
    pairs = [(a, b) for a in range(100) for b in range(100)]
    random.Random(0).shuffle(pairs)
    return pairs[:5000], pairs[-200:]


def error(model: NumberModel, tokenizer: NumberTokenizer, pairs: list[tuple[int, int]]) -> float:
    """Return the mean error of generated sums; an answer that is no number counts as 0."""
    written = generate(
        model.eval(), tokenizer, [f"{a} + {b} =" for a, b in pairs], max_new_tokens=1
    )
    numbers = [extract(text) for text in written]
    return sum(
        abs(float(one[0].value if one else 0) - a - b)
        for one, (a, b) in zip(numbers, pairs, strict=True)
    ) / len(pairs)


def main() -> None:
    """Train a model, generate sums, save and load it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=600, help="optimizer steps [600]")
    parser.add_argument("--batch-size", type=int, default=64, help="texts per step [64]")
    options = parser.parse_args()
    set_seed(0)

    # 1. A tokenizer with numbers: from any fast tokenizer, here numtok's own small one.
    # return_numbers puts the number streams into every call.
    numbers = [XVal(scale=0.02)]  # xVal wants values within about -5 to 5
    tokenizer = NumberTokenizer.from_pretrained(
        None, numbers=numbers, return_numbers=True, eos_token="<|endoftext|>"
    )
    tokenizer.pad_token = tokenizer.eos_token

    # 2. Encode.
    seen, unseen = pairs_of_numbers()
    dataset = Dataset.from_dict({"text": [f"{a} + {b} = {a + b}" for a, b in seen]})
    dataset = dataset.map(
        lambda rows: tokenizer(rows["text"]), batched=True, remove_columns=["text"]
    ).with_format("numpy", dtype=None)

    # 3. A model with numbers: an embedding that reads them, any causal model, a head that predicts
    # them. Both follow from the tokenizer.
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=32,
        n_embd=64,
        n_layer=2,
        n_head=4,
        bos_token_id=None,
        eos_token_id=None,
    )
    schema = tokenizer.numtok.batch_schema()
    embedding, head = (
        embedding_from_schema(schema, config.n_embd),
        head_from_schema(schema, config.n_embd),
    )
    model = NumberModel(GPT2LMHeadModel(config), embedding, head)

    # 4. Train.
    before = error(model, tokenizer, unseen)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=options.steps,
            per_device_train_batch_size=options.batch_size,
            learning_rate=3e-3,
            lr_scheduler_type="cosine",
            logging_steps=max(1, options.steps // 6),
            save_strategy="no",
            report_to=[],
            use_cpu=not torch.cuda.is_available(),
        )
        collator = NumberCollator.from_tokenizer(tokenizer, objective="causal")
        Trainer(model=model, args=arguments, train_dataset=dataset, data_collator=collator).train()

    # 5. Write. The head reads a value wherever the model writes [NUM]: a real number, which is near
    # the sum and seldom the sum itself.
    prompts = [f"{a} + {b} =" for a, b in unseen[:5]]
    for (a, b), prompt, text in zip(
        unseen[:5],
        prompts,
        generate(model.eval(), tokenizer, prompts, max_new_tokens=1),
        strict=True,
    ):
        print(f"{prompt}{text}    (right: {a + b})")
    print(
        f"{len(unseen)} sums that it never saw: off by {error(model, tokenizer, unseen):.2f} on"
        f" average, before training by {before:.2f}"
    )

    # 6. Save and load: the folder also opens with AutoTokenizer once numtok.hf is imported.
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        model.save_pretrained(folder)
        again = NumberModel.from_pretrained(folder)
        assert generate(
            again.eval(), NumberTokenizer.from_pretrained(folder), prompts, max_new_tokens=1
        ) == generate(model, tokenizer, prompts, max_new_tokens=1)


if __name__ == "__main__":
    main()
