"""Text with numbers: the cache, the batch, beams and sampling, each held to the model that is given
the whole text at once.
"""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch_models as tiny
import trained
import transformers
from torch_generators import (
    CASES,
    COMBINED,
    PROMPTS,
    WAYS,
    bias_of,
    model_for,
    scripted,
    setting,
    streams_written,
)

from numtok import Grammar, NumberFormat, Numbers, Tokenizer
from numtok.representations import Digits, FoNE, PlaceValue, QuantileBins, XVal
from numtok.tokenizer.generated_numbers import number_ids
from numtok.tokenizer.packing import end_token
from numtok_torch import (
    Estimate,
    ModelError,
    NumberModel,
    PlaceTracker,
    ScalarHead,
    XValEmbedding,
    embedding_from_config,
    embedding_from_schema,
    head_from_schema,
)
from numtok_torch.data import NumberCollator, NumberDataset
from numtok_torch.generation.generate_texts import generate, read_prompts
from numtok_torch.generation.well_formed import NumberLogitsProcessor

COMMON = ("xval", "fone dense", "place lsd")


def forced(made, tokenizer, prompt, ids, values):
    """What the model says when it reads prompt and continuation at once, without padding or cache:
    (the scores of each id, (new, vocabulary); what is predicted for it, (new,), if there is a head).
    """
    batch = read_prompts(tokenizer, [prompt], 0, 0, False, torch.device("cpu"), not made.decodes)
    new = streams_written(made, tokenizer, batch, ids, values)
    if made.decodes:
        del new["attention_mask"]
        batch |= {"labels": new.pop("input_ids"), "number_labels_mask": new.pop("number_mask")}
        batch |= {f"{name}_labels": stream for name, stream in new.items()}
    else:
        batch = {name: torch.cat([stream, new[name]], 1) for name, stream in batch.items()}
    with torch.no_grad():
        found = made(**batch)
    if made.decodes:
        return found.logits[0], found.number_predictions[0] if made.head else None
    first = found.logits.shape[1] - len(ids)
    predicted = found.number_predictions[0, first:] if made.head else None
    return found.logits[0, first - 1 : -1], predicted


def check_forced(made, tokenizer, found, per_prompt, options, greedy):
    """Each row is what the model says when it reads the row; how many numbers there were."""
    bias, new = bias_of(tokenizer, options), options["max_new_tokens"]
    count = 0
    for row, (ids, values) in enumerate(zip(found.ids, found.values, strict=True)):
        prompt = PROMPTS[row // per_prompt]
        scores, predicted = forced(made, tokenizer, prompt, ids, values)
        if predicted is not None:
            shown = predicted[~predicted.isnan()]
            assert len(shown) == len(values)
            held = [as_held(tokenizer, float(value)) for value in shown]
            assert values == pytest.approx(held, rel=2e-3, abs=1e-4)
        if greedy:
            before = [tiny.PAD] if made.decodes else tokenizer.encode(prompt).input_ids.tolist()
            allowed = held_to_numbers(tokenizer, scores + bias, before, ids, new)
            assert allowed.argmax(-1).tolist() == ids
        count += len(values)
    return count


def held_to_numbers(tokenizer, scores, before, ids, new):
    """The scores of each of the ids, without those that may not follow the ids before."""
    processor = NumberLogitsProcessor(tokenizer, max_length=len(before) + new)
    rows = [torch.tensor([before + ids[:at]]) for at in range(len(ids))]
    return torch.cat([processor(row, scores[at : at + 1]) for at, row in enumerate(rows)])


def as_held(tokenizer, value):
    """The value as the representation writes it."""
    first = tokenizer.representations[0]
    return round(abs(value), first.frac_digits) if isinstance(first, FoNE) else value


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        # bits and digits in their other forms: test_what_is_fed_back_is_what_the_text_says
        *(("gpt2", name) for name in CASES | COMBINED if name not in ("bits", "fone chunks")),
        *(("llama", name) for name in ("place lsd", "all")),
        *((kind, "xval") for kind in ("t5", "bart", "mbart", "longt5")),
        *(("t5", "fone"), ("scaled", "fone"), ("bart", "p10")),
    ],
)
def test_cached_is_uncached_is_batched(kind, name):
    """To the last digit: texts, ids and values, of every embedding and every head; and it is
    greedy: the most likely token of the model that reads it all at once.
    """
    made, tokenizer, options = setting(name, kind)
    options |= {"details": True}
    found = generate(made, tokenizer, PROMPTS, **options)
    # with less padding in the batch too
    assert generate(made, tokenizer, PROMPTS, use_cache=False, batch_size=3, **options) == found
    wanted = {number for ((number,), _) in options["sequence_bias"]}
    assert sum(one in wanted for ids in found.ids for one in ids) >= (4 if made.decodes else 12)
    if name in CASES and kind != "mbart":  # which has a rule of its own for what its decoder reads
        count = check_forced(made, tokenizer, found, 1, options, greedy=True)
        assert count >= (4 if made.decodes else 8) or made.head is None


