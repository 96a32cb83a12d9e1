"""Training through the Trainers of transformers: steps of several batches, smoothed labels, metrics,
checkpoints, and what is refused before the first step.
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_models as tiny
import transformers
from torch_models import SparseRows, same

import numtok
from numtok.representations import XVal
from numtok_torch import (
    ModelError,
    NumberCollator,
    NumberDataset,
    NumberModel,
    generate,
    head_from_config,
)
from numtok_torch.metrics import number_metrics, numbers_only
from numtok_torch.trainer import PARTS, NumberTrainer

pytest.importorskip("accelerate")
SUPPORT = Path(tiny.__file__).parent
CAUSAL = NumberCollator(tiny.PAD, objective="causal")


class Uneven(SparseRows):
    """Rows of very different lengths, with as different counts of numbers."""

    def __init__(self):
        super().__init__(4)
        for stop, row in zip((8, 3, 5, 4), self.rows, strict=True):
            count = int((row["number_index"] < stop).sum())
            for name in row:
                row[name] = row[name][: stop if name == "input_ids" else count]


def made(kind="gpt2", head="scalar", **options):
    backbone = tiny.still(tiny.backbone(kind))
    numbers = (tiny.embedding("xval"), tiny.head(head)) if head else (None, None)
    return NumberModel(backbone, *numbers, **options)


GIVEN = ("compute_metrics", "preprocess_logits_for_metrics", "callbacks")
GIVEN += ("data_collator", "train_dataset")


def trainer(folder, model, kind=transformers.Trainer, **options):
    given = {name: options.pop(name) for name in GIVEN if name in options}
    still = {"max_grad_norm": 0.0, "learning_rate": 0.0, "max_steps": 1}
    arguments = tiny.arguments(folder, **{"per_device_eval_batch_size": 4} | still | options)
    data = {"train_dataset": Uneven(), "eval_dataset": Uneven(), "data_collator": CAUSAL}
    return kind(model, arguments, **data | given)


class Gradients(transformers.TrainerCallback):
    def on_pre_optimizer_step(self, *_, model, **__):
        self.found = {
            name.removeprefix("module.").removeprefix("backbone."): one.grad.clone()
            for name, one in model.named_parameters()
            if one.grad is not None
        }


def step(folder, model, kind, batches, share=1, **options):
    """The loss and the gradients of one step over the four rows, in so many batches; ``share``
    processes share them.
    """
    gradients = Gradients()
    options |= {"gradient_accumulation_steps": batches, "callbacks": [gradients]}
    made = trainer(
        folder, model, kind, per_device_train_batch_size=4 // batches // share, **options
    )
    made.train()
    log = made.state.log_history[0]
    if kind is NumberTrainer:
        assert log["loss"] == pytest.approx(sum(log.get(part, 0.0) for part in PARTS), rel=1e-4)
    return log["loss"], gradients.found


class Unknown(Uneven):
    """With values that are not known, and one beyond float64."""

    def __init__(self):
        super().__init__()
        for row, value in zip(self.rows, (np.nan, np.inf, np.nan), strict=False):
            row["number_value"] = row["number_value"].copy()
            row["number_value"][1:] = value


PER_TOKEN = {"number_loss_per": "token", "number_weight": 3.0}
NO_LABELS = NumberCollator(tiny.PAD, objective=None)


@pytest.mark.parametrize(
    ("kind", "head", "trained_by", "options", "rows", "collator"),
    [
        ("gpt2", "fone", NumberTrainer, {}, Uneven(), CAUSAL),
        ("bert", "fone", NumberTrainer, {}, Uneven(), CAUSAL),
        ("gpt2", "fone", transformers.Trainer, PER_TOKEN, Uneven(), CAUSAL),
        ("bert", "fone", transformers.Trainer, PER_TOKEN, Uneven(), CAUSAL),
        ("gpt2", "mixture", NumberTrainer, {}, Unknown(), CAUSAL),  # which have no loss
        ("gpt2", "mixture", NumberTrainer, {"number_loss_per": "token"}, Unknown(), CAUSAL),
        ("gpt2", "scalar", NumberTrainer, {}, Uneven(), NO_LABELS),
    ],
)
def test_a_step_of_four_batches_is_a_step_of_one(
    kind, head, trained_by, options, rows, collator, tmp_path
):
    def model():
        return made(kind, head, **options)

    data = {"train_dataset": rows, "data_collator": collator}
    one, ones = step(tmp_path, model(), trained_by, 1, **data)
    four, fours = step(tmp_path, model(), trained_by, 4, **data)
    same(four, one, rtol=1e-5)
    same(fours, ones, rtol=1e-5, atol=1e-6)
    same(one, model().train()(**collator(list(rows))).loss.item(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_a_loss_per_token_is_the_sum_over_numbers_divided_by_the_tokens(kind):
    batch, model = CAUSAL(list(Uneven())), made(kind, number_loss_per="token")
    numbers = made(kind)(**batch).number_loss * model.count_numbers(batch)
    tokens = (batch["labels"][:, kind == "gpt2" :] != -100).sum()
    same(model(**batch).number_loss, numbers / tokens, rtol=1e-6)


@pytest.mark.parametrize(("smoothing", "kind"), [(0.0, transformers.Trainer), (0.1, NumberTrainer)])
def test_tokens_are_trained_as_of_the_stock_model(kind, smoothing, tmp_path):
    options, model = {"label_smoothing_factor": smoothing}, made("llama", head=None)
    plain = made("llama", head=None).backbone
    ours = step(tmp_path, model, kind, 4, **options)
    stock = step(tmp_path, plain, transformers.Trainer, 4, **options)
    same(ours[0], stock[0], rtol=1e-6)
    same(ours[1], stock[1], rtol=1e-5, atol=1e-6)


def test_a_plain_trainer_says_that_numbers_are_not_counted(tmp_path):
    with pytest.warns(UserWarning, match=r"NumberTrainer"):
        four, _ = step(tmp_path, made(), transformers.Trainer, 4)
    one, _ = step(tmp_path, made(), transformers.Trainer, 1)
    assert four == pytest.approx(one, rel=0.2) and four != pytest.approx(one, rel=1e-6)


@pytest.mark.parametrize(("joined", "plain"), [(True, False), (False, True)])
def test_number_metrics(joined, plain, tmp_path):
    """In batches of different widths: what is padded is no number."""
    options = {"per_device_eval_batch_size": 1, "eval_do_concat_batches": joined}
    if plain:
        options |= {
            "compute_metrics": number_metrics,
            "preprocess_logits_for_metrics": numbers_only,
        }
    model, kind = made(), transformers.Trainer if plain else NumberTrainer
    found = trainer(tmp_path, model, kind, **options).evaluate()
    batch = CAUSAL(list(Uneven()))
    predicted = model.eval()(**batch).number_predictions
    there = ~predicted.isnan()
    assert found["eval_numbers"] == there.sum()
    difference = (predicted - batch["number_value"])[there].abs().mean().item()
    assert found["eval_mean_absolute_error"] == pytest.approx(difference, rel=1e-5)
    assert {"eval_median_log_error", "eval_r_squared", "eval_exact_match"} <= found.keys()


def test_numbers_beyond_float64_are_left_out_of_metrics(tmp_path):
    """LogFourier holds them."""
    tokenizer = numtok.Tokenizer.from_pretrained(numbers="logfourier")
    data = NumberDataset(tokenizer.encode_batch(["from 1e400 to 5, or 7"] * 2))
    backbone = tiny.backbone("gpt2", vocab_size=tokenizer.vocab_size)
    model = NumberModel.build(backbone, data, tokenizer)
    found = NumberTrainer(model, tiny.arguments(tmp_path), eval_dataset=data).evaluate()
    assert found["eval_numbers"] == 4
    assert np.isfinite([found["eval_loss"], found["eval_mean_absolute_error"]]).all()


@pytest.mark.parametrize("name", ["model", "model_init"])
def test_a_model_given_by_name_or_made_by_the_trainer(name, tmp_path):
    """Its collator and its layers are found, those of the model that is trained."""
    tokenizer = numtok.Tokenizer.from_pretrained(numbers=[XVal(0.1)])
    data = NumberDataset(tokenizer.encode_batch([f"{n} or {n / 8}" for n in range(16)]))

    def build():
        return NumberModel.build(tiny.backbone("gpt2"), data, tokenizer)

    options = {"max_steps": 2, "learning_rate": 0.0, "lr_scheduler_type": "constant"}
    arguments = tiny.arguments(tmp_path, **options)
    given = {name: build() if name == "model" else build, "args": arguments}
    found = NumberTrainer(**given, train_dataset=data, head_learning_rate=1e-2)
    found.train()
    rates = {
        id(one): group["lr"] for group in found.optimizer.param_groups for one in group["params"]
    }
    for layer, parameter in found.model.named_parameters():
        assert rates[id(parameter)] == (0.0 if layer.startswith("backbone.") else 1e-2)


def test_rows_that_another_process_widens_have_no_more_numbers():
    """transformers pads all outputs with -100 before it gathers them, also where numbers are -100."""
    model = made().eval()
    batch = CAUSAL(list(Uneven()))
    outputs = model(**batch)
    predicted = outputs.number_predictions.clone()
    predicted[~predicted.isnan()] = -100.0
    narrow = (outputs.logits, predicted, predicted)
    wide = tuple(
        torch.nn.functional.pad(one, (0,) * 2 * (one.ndim - 2) + (0, 7), value=-100)
        for one in narrow
    )
    count = int((~predicted.isnan()).sum())
    for given in (narrow, wide):
        found = numbers_only(given, None).numpy()
        measured = number_metrics(transformers.EvalPrediction(found, None))
        assert (measured["numbers"], measured["exact_match"]) == (count, 1.0)


@pytest.mark.parametrize("which", ["train_dataset", "eval_dataset", "data_collator"])
def test_data_of_another_tokenizer_are_refused(which, tmp_path):
    """A model that knows no tokenizer takes that of the data."""

    def given(scale):
        tokenizer = numtok.Tokenizer.from_pretrained(numbers=[XVal(scale)])
        data = NumberDataset(tokenizer.encode_batch(["and 5"] * 2))
        collator = NumberCollator.from_schema(data.schema, 0, objective="causal")
        sources = {"train_dataset": data, "eval_dataset": data, "data_collator": collator}
        return tokenizer, sources

    (near, ours), (far, other) = given(1.0), given(0.5)
    whole = tiny.backbone("gpt2", vocab_size=near.vocab_size)
    model = NumberModel(whole, tiny.embedding("xval"), None)
    NumberTrainer(model, tiny.arguments(tmp_path), **ours)
    with pytest.raises(ModelError, match="made for another tokenizer"):
        generate(model, far, ["5"])
    with pytest.raises(ModelError, match="made for another tokenizer"):
        NumberTrainer(model, tiny.arguments(tmp_path), **ours | {which: other[which]})


def new(kind):
    """A number model, or one with adapters of peft around it."""
    model = NumberModel(tiny.backbone("gpt2"), tiny.embedding("xval"), tiny.head("fone"))
    if kind == "plain":
        return model
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    layers = {"target_modules": ["c_attn"], "modules_to_save": ["embedding", "head"]}
    return peft.get_peft_model(model, peft.LoraConfig(fan_in_fan_out=True, **layers))


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")
@pytest.mark.parametrize("kind", ["plain", "adapters around"])
def test_trainer(kind, tmp_path):
    """It trains, evaluates, writes checkpoints that load as models, and resumes from them."""
    seen = []

    def trainer(steps):
        sizes = {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 4}
        every = {"save_steps": 4, "logging_steps": 4, "gradient_accumulation_steps": 2}
        options = {"learning_rate": 1e-2, "gradient_checkpointing": True, "max_steps": steps}
        return NumberTrainer(
            new(kind),
            tiny.arguments(tmp_path, **sizes, **every, **options),
            data_collator=CAUSAL,
            train_dataset=SparseRows(24),
            eval_dataset=SparseRows(6),
            compute_metrics=lambda found: seen.append(found.predictions) or {},
        )

    first = trainer(8)
    before = first.evaluate()["eval_loss"]
    first.train()
    assert first.evaluate()["eval_loss"] < before
    logits, numbers, references = seen[-1]
    assert ((references == numbers) | np.isfinite(numbers) | np.isnan(numbers)).all()
    assert logits.shape == (6, 8, tiny.VOCAB) and numbers.shape == (6, 8)
    wanted = sum((row["number_index"] > 0).sum() for row in SparseRows(6).rows)
    assert np.isfinite(numbers).sum() == wanted
    checkpoint, batch = tmp_path / "checkpoint-8", tiny.batch()
    assert not (checkpoint / "pytorch_model.bin").exists()
    automatic = transformers.AutoModelForCausalLM.from_pretrained
    loads = [NumberModel.from_pretrained, partial(automatic, trust_remote_code=True)]
    if kind == "adapters around":
        import peft

        loads = [partial(peft.PeftModel.from_pretrained, new("plain"))]
    for load in loads:
        same(load(checkpoint)(**batch).loss, first.model.eval()(**batch).loss, 0, 0)
    resumed = trainer(8)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-4"))
    for one, other in zip(resumed.model.parameters(), first.model.parameters(), strict=True):
        same(one, other)


WORKER = """
import os, sys
sys.path[:0] = {paths!r}
import test_trainer
from pathlib import Path
folder = Path(sys.argv[1])
model = test_trainer.made("gpt2", "fone")
# a parameter without a gradient in one of them is an error, not waited for
options = {{"share": 2, "ddp_find_unused_parameters": False}}
found = test_trainer.step(folder, model, test_trainer.NumberTrainer, 2, **options)
if os.environ["RANK"] == "0":
    test_trainer.torch.save(found, folder / "found.pt")
