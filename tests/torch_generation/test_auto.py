"""Number models as transformers knows models: through its Auto classes, in this process and in a
new one.
"""

import json
import math
import pickle
from pathlib import Path

import pytest
import torch
import torch_models as tiny
import transformers
from new_process import run
from torch_generators import PROMPTS, saved
from torch_models import same
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, pipeline

from numtok_torch import NumberCollator, NumberModel, generate
from numtok_torch.auto import NumberConfig, NumberTextGeneration, PreTrainedNumberModel

TRUSTED = {"trust_remote_code": True}


def encoded(folder, prompts, side="left"):
    """The drop-in tokenizer of a folder, and a batch of it."""
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side=side, **TRUSTED)
    return tokenizer, tokenizer(prompts, padding=True, return_tensors="pt", return_numbers=True)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("xval", "gpt2"),
        ("fone", "llama"),
        ("bits", "gpt_neox"),
        ("digits", "gpt2"),
        ("place lsd", "llama"),
        ("xval", "t5"),
    ],
)
def test_ids_values_and_texts_are_those_of_generate(name, kind, tmp_path):
    """Greedy, batched: from ids by transformers' generate, and from text by a pipeline."""
    model, tokenizer, options = saved(name, tmp_path, kind)
    expected = generate(model, tokenizer, PROMPTS, details=True, **options)
    encoder = model.decodes
    auto = transformers.AutoModelForSeq2SeqLM if encoder else AutoModelForCausalLM
    found = auto.from_pretrained(tmp_path, **TRUSTED)
    assert isinstance(found, NumberModel) and isinstance(found, transformers.PreTrainedModel)
    drop_in, batch = encoded(tmp_path, PROMPTS, "right" if encoder else "left")
    found = pickle.loads(pickle.dumps(found))
    output = found.generate(**batch, **options, return_dict_in_generate=True)
    width = 1 if encoder else batch["input_ids"].shape[1]
    for row, ids in enumerate(expected.ids):
        behind = slice(width, width + len(ids))
        assert output.sequences[row, behind].tolist() == ids
        values = output.number_value[row, behind]
        assert [one for one in values.tolist() if not math.isnan(one)] == expected.values[row]
        assert encoder or drop_in.decode(ids, number_value=values) == expected.texts[row]
    assert any(expected.values)
    if encoder:
        return
    read = batch["number_mask"].bool()
    same(output.number_value[:, :width][read], batch["number_value"][read])
    assert output.number_value[:, :width][~read].isnan().all()
    write = pipeline("text-generation", model=str(tmp_path), batch_size=2, **TRUSTED)
    texts = [one[0]["generated_text"] for one in write(PROMPTS, do_sample=False, **options)]
    assert texts == [prompt + text for prompt, text in zip(PROMPTS, expected.texts, strict=True)]


def test_harnesses_name_one_device_and_leave_options_none(tmp_path):
    """lm-evaluation-harness, lighteval and inspect_ai load models so."""
    saved("xval", tmp_path)
    none = {"gguf_file": None, "quantization_config": None, "max_memory": None}
    for device_map in (None, "cpu", {"": "cpu"}, torch.device("cpu")):
        options = {"torch_dtype": torch.bfloat16, "device_map": device_map, **none, **TRUSTED}
        model = AutoModelForCausalLM.from_pretrained(tmp_path, **options)
        assert model.transformer.dtype == torch.bfloat16 and model.device.type == "cpu"
    on_meta = AutoModelForCausalLM.from_pretrained(tmp_path, device_map={"": "meta"}, **TRUSTED)
    assert {one.device.type for one in on_meta.parameters()} == {"meta"}


@pytest.mark.parametrize("name", ["xval", "digits"])
def test_a_pipeline_cuts_long_prompts_with_their_numbers(name, tmp_path):
    saved(name, tmp_path)
    write = pipeline("text-generation", model=str(tmp_path), **TRUSTED)
    write.tokenizer.model_max_length, new = 20, {"max_new_tokens": 6, "do_sample": False}
    long = "The sum of 12.5 and 30 and 7 and 8 " * 3
    (found,) = write(long, handle_long_generation="hole", **new)
    batch = write.tokenizer(long, return_tensors="pt", return_numbers=True)
    assert batch["input_ids"].shape[1] > 20
    kept = {column: one[:, -(20 - 6) :] for column, one in batch.items()}
    output = write.model.generate(**kept, **new, return_dict_in_generate=True)
    same(torch.tensor([found["number_value"]], dtype=torch.float64), output.number_value)