@pytest.mark.parametrize(
    ("kind", "name", "way"),
    [
        *(("gpt2", name, way) for name in COMMON for way in ("sampling", "beams", "sampled beams")),
        ("gpt_neox", "xval", "beams"),
        ("llama", "fone dense", "sampling"),
        *(("t5", "xval", way) for way in ("sampling", "beams", "sampled beams")),
    ],
)
def test_every_row_and_beam_has_its_own_numbers(kind, name, way):
    """Each read where its token was chosen, also where the most likely token is another."""
    made, tokenizer, options = setting(name, kind)
    results = []
    for use_cache in (True, False):
        torch.manual_seed(5)
        known = options | WAYS[way] | {"use_cache": use_cache, "details": True}
        results.append(generate(made, tokenizer, PROMPTS, **known))
    found, again = results
    assert found.ids == again.ids
    rows = WAYS[way]["num_return_sequences"]
    assert len(found.texts) == rows * len(PROMPTS)
    count = check_forced(made, tokenizer, found, rows, options, greedy=False)
    assert count >= (8 if made.head else 1)
    assert any(found.ids[k] != found.ids[k + 1] for k in range(0, len(found.ids), rows))


def test_drawn_values():
    """Rows with the same tokens have values of their own, and each goes on from its own."""
    made, tokenizer, options = setting("mixture")
    same_tokens = {"do_sample": True, "top_k": 1, "num_return_sequences": 4, "sample_numbers": True}
    torch.manual_seed(0)
    found = generate(made, tokenizer, PROMPTS[:1], details=True, **(options | same_tokens))
    assert len({values[0] for values in found.values}) == 4
    bias, before = bias_of(tokenizer, options), tokenizer.encode(PROMPTS[0]).input_ids.tolist()
    for ids, values in zip(found.ids, found.values, strict=True):
        scores = forced(made, tokenizer, PROMPTS[0], ids, values)[0] + bias
        new = options["max_new_tokens"]
        assert held_to_numbers(tokenizer, scores, before, ids, new).argmax(-1).tolist() == ids


def test_texts():
    """Each number once, where its token is, with the space of its form; behind the prompt as given."""
    made, tokenizer, options = setting("xval")
    found = generate(made, tokenizer, PROMPTS, details=True, **options)
    for text, ids, values in zip(found.texts, found.ids, found.values, strict=True):
        words = Numbers.parse([repr(value) for value in values]).format().to_pylist()
        assert text == tokenizer.decode(ids, words)
    assert generate(made, tokenizer, PROMPTS, full_text=True, **options) == [
        a + b for a, b in zip(PROMPTS, found.texts, strict=True)
    ]


