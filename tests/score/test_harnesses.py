"""Inside the real harnesses, where they are installed."""

import json

import pytest

from numtok.score.adapters import (
    grounded_reward,
    inspect_scorer,
    number_reward,
    register_lm_eval,
)

ANSWERS = [("It costs $29.00.", "29"), ("#### 1,000", "1000"), ("I do not know", "4"), ("5", "6")]


@pytest.mark.slow
def test_lm_eval(tmp_path):
    evaluator = pytest.importorskip("lm_eval")
    from lm_eval.api.model import LM

    class Canned(LM):
        def generate_until(self, requests, **_):
            return [ANSWERS[int(request.args[0])][0] for request in requests]

        loglikelihood = loglikelihood_rolling = generate_until

    data = tmp_path / "test.jsonl"
    rows = [json.dumps({"q": str(n), "a": wanted}) for n, (_, wanted) in enumerate(ANSWERS)]
    data.write_text("\n".join(rows))
    register_lm_eval()
    task = {
        "task": "canned",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "doc_to_text": "{{q}}",
        "doc_to_target": "{{a}}",
        "output_type": "generate_until",
        "filter_list": [
            {"name": "number", "filter": [{"function": "numtok"}, {"function": "take_first"}]}
        ],
        "metric_list": [{"metric": "numtok_equal"}],
    }
    told = evaluator.simple_evaluate(model=Canned(), tasks=[task], bootstrap_iters=0)
    assert told["results"]["canned"]["numtok_equal,number"] == 0.5
    found = {tuple(one["filtered_resps"]) for one in told["samples"]["canned"]}
    assert found == {("29.00",), ("1000",), ("[invalid]",), ("5",)}


@pytest.mark.slow
def test_inspect_ai(tmp_path):
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    said = [ModelOutput.from_content("mockllm/model", answer) for answer, _ in ANSWERS]
    for output in said:  # or inspect_ai fetches a tokenizer to count
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    task = inspect_ai.Task(
        dataset=[Sample(input="?", target=wanted) for _, wanted in ANSWERS], scorer=inspect_scorer()
    )
    (log,) = inspect_ai.eval(
        task,
        model=get_model("mockllm/model", custom_outputs=said),
        log_dir=str(tmp_path),
        display="none",
        max_connections=1,
        max_samples=1,
    )
    assert log.status == "success" and log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reward", "column", "row"),
    [
        (number_reward("answer", tolerance=1e9), "answer", "5"),
        (grounded_reward("context", without_figures=0.5), "context", ["2 cats", "3 dogs"]),
    ],
)
def test_trl(tmp_path, reward, column, row):
    """A tiny model is trained with the reward, which is logged."""
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    transformers = pytest.importorskip("transformers")
    from numtok.hf import NumberTokenizer

    tokenizer = NumberTokenizer.from_pretrained(None, eos_token="<|endoftext|>")
    tokenizer.pad_token = tokenizer.eos_token
    sizes = {"vocab_size": len(tokenizer), "n_embd": 16, "n_layer": 1, "n_head": 2}
    shape = transformers.GPT2Config(**sizes, eos_token_id=tokenizer.eos_token_id)
    trainer = trl.GRPOTrainer(
        model=transformers.GPT2LMHeadModel(shape),
        reward_funcs=reward,
        args=trl.GRPOConfig(
            str(tmp_path),
            max_steps=2,
            num_generations=4,
            per_device_train_batch_size=4,
            max_completion_length=24,
            logging_steps=1,
            report_to=[],
            use_cpu=True,
        ),
        train_dataset=datasets.Dataset.from_dict({"prompt": ["2 + 3 ="] * 8, column: [row] * 8}),
        processing_class=tokenizer,
    )
    trainer.train()
    mean = f"rewards/{reward.__name__}/mean"
    logged = [step[mean] for step in trainer.state.log_history if mean in step]
    assert len(logged) == 2 and all(0 <= one <= 1 for one in logged)