def test_a_chat(tmp_path):
    model, tokenizer, options = saved("xval", tmp_path)
    found = pipeline("text-generation", model=str(tmp_path), **TRUSTED)
    found.tokenizer.chat_template = "{% for one in messages %}{{ one['content'] }} is{% endfor %}"
    chat = [{"role": "user", "content": "The sum of 12.5 and 30"}]
    written = found(chat, do_sample=False, **options)[0]["generated_text"]
    (expected,) = generate(model, tokenizer, [PROMPTS[0]], **options)
    assert written == [*chat, {"role": "assistant", "content": expected}]


def test_beams_and_several_sequences(tmp_path):
    model, tokenizer, options = saved("xval", tmp_path)
    more = {"num_beams": 3, "num_return_sequences": 2}
    expected = generate(model, tokenizer, PROMPTS[:2], details=True, **options, **more)
    found = AutoModelForCausalLM.from_pretrained(tmp_path, **TRUSTED)
    found.generation_config.num_beams = 3
    _, batch = encoded(tmp_path, PROMPTS[:2])
    ids = found.generate(**batch, **options, num_return_sequences=2)
    assert [row[-12:].tolist() for row in ids] == expected.ids
    write = NumberTextGeneration(found, AutoTokenizer.from_pretrained(tmp_path, **TRUSTED))
    written = write(PROMPTS[0], do_sample=False, return_full_text=False, **options, **more)
    assert [one["generated_text"] for one in written] == expected.texts[:2]
    assert len(written[0]["number_value"]) == len(tokenizer.encode(PROMPTS[0]).input_ids) + 12


def test_a_prompt_that_is_a_number_is_not_taken_for_the_new_text(tmp_path):
    saved("xval", tmp_path)
    write = pipeline("text-generation", model=str(tmp_path), **TRUSTED)
    torch.manual_seed(0)
    ((number,), (word,)) = (write.tokenizer(text).input_ids for text in (" 5", " kg"))
    options = {"max_new_tokens": 1, "do_sample": True, "num_return_sequences": 8}
    more = {"temperature": 1e6, "prefix_allowed_tokens_fn": lambda *_: [number, word]}
    written = write(" 5", return_full_text=False, **options, **more)
    numbers = {
        float(one["generated_text"]): one["number_value"][1]
        for one in written
        if not math.isnan(one["number_value"][1])
    }
    assert numbers and 5 not in numbers
    assert all(shown == pytest.approx(value) for shown, value in numbers.items())


@pytest.mark.parametrize("kind", ["t5", "gpt2"])
def test_tokens_of_a_generation_config_count(kind, tmp_path):
    """The start of a decoder, and what is never written, also of a model without a head."""
    _, _, options = saved("xval", tmp_path, kind)
    auto = transformers.AutoModelForSeq2SeqLM if kind == "t5" else AutoModelForCausalLM
    found = auto.from_pretrained(tmp_path, **TRUSTED)
    found.head = None
    _, batch = encoded(tmp_path, PROMPTS[:1])
    once = found.generate(**batch, **options)
    last = once[0, -1].item()
    config = transformers.GenerationConfig(decoder_start_token_id=5, suppress_tokens=[last])
    config.pad_token_id = tiny.PAD
    again = found.generate(**batch, **options, generation_config=config)
    assert last not in again[0, -options["max_new_tokens"] :]
    assert kind == "gpt2" or (once[0, 0], again[0, 0]) == (
        tiny.DECODER["decoder_start_token_id"],
        5,
    )


def test_what_options_leave_open_is_the_generation_config_s(tmp_path):
    """And what that leaves open, the model's; as transformers' generate."""
    saved("xval", tmp_path)
    found = AutoModelForCausalLM.from_pretrained(tmp_path, **TRUSTED)
    _, batch = encoded(tmp_path, PROMPTS[:1])
    width, endless = batch["input_ids"].shape[1], {"eos_token_id": []}
    assert found.generate(**batch, **endless).shape == (1, width + 20)
    assert found.generate(**batch, **endless, max_length=width + 3).shape == (1, width + 3)
    found.generation_config.max_new_tokens = 7
    found.generation_config.num_beams = 3
    found.generation_config.num_return_sequences = 2
    whole = found.generate(**batch, **endless)
    assert whole.shape == (2, width + 7)
    assert found.generate(**batch, **endless, max_new_tokens=2).shape == (2, width + 2)
    given = transformers.GenerationConfig(do_sample=False)
    found.generation_config.eos_token_id = whole[0, -4].item()
    ended = found.generate(**batch)
    assert ended.tolist() != whole.tolist()
    assert found.generate(**batch, generation_config=given).tolist() == ended.tolist()