def test_ends():
    """An end token is left out; a number token that ends the text stays, with its value, in beams
    too.
    """
    made, tokenizer, options = setting("xval")
    numbers = number_ids(tokenizer)
    options["sequence_bias"] = [[[number], 4.0] for number in numbers]

    def written(**more):
        return generate(made, tokenizer, PROMPTS, details=True, **options | more)

    whole = written()
    end = next(one for ids in whole.ids for one in ids[2:] if one not in numbers)
    found = written(eos_token_id=end)
    for full, cut in zip(whole.ids, found.ids, strict=True):
        assert cut == (full[: full.index(end)] if end in full else full)
    made.backbone.generation_config.eos_token_id = end
    assert written() == found
    assert written(eos_token_id=[]) == whole
    own = end_token(tokenizer)  # ends texts by default
    assert written(sequence_bias=[[[own], 50.0], *options["sequence_bias"]]).ids == [[]] * 4
    for beams in ({}, {"num_beams": 3, "num_return_sequences": 2}):
        first = written(eos_token_id=numbers, **beams)
        assert sum(map(len, first.values)) >= 4
        for ids, values in zip(first.ids, first.values, strict=True):
            assert len(values) <= 1 and (not values or ids[-1] in numbers)
        check_forced(made, tokenizer, first, len(first.ids) // len(PROMPTS), options, greedy=False)


def test_without_a_head_no_number_token_is_written():
    made, tokenizer, options = setting("xval")
    silent = NumberModel(made.backbone, made.embedding).eval()
    found = generate(silent, tokenizer, PROMPTS, details=True, suppress_tokens=[5], **options)
    assert not any(one in [*number_ids(tokenizer), 5] for ids in found.ids for one in ids)
    assert found.values == [[]] * 4


@pytest.mark.parametrize(
    ("representation", "seen_in_question", "options"),
    [
        (PlaceValue(), {-1, *range(8)}, {}),
        (PlaceValue(order="lsd"), {-1, *range(8)}, {}),
        (Digits(places=True), {-1, 0, 1, 4, 7}, {}),
        (PlaceValue(order="lsd"), {*range(8)}, {"read_as_written": True}),
    ],
    ids=["msd", "lsd", "threes", "lsd, read as written"],
)
def test_training_and_writing_show_the_same_places(representation, seen_in_question, options):
    """The layer that embedding_from_schema makes, in training on an answer, and while that answer
    is written.
    """
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), [representation])
    question, answer = "add 4,170,417 and 20.5:", " 437.5525 or -12,600 or 0.0712"
    encoded = tokenizer.encode_batch([question + answer])
    layer = embedding_from_schema(encoded.schema, tiny.D, **options)
    made = model_for(tokenizer, layer)
    seen = []
    layer.register_forward_pre_hook(lambda layer, given: seen.append(layer.find(*given)[1]))
    collate = NumberCollator.from_schema(encoded.schema, 0, objective="causal")
    batch = collate(list(NumberDataset(encoded)))
    width = len(tokenizer.encode(question).input_ids)
    batch["labels"][:, :width] = -100
    made.train()(**batch)["loss"].backward()
    (trained_on,) = seen
    assert set(trained_on[0, :width].tolist()) == seen_in_question
    assert (trained_on[0, width:] != 0).sum() >= 4
    script = scripted(tokenizer, question, batch["input_ids"][0, width:].tolist())
    for use_cache in (True, False):
        seen.clear()
        found = generate(made, tokenizer, [question], use_cache=use_cache, **script)
        shown = torch.cat(seen, 1) if use_cache else seen[-1]
        assert found == [answer]
        assert torch.equal(shown, trained_on[:, :-1])  # the last token is not read again


def test_places_that_are_written_in_another_order_than_read_are_told():
    made, tokenizer, _ = setting("place lsd")
    true = NumberModel(made.backbone, embedding_from_config({"name": "place"}, tiny.D))
    with pytest.warns(UserWarning, match="train with written='lsd'"):
        generate(true, tokenizer, ["a 417"], max_new_tokens=1)