test_trainer.torch.distributed.destroy_process_group()  # else its threads may abort the exit
"""


@pytest.mark.slow
def test_two_processes_are_one(tmp_path):
    """Train two batches on each of two processes, which are a step of one process, and one batch."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER.format(paths=[str(Path(__file__).parent), str(SUPPORT)]))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    launch += [str(script), str(tmp_path)]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    subprocess.run(launch, env=environment, check=True, capture_output=True, timeout=300)
    loss, gradients = torch.load(tmp_path / "found.pt", weights_only=True)
    one, ones = step(tmp_path, made("gpt2", "fone"), NumberTrainer, 1)
    same(loss, one, rtol=1e-6)
    same(gradients, ones, rtol=1e-5, atol=1e-6)


def test_a_head_behind_a_pretrained_backbone_reads_normalised_states(tmp_path):
    """However large they are; one behind a new backbone reads them as they are, and so does one
    that is told to.
    """
    new = tiny.backbone("gpt2")
    new.save_pretrained(tmp_path)
    trained = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    for name in tiny.HEADS:
        head = tiny.head(name)
        NumberModel(trained, None, head)
        hidden = torch.randn(4, tiny.D)
        same(head.predict(hidden * 1000).values, head.predict(hidden).values, 1e-3, 1e-3)
        assert head.config()["layer_norm"] is True
        plain = tiny.head(name)
        NumberModel(new, None, plain)
        assert plain.norm is None and plain.config()["layer_norm"] is False
    told = head_from_config(tiny.HEADS["scalar"] | {"layer_norm": False}, tiny.D)
    NumberModel(trained, None, told)
    assert told.norm is None


