"""Check what models refuse: parts and batches that do not fit together, tasks, training that cannot work."""

import errors
import peft
import pytest
import torch
import torch_models as tiny
import trained
import transformers
from torch_generators import PROMPTS, setting
from torch_models import number_model as model

from numtok import Tokenizer
from numtok.errors import InputError, SchemaError
from numtok_torch import (
    ModelError,
    NumberCollator,
    NumberDataset,
    NumberModel,
    add_number_rows,
    embedding_from_config,
    generate,
    head_from_config,
    xval_gpt2,
)
from numtok_torch.metrics import number_metrics
from numtok_torch.trainer import NumberTrainer

pytestmark = pytest.mark.filterwarnings("ignore:number_scaled reaches")
SIZES = tiny.SIZES | {"max_position_embeddings": 66, "pad_token_id": tiny.PAD}
SCALAR = {"name": "scalar"}


def bare(name, *parts, **options):
    """A number model around a class of transformers by its name."""
    kind = getattr(transformers, name)
    encoder = {"encoder_attention_heads": 2, "encoder_layers": 1, "d_model": 16}
    decoder = {"decoder_attention_heads": 2, "decoder_layers": 1}
    return NumberModel(kind(kind.config_class(**SIZES | encoder | decoder)), *parts, **options)


def call(made, *left_out, batch=None, **more):
    """Call a model on a batch without some of it, and with more."""
    batch = tiny.batch() if batch is None else batch
    return made(**{name: one for name, one in batch.items() if name not in left_out} | more)


def packed_in_an_xlm():
    """Its masks are checked by an assertion."""
    config = transformers.XLMConfig(emb_dim=16, n_layers=1, n_heads=2, n_words=50)
    made = NumberModel(transformers.XLMWithLMHeadModel(config), None)
    return made(torch.tensor([[1, 2, 3, 4]]), position_ids=torch.tensor([[0, 1, 0, 1]]))


def without_positions():
    batch = {
        name: one
        for name, one in tiny.batch(1, 6, labels=False).items()
        if name != "attention_mask"
    }
    NumberModel(tiny.Plain(), tiny.embedding("xval"))(
        **batch, position_ids=torch.tensor([[0, 1, 2] * 2])
    )


def without_causal():
    plain = tiny.Plain()
    plain.causal = None
    NumberModel(plain, None)


def without_start():
    nameless = tiny.backbone("t5")
    for config in (nameless.config, nameless.generation_config):
        config.decoder_start_token_id = config.bos_token_id = None
    NumberModel(nameless, None)(tiny.pairs()["input_ids"], labels=tiny.pairs()["labels"])


def classes(name="Llama", pad_token_id=tiny.PAD):
    made = bare(f"{name}ForSequenceClassification", tiny.embedding("fone"))
    made.config.pad_token_id = pad_token_id
    made(**tiny.padded(tiny.batch(labels=False), 0, 2) | {"labels": torch.tensor([0, 1, 1])})


def smoothed_classes():
    made = bare("BertForSequenceClassification", None, tiny.head("scalar"))
    NumberTrainer(made, tiny.arguments("out", label_smoothing_factor=0.1))


def encoded(numbers="xval"):
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), numbers)
    return NumberDataset(tokenizer.encode_batch(["and 5", "no number"] * 2)), tokenizer


def around_words():
    backbone = tiny.backbone("llama", vocab_size=trained.source("gpt2").get_vocab_size())
    config = peft.LoraConfig(target_modules=["q_proj"], modules_to_save=["embed_tokens"])
    add_number_rows(peft.get_peft_model(backbone, config), encoded("digits:1")[1])


def stock_trainer(compute_metrics=None, **options):
    return transformers.Trainer(
        model(),
        tiny.arguments("out", max_steps=1, **options),
        data_collator=sparse(),
        train_dataset=tiny.SparseRows(4),
        eval_dataset=tiny.SparseRows(4),
        compute_metrics=compute_metrics,
    )


def smoothed():
    trainer = stock_trainer(label_smoothing_factor=0.1)
    try:
        trainer.train()
    finally:
        assert trainer.state.global_step == 0