@pytest.mark.slow
def test_a_new_process(tmp_path):
    """That imports nothing of numtok itself, and takes the model from the cache of the Hub; where
    numtok cannot be imported it says so.
    """
    repository = tmp_path / "home" / "hub" / "models--me--numbers"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("a" * 40)
    model, tokenizer, options = saved("fone", repository / "snapshots" / ("a" * 40), "llama")
    script = """
        import json, sys
        from transformers import AutoModelForCausalLM, pipeline
        folder, options = sys.argv[1], json.loads(sys.argv[2])
        class NotInstalled:
            def find_spec(name, *_):
                if name == "numtok_torch":
                    raise ModuleNotFoundError("No module named 'numtok_torch'")
        sys.meta_path.insert(0, NotInstalled)
        try:
            AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
        except ImportError as error:
            told = str(error)
        sys.meta_path.remove(NotInstalled)
        write = pipeline("text-generation", model=folder, trust_remote_code=True)
        texts = [write(text, do_sample=False, **options) for text in json.loads(sys.argv[3])]
        print(json.dumps([told, [one[0]["generated_text"] for one in texts]]))
    """
    arguments = json.dumps(options), json.dumps(PROMPTS)
    told, texts = json.loads(run(script, tmp_path, "me/numbers", *arguments).splitlines()[-1])
    assert "pip install 'numtok[torch]'" in told
    assert texts == generate(model, tokenizer, PROMPTS, full_text=True, **options)


def test_the_config_round_trips(tmp_path):
    """Its own, and into a folder that the model is loaded from again."""
    model, *_ = saved("xval", tmp_path, "gpt_neox")
    expected = model(**tiny.batch()).loss
    config = AutoConfig.from_pretrained(tmp_path, **TRUSTED)
    assert type(config) is NumberConfig and config.model_type == "numtok"
    text = config.get_text_config()
    assert type(text) is transformers.GPTNeoXConfig
    assert text.vocab_size == model.config.vocab_size
    before = json.loads((tmp_path / "config.json").read_text())
    config.save_pretrained(tmp_path)
    after = json.loads((tmp_path / "config.json").read_text())
    assert {name: after[name] for name in before} == before
    assert NumberConfig.from_pretrained(tmp_path).to_json_string() == config.to_json_string()
    again = AutoModelForCausalLM.from_pretrained(tmp_path, **TRUSTED)
    same(again(**tiny.batch()).loss, expected, 0, 0)


def test_push_to_hub(tmp_path, monkeypatch):
    """What would be uploaded is a model that loads. (The hub is a folder; the rest is its code.)"""

    class Hub:
        def create_repo(self, repo_id, **_):
            return type("Repository", (), {"repo_id": repo_id})

        def create_commit(self, repo_id, operations, **_):
            for one in operations:
                path = tmp_path / repo_id / one.path_in_repo
                path.parent.mkdir(parents=True, exist_ok=True)
                with one.as_file() as content:
                    path.write_bytes(content.read())

    from transformers.utils import hub

    monkeypatch.setattr(hub, "hf_api", Hub)
    card = type("Card", (), {"save": lambda _, path: Path(path).write_text("A model\n")})
    monkeypatch.setattr(hub, "create_and_tag_model_card", lambda *_, **__: card())
    model, *_ = saved("xval", tmp_path / "saved")
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "saved", **TRUSTED)
    found.push_to_hub("me/numbers")
    assert (tmp_path / "me/numbers/README.md").read_text() == "A model\n"
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "me/numbers", **TRUSTED)
    same(again(**tiny.batch()).loss, model(**tiny.batch()).loss, 0, 0)


def test_a_plain_trainer_writes_whole_folders(tmp_path):
    """Of a model that is transformers' own from the beginning."""
    pytest.importorskip("accelerate")
    made = PreTrainedNumberModel(tiny.backbone("gpt2"), tiny.embedding("xval"), tiny.head("scalar"))
    trainer = transformers.Trainer(
        made,
        tiny.arguments(tmp_path, max_steps=2, save_steps=2, gradient_checkpointing=True),
        data_collator=NumberCollator(tiny.PAD, objective="causal"),
        train_dataset=tiny.SparseRows(16),
    )
    trainer.train()
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint-2", **TRUSTED)
    same(loaded(**tiny.batch()).loss, made.eval()(**tiny.batch()).loss, 0, 0)