@pytest.mark.parametrize("short_of_memory", [False, True])
def test_the_parts_of_the_loss_are_logged_of_the_steps_they_are_of(short_of_memory, tmp_path):
    """After a resumption, in a second training, and where steps were left over before it, or were
    tried and failed.
    """
    options = {"max_steps": 5, "logging_steps": 2, "save_steps": 3}
    options |= {"gradient_accumulation_steps": 2, "auto_find_batch_size": short_of_memory}
    check = partial(trainer, tmp_path, kind=NumberTrainer, per_device_train_batch_size=2, **options)
    first, resumed = check(made()), check(made())
    if short_of_memory:
        step, sizes = first.training_step, []

        def fails_once(model, inputs, *arguments):
            sizes.append(len(inputs["input_ids"]))
            if len(sizes) == 3:
                raise RuntimeError("CUDA out of memory.")
            return step(model, inputs, *arguments)

        first.training_step = fails_once
        first.train()
        assert sizes[0] > sizes[-1] and len(parts_of(first)) == 2
        return
    first.train()
    whole = parts_of(first)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert parts_of(resumed)[-1] == pytest.approx(whole[-1])  # of step 4, in which it began anew
    first.train()
    assert parts_of(first) == whole


class Endless(torch.utils.data.IterableDataset):
    """The uneven rows as a stream without a length, which a training begins again and again."""

    def __iter__(self):
        return iter(list(Uneven()))