def test_the_tokenizer_of_another_model_is_refused(tmp_path):
    """One with other edges of bins has the same tokens, and its numbers mean others."""
    near, far = (
        Tokenizer.from_pretrained(trained.source("gpt2"), [QuantileBins(4, edges=edges)])
        for edges in ((0.0, 1.0, 2.0, 3.0, 4.0), (0.0, 10.0, 20.0, 30.0, 40.0))
    )
    made = model_for(near, None, head_from_schema(near.batch_schema(), tiny.D))
    made.save_pretrained(tmp_path)
    for one in (made, NumberModel.from_pretrained(tmp_path)):
        assert len(generate(one, near, ["it is 1.5"], max_new_tokens=2)) == 1
        with pytest.raises(ModelError, match="made for another tokenizer"):
            generate(one, far, ["it is 1.5"])
    with pytest.raises(ModelError, match="made for the data of another tokenizer"):
        NumberModel(made.backbone, None, made.head, tokenizer=far)
    made.tokenizer_identity = None  # it is meant
    assert len(generate(made, far, ["it is 1.5"], max_new_tokens=2)) == 1


@pytest.mark.parametrize("name", ["place", "place lsd"])
def test_places_follow_their_beam(name):
    """Each row is shown with the places that a tracker of its own gives, however beams take each
    other's place.
    """
    made, tokenizer, _ = setting(name)
    seen = []

    def watched(_, given):
        seen.append((given[1]["input_ids"], given[1]["place_value"]))

    made.embedding.register_forward_pre_hook(watched)
    width = len(tokenizer.encode("it is").input_ids)
    symbols = [tokenizer.tokens[c] for c in "0123456789."]

    def allowed(_, ids):
        return [tokenizer.tokens["[NUM]"]] if len(ids) == width else symbols

    options = {"num_beams": 6, "max_new_tokens": 12, "use_cache": False}
    generate(made, tokenizer, ["it is", "a"], prefix_allowed_tokens_fn=allowed, **options)
    moved = digits = 0
    for (before, _), (ids, places) in itertools.pairwise(seen):
        tracker = PlaceTracker(tokenizer.tokens, tokenizer.representations[0].order)
        expected = np.stack([tracker.step(column) for column in ids[:, width:].numpy().T], 1)
        assert places[:, width:].tolist() == expected.tolist()
        moved += int((ids[:, :-1] != before).any())
        digits += int((expected != 0).sum())
    assert moved >= 3 and digits >= 50


@pytest.mark.parametrize(
    ("numbers", "grammar", "text", "values"),
    [
        ("p10", None, "-60.2 or 0.5", [-60.2, 0.5]),
        ("place", Grammar(grouping="_"), "1_234.5 and 7e3", [1234.5, 7000.0]),
        ("place", Grammar.european(), "1.234,5 and 7e3", [1234.5, 7000.0]),
    ],
)
def test_values_of_spelled_out_numbers_are_those_that_the_grammar_reads(
    numbers, grammar, text, values
):
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), numbers, grammar)
    made = model_for(tokenizer)
    ids = tokenizer.encode(text).input_ids.tolist()
    found = generate(made, tokenizer, ["It"], details=True, **scripted(tokenizer, "It", ids))
    assert (found.ids, found.values, found.texts) == ([ids], [values], [text])


@pytest.mark.parametrize("numbers", ["subword", "digits:1,bare"])
def test_texts_that_are_one_number_of_a_format(numbers):
    tokenizer = Tokenizer.from_pretrained(trained.source("gpt2"), numbers=numbers)
    made = model_for(tokenizer)
    number_format, prompts = NumberFormat(-50, 999, step="0.25"), PROMPTS[:2]
    torch.manual_seed(1)
    for options in ({}, {"num_beams": 3}, {"do_sample": True, "num_return_sequences": 20}):
        texts = generate(made, tokenizer, prompts, format=number_format, **options)
        assert all(number_format.matches(text.removeprefix(" ")) for text in texts), texts
    assert len(set(texts)) > 10
    free = generate(made, tokenizer, prompts)
    assert not any(number_format.matches(text.removeprefix(" ")) for text in free)


