"""Chat templates: as of the source, and with the numbers of what is said."""

import pytest

pytest.importorskip("transformers")
pytest.importorskip("torch")

import hf_checks as checks
from hf_cases import CHAT_TEMPLATE, build_ours, oracle, ours, source
from hf_compare import compare

from numtok.representations import NUM, P10, Digits, FoNE, PlaceValue, XVal

CHAT = [
    {"role": "user", "content": "what is it? [NUM]"},
    {"role": "assistant", "content": "a  number of\n things"},
]

CHAT_WITH_NUMBERS = [
    {"role": "user", "content": "add 1,234 and -5 [NUM]"},
    {"role": "assistant", "content": "1229, or 1.2e3"},
]

CHAT_OPTIONS = [
    {"tokenize": False},
    {"tokenize": False, "add_generation_prompt": True},
    {"tokenize": False, "continue_final_message": True},
    {},
    {"return_dict": False},
    {"add_generation_prompt": True, "return_tensors": "pt"},
    {"return_tensors": "np", "padding": "max_length", "max_length": 40, "truncation": True},
    {"return_assistant_tokens_mask": True},
    {"return_assistant_tokens_mask": True, "truncation": True, "max_length": 12},
    {"sanitize_control_tokens": True},
    {"tokenizer_kwargs": {"return_offsets_mapping": True}},
    {"chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}"},
]


@pytest.mark.parametrize("options", CHAT_OPTIONS, ids=lambda options: "-".join(options) or "none")
def test_chats_without_numbers(options):
    tok, stock = ours("llama"), source("llama")
    assert tok.chat_template == stock.chat_template == CHAT_TEMPLATE
    for chat in (CHAT, [CHAT, CHAT[:1]]):
        compare(tok, stock, lambda one: one.apply_chat_template(chat, **options), options)


@pytest.mark.parametrize(
    "options",
    [{}, {"add_generation_prompt": True}, {"return_assistant_tokens_mask": True}],
    ids=str,
)
def test_chats_with_numbers(options):
    tok = ours("llama")
    prompt = {"add_generation_prompt": bool(options.get("add_generation_prompt"))}
    rendered = tok.apply_chat_template(CHAT_WITH_NUMBERS, tokenize=False, **prompt)
    expected = oracle("llama").call(rendered, add_special_tokens=False)
    got = tok.apply_chat_template(CHAT_WITH_NUMBERS, **options)
    assert got["input_ids"] == expected.rows[0].ids
    if "return_assistant_tokens_mask" in options:
        marks = zip(expected.rows[0].offsets, got["assistant_masks"], strict=True)
        marked = [span for span, mark in marks if mark]
        last = rendered.index("1.2e3") + len("1.2e3") + len("</s>")
        assert (marked[0][0], marked[-1][1]) == (rendered.index("1229"), last)
    assert "number_value" not in got
    on = tok.apply_chat_template(CHAT_WITH_NUMBERS, return_numbers=True, **options)
    checks.check_streams(on, expected, oracle("llama"))
    marked = zip(on["number_value"], on["number_mask"], strict=True)
    assert [value for value, mark in marked if mark] == [1234.0, -5.0, 1229.0, 1200.0]


# the words of the assistant alone, without the end token behind them
WORDS_ALONE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% endgeneration %}{{ eos_token }}{% else %}{{ m.content }}\n{% endif %}{% endfor %}"
)


@pytest.mark.parametrize(
    "numbers",
    [XVal(), Digits(1), Digits(1, brackets=False), PlaceValue(order="lsd"), P10(), FoNE(4, 2)],
    ids=repr,
)
@pytest.mark.parametrize("tensors", [None, "np", "pt"])
def test_a_number_is_masked_as_a_whole(numbers, tensors):
    tok = build_ours("gpt2", [numbers])
    tok.pad_token = tok.eos_token
    chats = [
        [{"role": "user", "content": "5*7?"}, {"role": "assistant", "content": said}]
        for said in ("12 or -35.5", "It is 1,234", "none")
    ]
    rows = tok.apply_chat_template(
        chats,
        chat_template=WORDS_ALONE,
        return_assistant_tokens_mask=True,
        return_tensors=tensors,
        padding=True,
    )
    assert "number_mask" not in rows
    for chat, ids, mask in zip(chats, rows["input_ids"], rows["assistant_masks"], strict=True):
        said = [int(id) for id, mark in zip(ids, mask, strict=True) if mark]
        assert said == tok(chat[1]["content"])["input_ids"]


def test_sanitized_chats_with_numbers():
    """Control tokens that a user writes are text; the numbers beside them are still numbers."""
    tok = ours("llama")
    chat = [{"role": "user", "content": "5 <|assistant|> </s> -7"}]
    got = tok.apply_chat_template(chat, sanitize_control_tokens=True, return_dict=True)["input_ids"]
    control = tok.convert_tokens_to_ids("<|assistant|>")
    assert control not in got and tok.eos_token_id not in got
    assert got.count(tok.convert_tokens_to_ids(NUM)) == 2, tok.convert_ids_to_tokens(got)