def test_the_parts_of_the_loss_are_logged_over_several_passes_of_a_stream(tmp_path):
    """Where the last batches of a pass are fewer than a step has."""
    options = {"max_steps": 9, "logging_steps": 2, "per_device_train_batch_size": 1}
    options |= {"gradient_accumulation_steps": 3, "train_dataset": Endless()}
    trained = trainer(tmp_path, made(), NumberTrainer, **options)
    trained.train()
    assert len(parts_of(trained)) == 4


def test_the_parts_of_a_classifier_s_loss_are_means_over_the_batches_of_a_step(tmp_path):
    config = transformers.BertConfig(**tiny.SIZES)
    model = tiny.number_model(transformers.BertForSequenceClassification(config))
    options = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2}
    rows = [{**row, "labels": at % 2} for at, row in enumerate(Uneven().rows)]
    options |= {"train_dataset": rows, "data_collator": NO_LABELS}
    trained = trainer(tmp_path, model, NumberTrainer, **options)
    trained.train()
    assert len(parts_of(trained)) == 1


def parts_of(trained):
    """The parts of the loss in each entry of a log, which come to the loss."""
    logs = [entry for entry in trained.state.log_history if "loss" in entry]
    parts = [[entry["token_loss"], entry["number_loss"]] for entry in logs]
    assert [entry["loss"] for entry in logs] == pytest.approx([sum(one) for one in parts], rel=1e-4)
    return parts