@pytest.mark.parametrize("name", ["xval", "p10", "mixture"])
def test_estimates_are_of_the_texts_of_their_prompt(name):
    """Draw the values, where the head can."""
    torch.manual_seed(5)
    made, tokenizer, options = setting(name)
    options |= {"samples": 9, "coverage": 0.5}
    if name == "mixture":  # the same tokens each time
        options["top_k"] = 1
    found = generate(made, tokenizer, PROMPTS[:2], **options)
    assert len(found.texts) == 9 * 2 and len(found.estimates) == 2
    for prompt, estimate in enumerate(found.estimates):
        values = found.values[9 * prompt : 9 * prompt + 9]
        firsts = [one[0] for one in values if one and not np.isnan(one[0])]
        assert estimate.samples == firsts
        assert name != "mixture" or len(set(firsts)) == 9
        assert estimate.value == pytest.approx(np.median(firsts))
        assert estimate.interval == pytest.approx(tuple(np.quantile(firsts, [0.25, 0.75])))


def test_what_is_no_number_does_not_count():
    assert Estimate.of([[1.0, 9.0], [], [np.nan], [3.0]], "mean", 0.9).samples == [1.0, 3.0]
    assert Estimate.of([[1.0], [3.0], [8.0]], "mean", 0.9).value == 4.0
    assert Estimate.of([[2.0]], "median", 0.9) == Estimate(2.0, (2.0, 2.0), [2.0])
    nothing = Estimate.of([[], [np.nan]], "median", 0.9)
    assert np.isnan([nothing.value, *nothing.interval]).all() and not nothing.samples


@pytest.mark.parametrize("kind", ["bert", "metaspace_first", "t5"])
def test_other_tokenizers(kind):
    """Those whose decoders put spaces: the continuation is what it adds to the prompt."""
    tokenizer = Tokenizer.from_pretrained(trained.source(kind), [XVal()])
    made = model_for(tokenizer, tiny.embedding("xval"), tiny.head("scalar"))
    sequence = [*tokenizer.encode("the nation").input_ids.tolist(), number_ids(tokenizer)[0]]
    script = scripted(tokenizer, "these 5", sequence)
    found = generate(made, tokenizer, ["these 5"], details=True, full_text=True, **script)
    assert found.ids == [sequence]
    ids = [*tokenizer.encode("these 5").input_ids.tolist(), *sequence]
    expected = tokenizer.decode(ids, ["5", str(found.values[0][0])])
    assert found.texts[0].split() == expected.split()


def test_special_tokens_in_front():
    """Only in front: what ends a text would end the prompt."""
    tokenizer = Tokenizer.from_pretrained(trained.source("bert"), [XVal()])
    framed = read_prompts(tokenizer, ["these 5", "a"], 0, 0, True, torch.device("cpu"))
    bare = read_prompts(tokenizer, ["these 5", "a"], 0, 0, False, torch.device("cpu"))
    assert framed["input_ids"].shape[1] == bare["input_ids"].shape[1] + 1
    for row in range(2):
        ids = framed["input_ids"][row][framed["attention_mask"][row] > 0].tolist()
        assert ids[1:] == bare["input_ids"][row][bare["attention_mask"][row] > 0].tolist()


def test_the_model_is_left_as_it_was():
    made, tokenizer, options = setting("xval")
    before = generate(made, tokenizer, PROMPTS, **options)
    made.train()
    assert generate(made, tokenizer, PROMPTS, **options) == before  # without dropout
    assert made.training and made.backbone.training
    assert type(made.backbone) is transformers.GPT2LMHeadModel
    assert generate(made, tokenizer, [], **options) == []


def test_threads():
    """Several at once on one model."""
    made, tokenizer, options = setting("fone")
    prompts = PROMPTS * 3
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: generate(made, tokenizer, [one], **options), prompts))
    assert found == [generate(made, tokenizer, [prompt], **options) for prompt in PROMPTS] * 3


def test_the_table_of_positions_ends():
    tok = Tokenizer.from_pretrained()
    model = model_for(tok, XValEmbedding(tiny.D), ScalarHead(tiny.D), n_positions=8)
    for count, new in ((6, 3), (8, 1)):  # eight positions, and the last token has none
        written = generate(model, tok, [" a" * count], max_new_tokens=50, details=True)
        assert [len(ids) for ids in written.ids] == [new]