def too_few_rows():
    return NumberModel(tiny.backbone("gpt2", vocab_size=255), tiny.embedding("xval"), None)


def causal(data):
    return NumberCollator.from_schema(data.schema, 0, objective="causal")


def sparse(_data=None):
    return NumberCollator(tiny.PAD, objective="causal")


def train(made, collator=causal, data=None):
    data = encoded()[0] if data is None else data
    NumberTrainer(
        made, tiny.arguments("out"), data_collator=collator and collator(data), train_dataset=data
    )


FIXED = {"name": "fone", "int_digits": 3, "frac_digits": 2}


def learn_nothing(backbone, **options):
    return NumberModel(
        backbone, embedding_from_config(FIXED, tiny.D), head_from_config(FIXED, tiny.D), **options
    )


def not_finite(what):
    """A stream, a number, a weight or logits that would make a model one of NaN."""
    made, batch = model(), tiny.batch()
    # on the last token, which no label depends on: the gradient of its vector would be NaN
    batch["number_mask"][0, -1], batch["number_scaled"][0, -1] = True, 0.5
    if what == "stream":
        batch["number_scaled"][0, -1] = float("nan")
    elif what == "number":
        batch["number_scaled"][0, 2] = 6.02e23
    elif what == "weight":
        made.get_parameter("backbone.transformer.h.0.mlp.c_fc.weight").data[0, 0] = float("nan")
    else:
        made.backbone.lm_head.register_forward_hook(lambda *seen: seen[2] * float("inf"))
    made(**batch)


def packed():
    made = NumberModel(tiny.backbone("llama"), tiny.embedding("xval"))
    made(input_ids=torch.zeros(1, 2, dtype=torch.int64), seq_lengths=torch.tensor([[2]]))


def compiled_inside():
    made = model()
    made.backbone = torch.compile(made.backbone)
    return made


