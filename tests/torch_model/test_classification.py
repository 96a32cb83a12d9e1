"""Models that classify texts or tokens, with numbers in what they read: the backbone's own loss."""

import copy

import pytest
import torch
import torch_models as tiny
import transformers
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch_models import same

from numtok_torch import ModelError, NumberModel

SIZES = tiny.SIZES | {"max_position_embeddings": 66, "pad_token_id": tiny.PAD}
CLASSES = torch.tensor([0, 2, 1])


def backbone(kind, task="Sequence", **options):
    name = {"bert": "Bert", "roberta": "Roberta", "gpt2": "GPT2", "llama": "Llama"}[kind]
    config = getattr(transformers, f"{name}Config")(**SIZES, **options)
    return tiny.lively(getattr(transformers, f"{name}For{task}Classification"), config)


def inputs(labels):
    return tiny.batch(labels=False) | {"labels": labels}


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        *(("bert", 0, right) for right in (0, 3)),
        *(("roberta", 0, right) for right in (0, 3)),
        *(("gpt2", left, 0) for left in (0, 3)),
        *(("llama", left, 0) for left in (0, 3)),
    ],
)
def test_texts(kind, left, right):
    """Without numbers it is the stock model, with padding too; with them, they matter, and
    gradients reach them; a row's padding does not.
    """
    given = tiny.padded(tiny.batch(labels=False), left, right)
    stock = backbone(kind, num_labels=3)
    made = NumberModel(copy.deepcopy(stock), tiny.embedding("fone")).eval()
    ids = {name: given[name] for name in ("input_ids", "attention_mask")}
    if left:
        places = (torch.arange(given["input_ids"].shape[1]) - left).clamp(min=0)
        ids["position_ids"] = places.expand_as(given["input_ids"])
    plain = given | {"number_mask": torch.zeros_like(given["number_mask"])}
    expected, found = stock(**ids, labels=CLASSES), made(**plain, labels=CLASSES)
    same(found.logits, expected.logits)
    same(found.loss, expected.loss)
    same(found.token_loss, expected.loss)
    numbers = made(**given, labels=CLASSES)
    assert numbers.logits.shape == (3, 3)
    assert not torch.allclose(numbers.logits, found.logits, atol=1e-3)
    same(numbers.logits, made(**inputs(CLASSES)).logits, atol=1e-5)
    numbers.loss.backward()
    assert all(one.grad.isfinite().all() and one.grad.any() for one in made.embedding.parameters())
    assert made(**given).loss is None


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_the_places_of_digits_do_not_need_labels_of_tokens(kind):
    """The classes of texts are no tokens in which a digit's place would have to be found."""
    made = NumberModel(backbone(kind, num_labels=3), tiny.embedding("place", written="msd")).eval()
    found = made(**inputs(CLASSES))
    assert found.loss.isfinite()
    same(found.logits, made(**tiny.batch(labels=False)).logits)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_regression_several_labels_and_tokens(kind):
    def loss(labels, task="Sequence", **options):
        made = NumberModel(backbone(kind, task, **options), tiny.embedding("fone")).eval()
        found = made(**inputs(labels))
        return found.loss, found.logits

    values = torch.tensor([0.5, -1.0, 2.0])
    found, logits = loss(values, num_labels=1)
    same(found, (logits.squeeze(-1) - values).square().mean())
    several = torch.zeros(3, 9)  # as many as tokens, which they are not
    found, logits = loss(several, num_labels=9, problem_type="multi_label_classification")
    same(found, binary_cross_entropy_with_logits(logits, several))
    tokens = torch.randint(0, 3, (3, 9))
    tokens[0, :4] = -100
    found, logits = loss(tokens, "Token", num_labels=3)
    same(found, cross_entropy(logits.flatten(0, 1), tokens.flatten(), ignore_index=-100))


def test_texts_may_end_with_the_id_of_the_padding():
    """As where the end of a text pads too; padding behind a text is refused."""
    ids = torch.tensor([[tiny.PAD, 3, tiny.PAD], [4, 3, tiny.PAD]])
    made = NumberModel(backbone("gpt2"), None).eval()
    found = made(ids, attention_mask=torch.tensor([[0, 1, 1], [1, 1, 1]])).logits
    same(found[0], made(ids[:1, 1:], attention_mask=torch.ones(1, 2)).logits[0], atol=1e-5)
    for mask in (None, torch.tensor([[0, 1, 1], [1, 1, 0]])):
        with pytest.raises(ModelError, match="pad on the left"):
            made(ids, attention_mask=mask)


def test_a_head_beside_it():
    numbers = tiny.embedding("xval"), tiny.head("scalar")
    made = NumberModel(backbone("gpt2", num_labels=3), *numbers, number_weight=0.5).eval()
    found = made(**inputs(CLASSES))
    same(found.loss, found.token_loss + 0.5 * found.number_loss)
