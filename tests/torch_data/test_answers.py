"""Rows in which answers alone have a loss."""

import json
import pickle

import numpy as np
import pytest
from torch_rows import tokenizer

import numtok
from numtok.errors import SchemaError
from numtok.representations import XVal, parse

torch = pytest.importorskip("torch")
from torch.utils.data import DataLoader

from numtok_torch import NumberCollator, NumberDataset, answers_only

ROWS = [
    "3 + 4 =\nAnswer: 7\n",
    "Answer: was 12.5 m\nAnswer: 12.5 m\n",
    "How many? Answer: none\n",
    "Answer: -1e3\n",
]


@pytest.mark.parametrize("numbers", ["xval", "p1000", "place:lsd", "subword"])
def test_the_answer_behind_the_last_mark_is_what_has_labels(numbers):
    made = tokenizer(*parse(numbers))
    data = NumberDataset(made.encode_batch(ROWS), tokenizer=made)
    for row, text in zip(answers_only(data, made, "Answer:"), ROWS, strict=True):
        before = made.encode(text[: text.rindex("Answer:") + len("Answer:")]).input_ids
        expected = row["input_ids"].copy()
        expected[: len(before)] = -100
        np.testing.assert_array_equal(row["labels"], expected)


@pytest.mark.parametrize("numbers", ["xval", "digits:1,bare", "place:lsd"])
def test_its_last_token_elsewhere_is_no_end_of_a_question(numbers):
    made = tokenizer(*parse(numbers))
    rows = ["At: noon\nAnswer: 12:30, or: 7:1", "Note: 5\n\tAnswer: é: ☃", "Answer:1:2"]
    data = NumberDataset(made.encode_batch(rows), tokenizer=made)
    for after in ("Answer:", "What: 3 or 4?\nAnswer:"):
        for row, text in zip(answers_only(data, made, after), rows, strict=True):
            behind = text[text.index("Answer:") + len("Answer:") :]
            assert learnt(row, made) == [made.decode(made.encode(behind).input_ids)]
    nothing = NumberDataset(made.encode_batch(["Note: no answer"]), tokenizer=made)
    with pytest.raises(SchemaError, match="row 0 has no text 'Answer:'"):
        answers_only(nothing, made, "Answer:")[0]


@pytest.mark.parametrize("after", ["=\n\n", "A:\n\n\n", "=  \n\n\n", "A:     \n\n"])
def test_white_space_behind_the_question_belongs_to_it(after):
    made = tokenizer(XVal())
    data = NumberDataset(made.encode_batch([f"Q: what? {after}yes it is"]), tokenizer=made)
    assert learnt(answers_only(data, made, after)[0], made) == ["yes it is"]


def test_a_batch_has_them_and_what_a_data_set_says_is_kept():
    made = tokenizer(XVal())
    data = NumberDataset(made.encode_batch(ROWS), tokenizer=made)
    rows = answers_only(data, made, "Answer:")
    assert rows.schema is data.schema and len(rows) == 4
    assert len(pickle.loads(pickle.dumps(answers_only([dict(data[0])], made, "=")))) == 1
    collator = NumberCollator.from_schema(rows.schema, pad_token_id=0, objective="causal")
    (batch,) = DataLoader(rows, 4, collate_fn=collator)
    learnt = [row[row != -100].tolist() for row in batch["labels"]]
    answers = [" 7\n", " 12.5 m\n", " none\n", " -1e3\n"]
    assert learnt == [made.encode(answer).input_ids.tolist() for answer in answers]


def learnt(row, made):
    """Return the text of the labels, question by question."""
    labels = np.asarray(row["labels"])
    parts = np.split(labels, np.flatnonzero(np.diff(labels == -100)) + 1)
    return [made.decode(part) for part in parts if part[0] != -100]


@pytest.mark.parametrize("numbers", ["xval", "place:lsd"])
def test_each_document_of_a_row_has_its_answer(numbers, tmp_path):
    made, source, packed = tokenizer(*parse(numbers)), tmp_path / "a.jsonl", tmp_path / "a.parquet"
    texts = [f"{k} + {k} =\nAnswer: yes, {'so ' * (k % 3)}it is" for k in range(12)]
    answers = [text[text.index(": ") + 1 :] for text in texts]
    joined = NumberDataset(made.encode_batch(texts), tokenizer=made, block_size=10_000)
    assert learnt(answers_only(joined, made, "Answer:")[0], made) == answers

    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    numtok.encode_files(source, packed, numbers=numbers, pack=10_000, end_token="<|endoftext|>")
    (row,) = answers_only(NumberDataset(packed), made, "Answer:")
    assert learnt(row, made) == [f"{answer}<|endoftext|>" for answer in answers]


def test_a_part_of_a_document_without_its_mark_has_no_labels():
    made = tokenizer(XVal())
    texts = ["Answer: one two three four five six seven eight", "Answer: a"]
    data = NumberDataset(made.encode_batch(texts), tokenizer=made, block_size=8)
    rows = answers_only(data, made, "Answer:")
    begun, cut, rest = (rows[number] for number in range(3))
    assert [len(learnt(row, made)) for row in (begun, cut, rest)] == [1, 0, 0]
    assert np.flatnonzero(cut["position_ids"] == 0).tolist() == [0, 4]  # the second: "Answer: "