POSITIONS = "70 tokens, but … 64 positions"
LEAST = "nothing in this model can learn"
ERRORS = {
    ModelError: [
        (lambda: call(model(), number_index=torch.zeros(3, 2)), "NumberCollator"),
        (lambda: call(model(), labels=torch.zeros(3, dtype=torch.int64)), "one per token"),
        (lambda: call(model("t5"), "labels", batch=tiny.pairs()), "give labels"),
        (lambda: NumberModel(tiny.backbone("gpt2"), embedding_from_config({"name": "xval"}, 8)), "d_model=8, the backbone's word vectors have 16"),
        (lambda: NumberModel(tiny.backbone("gpt2"), None, head_from_config(SCALAR, 8)), "d_model=8, the backbone's hidden states have 16"),
        (lambda: NumberModel(torch.nn.Linear(2, 2), None), "takes no inputs_embeds"),
        (lambda: NumberModel(tiny.backbone("gpt2"), None, number_loss_per="row"), "'number' or 'token'"),
        (lambda: NumberModel(tiny.backbone("bert"), None, freeze_backbone="head"), "'head' is unknown"),
        (lambda: NumberModel(tiny.Plain(), None, vocab_size=tiny.VOCAB + 1), "resize_token_embeddings"),
        (lambda: xval_gpt2(50, 16, 1, 2, token_head="deep"), "'deep' is unknown"),
        (without_causal, "causal=True"),
        (packed_in_an_xlm, "does not keep…apart…pack_attention_mask=True"),
        (without_positions, "does not keep…apart…pack_attention_mask=True"),
        (packed, "seq_lengths is a column of a file, which has one value per piece of a document"),
        (lambda: call(bare("BertModel", tiny.embedding("xval"), tiny.head("scalar"))), "ForMaskedLM"),
        *((lambda kind=kind: bare(kind, None), "is_decoder=False; set config.is_decoder = True") for kind in ("BertLMHeadModel", "RobertaForCausalLM")),
        *((lambda kind=kind: bare(kind, None), "a task that NumberModel does not support") for kind in ("BertForQuestionAnswering", "BertForMultipleChoice")),
        (lambda: bare("NystromformerForMaskedLM", None), "its positions begin at 2"),
        (smoothed_classes, "leave label_smoothing_factor out"),
        (lambda: bare("BartForSequenceClassification", None), "to classify, take an encoder or a decoder alone"),
        (classes, "pad on the left…padding_side='left'"),
        (lambda: classes("GPT2", pad_token_id=None), "has no pad_token_id"),
        (lambda: call(model("bart"), batch=tiny.pairs(source=70)), POSITIONS),
        (lambda: call(model("bart"), batch=tiny.pairs(target=70)), POSITIONS),
        (lambda: call(model("bart"), batch=tiny.pairs(target=64) | tiny.padded(tiny.batch(seq=64, labels=False), 6, 0)), POSITIONS),
        (lambda: model("t5", causal=True), "leave causal out"),
        (without_start, "decoder_start_token_id"),
        (lambda: generate(*setting("xval", "bart")[:2], ["7"], decoder_input_ids=torch.zeros(1, 1)), "decoder_input_ids"),
        (lambda: generate(NumberModel(xval_gpt2(300, 16, 1, 2, bidirectional=True), None), encoded()[1], PROMPTS), "cannot generate"),
        (lambda: NumberModel.build(tiny.backbone("t5", vocab_size=400), *encoded()), "Seq2SeqNumberCollator"),
        (around_words, "before get_peft_model"),
        (smoothed, "taken out of the batch…NumberTrainer"),
        (lambda: too_few_rows()(**causal(encoded()[0])(list(encoded()[0]))), "tokenizer=tokenizer"),
        (lambda: train(too_few_rows()), "add_number_rows"),
        (lambda: train(tiny.backbone("gpt2")), "needs a NumberModel"),
        (lambda: NumberModel(torch.compile(tiny.backbone("gpt2")), None), "in place…backbone.compile()"),
        (lambda: train(torch.compile(model())), "in place: model.compile()"),
        (lambda: call(compiled_inside()), "in place…backbone.compile()"),
        (lambda: NumberTrainer(model(), tiny.arguments("out", batch_eval_metrics=True)), "leave out batch_eval_metrics"),
        (lambda: not_finite("stream"), "number_scaled is not finite at 1 places…encode the text again"),
        (lambda: not_finite("number"), "number_loss is …number_scaled reaches 6.02e+23…fitted scale"),
        (lambda: not_finite("weight"), "token_loss is nan…1 of …parameters are not finite, backbone.transf"),
        (lambda: not_finite("logits"), "token_loss is nan…the logits are not finite although all parameters are"),
        (lambda: learn_nothing(tiny.backbone("gpt2"), freeze_backbone=True), f"{LEAST}…projection='linear'"),
        (lambda: train(learn_nothing(tiny.backbone("gpt2").requires_grad_(False)), sparse, tiny.SparseRows(2)), LEAST),
    ],
    SchemaError: [
        (lambda: call(model(), *(tiny.batch().keys() - {"input_ids"})), "no number_mask"),
        (lambda: call(model(), *(tiny.batch().keys() - {"input_ids", "number_mask"})), "no number_scaled"),
        (lambda: call(model(embedding_name="bits"), "number_scaled"), "ScalarHead is trained on"),
        (lambda: call(model("bert"), number_labels_mask=tiny.batch()["number_mask"]), "no number_scaled_labels"),
        (lambda: call(model("t5"), "number_labels_mask", batch=tiny.pairs()), "no number_labels_mask"),
        (lambda: call(model("t5", "fone"), "number_scaled_labels", batch=tiny.pairs()), "no number_scaled_labels"),
        (lambda: NumberModel.build(tiny.backbone("gpt2"), *encoded("digits:1"), embedding={"zero_init": True}), "need none"),
        (lambda: train(too_few_rows(), None), "NumberCollator"),
    ],
    InputError: [
        (lambda: stock_trainer(number_metrics, per_device_eval_batch_size=1).evaluate(), "needs preprocess_logits_for_metrics=numbers_only"),
        (lambda: generate(*setting("xval", "bart")[:2], ["a b c d " * 40]), "64 positions"),
    ],
    AttributeError: [(lambda: call(model()).lgits, "NumberModelOutput has no 'lgits'")],
}  # fmt: skip


@errors.rows(ERRORS)
def test_errors(call, kind, told, fields, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    errors.check(call, kind, told, fields)
