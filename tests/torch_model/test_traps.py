"""What reference implementations got wrong, where it takes several parts together to see it; each
part has its own traps in its own file.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import torch_models as tiny
import trained

from numtok import Tokenizer
from numtok.representations import XVal
from numtok_torch import BitsHead, FoNEEmbedding, FoNEHead, NumberModel, ScalarHead, XValEmbedding
from numtok_torch.embeddings.fone import digits_of_features
from numtok_torch.generation.generate_texts import generate, read_prompts

LOW = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])


# --- zero is a number


def silenced(head, bias):
    """A head that says this whatever it is given."""
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.network[2].bias.fill_(bias)
    return head


def writer_of(value):
    """A model that writes this number again and again, and the batches that its embedding has seen."""
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [XVal()])
    whole = tiny.backbone("gpt2", vocab_size=tokenizer.vocab_size)
    made = NumberModel(whole, XValEmbedding(tiny.D), silenced(ScalarHead(tiny.D), value)).eval()
    seen = []

    def noted(_, given):
        seen.append({name: stream.clone() for name, stream in given[1].items()})

    made.embedding.register_forward_pre_hook(noted)
    bias = [[[tokenizer.tokens[" [NUM]"]], 1000.0]]
    return made, tokenizer, {"max_new_tokens": 4, "sequence_bias": bias, "details": True}, seen


def test_a_zero_that_is_written_is_a_number():
    """It is in the text, and the next step sees a number that is 0, not the filler 1.

    So near to zero noise has a say: each is read again, alone.
    """
    made, tokenizer, options, seen = writer_of(0.0)
    written = generate(made, tokenizer, ["It is 5 or"], **options)
    assert written.values == [[0.0] * 4] and written.texts == [" 0" * 4]
    # one new token each, thanks to the cache
    steps = [batch for batch in seen if batch["number_mask"].shape[1] == 1]
    assert [batch["number_scaled"].tolist() for batch in steps] == [[[0.0]]] * 3
    assert all(batch["number_mask"].all() for batch in steps)
    # behind the prompt and what was written so far
    again = [batch for batch in seen if batch["number_mask"].shape[1] > 1][1:]
    assert [batch["number_scaled"][batch["number_mask"]].tolist() for batch in again] == [
        [5.0, *[0.0] * count] for count in range(4)
    ]


def test_a_literal_number_token_in_a_prompt_takes_no_value():
    """Each value stays with its own number, and the text is given back as it was."""
    made, tokenizer, options, _ = writer_of(8.0)
    prompt = "Write [NUM] for 5 and [NUM][/NUM] for 7 ¬ or"
    batch = read_prompts(tokenizer, [prompt], 0, 0, False, torch.device("cpu"))
    assert batch["number_value"][batch["number_mask"]].tolist() == [5.0, 7.0]
    own = list(tokenizer.tokens.values())
    assert torch.equal(torch.isin(batch["input_ids"], torch.tensor(own)), batch["number_mask"])
    assert generate(made, tokenizer, [prompt], **options, full_text=True).texts == [
        prompt + " 8" * 4
    ]


# --- the range of float16


@LOW
def test_predictions_of_a_module_in_low_precision_are_not_rounded_to_it(dtype):
    """70000 is infinite in float16, and 1e-9 is 0: the number's own scale comes after the cast
    back.
    """
    for value, scale in ((70000.0, 1e-4), (1e-9, 1e9), (2049.0, 1.0)):
        head = silenced(ScalarHead(1, scale=scale), value * scale)
        found = head.to(dtype).predict(torch.zeros(1, 1, dtype=dtype)).values
        assert found.dtype == torch.float64
        assert found.item() == pytest.approx(value, rel=float(torch.finfo(dtype).eps))
    bits = torch.tensor([int(bit) for bit in f"{np.float32(16777215).view(np.uint32):032b}"])
    bit_head = BitsHead(32).to(dtype)
    with torch.no_grad():
        bit_head.network.weight.copy_(torch.eye(32))
        bit_head.network.bias.zero_()
    assert bit_head.predict((2.0 * bits - 1)[None].to(dtype)).values.tolist() == [16777215.0]


@LOW
def test_a_model_in_low_precision_keeps_every_digit(dtype):
    """Its streams are not cast along, and neither are periods: 30 digits in are 30 digits at the
    backbone, and come out of the head.
    """
    digits = torch.randint(
        10, (2, 5, 30), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    backbone = tiny.backbone("gpt2", n_embd=60)
    model = NumberModel(backbone, FoNEEmbedding(60, 30, 0), FoNEHead(60, 30, 0)).to(dtype).eval()
    got = []
    backbone.transformer.register_forward_pre_hook(
        lambda _, args, kwargs: got.append(kwargs["inputs_embeds"]), with_kwargs=True
    )
    ids, mask = torch.full((2, 5), tiny.NUM), torch.ones(2, 5, dtype=torch.bool)
    with torch.no_grad():
        backbone.get_input_embeddings().weight.zero_()
        out = model(ids, number_mask=mask, number_digits=digits, labels=ids)
    assert got[0].dtype == dtype and torch.isfinite(out.loss)
    assert torch.equal(digits_of_features(got[0].unflatten(-1, (30, 2)), 30), digits)
    turns = 2 * torch.pi * digits / 10
    hidden = torch.stack([turns.cos(), turns.sin()], -1).flatten(-2)  # (2, 5, 60)
    assert torch.equal(model.head.predict(hidden.to(dtype)).streams["number_digits"], digits)
