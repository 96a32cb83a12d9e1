"""``numtok inspect``: a text on the terminal and as a page."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from numtok_cli.main import cli
from pages import page_data
from places import SAMPLE

import numtok
from numtok.representations import REPRESENTATIONS, Column, SingleToken
from numtok.representations.values import numbers_from_floats

TEXTS = [json.loads(line)["text"] for line in SAMPLE.read_text("utf-8").splitlines()]


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(cli, ["inspect", *arguments], **options)


def inspect(*arguments: str, **options: Any) -> str:
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_numbers_tokens_and_columns_are_listed() -> None:
    told = inspect("is 1,234.50 or −7e-3", "--numbers", "xval,bits", "--numbers", "place")
    assert "\x1b" not in told
    assert re.search(r"1,234\.50 +1234\.50 +1234\.5 +3–11\n", told)
    assert re.search(r"−7e-3 +-0\.007 +-0\.007 +15–20\n", told)
    assert "is| [NUM]| or| [NUM]|" in told and "[/NUM]|" in told
    assert "0 10001001 00110100101000000000000" in told


def test_one_representation_with_two_options_is_told_apart() -> None:
    told = inspect("is 1234567", "--numbers", "digits:3,places", "--numbers", "digits:1")
    assert re.search(r"^digits:places  6 tokens, 5.00 per number", told, re.M)
    assert re.search(r"^digits:1  ", told, re.M)
    assert " [NUM]|[NUM:1]|[NUM:234]|[NUM:567]|[/NUM]|" in told
    assert re.search(r"^ +7 +4 +1 *$", told, re.M)
    assert " [NUM]|1|2|3|4|5|6|7|[/NUM]|" in told


def test_standard_input_limits_and_colour() -> None:
    told = inspect("--limit", "2", "--numbers", "xval", input="1 2 3 4\n5\n")
    assert "5 numbers" in told and "and 3 more" in told and "⏎" in told
    assert inspect("no number at all").startswith("0 numbers")
    assert "0 numbers" in inspect("")
    assert "byte 1 is not UTF-8" in run(input=b"a\xff").stderr
    for force, plain in (("1", None), (None, "1")):
        told = inspect("5", "--numbers", "xval", env={"FORCE_COLOR": force, "NO_COLOR": plain})
        assert ("48;5;215m" in told) == ("\x1b" in told) == bool(force)


@dataclass(frozen=True)
class HalfBits(SingleToken):
    """A throw-away representation with bits of its own."""

    name: ClassVar[str] = "half"
    declared: ClassVar[tuple[Column, ...]] = (
        Column("number_half", pa.uint16(), np.int64, bit_fields=(1, 5, 10)),
    )

    def fits(self, numbers: numtok.Numbers) -> Any:
        return np.isfinite(numbers.to_float32().astype(np.float16))

    def encode(self, numbers: numtok.Numbers) -> dict[str, pa.Array]:
        return {"number_half": pa.array(numbers.to_float32().astype(np.float16).view(np.uint16))}

    def decode(self, columns: Any) -> Any:
        return numbers_from_floats(columns["number_half"].to_numpy().view(np.float16), self.name)


def test_bits_are_shown_by_their_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REPRESENTATIONS, HalfBits.name, HalfBits)
    assert re.search(r"-1\.5 +1 01111 1000000000\n", inspect("is -1.5", "--numbers", "half"))
    page = tmp_path / "page.html"
    inspect("is -1.5", "--numbers", "half", "--html", str(page))
    fields = {"text": "1 01111 1000000000", "bits": ["1", "01111", "1000000000"]}
    assert page_data(page)["views"][0]["rows"] == [[0, fields]]
    bits = "1 01111111101 0011001100110011001100110011001100110011001100110100"
    text = "is -0.30000000000000004"
    told = inspect(text, "--numbers", "bits:64", "--numbers", "xval,bits")
    assert re.search(f"-0.30000000000000004 +{bits}\n", told)
    assert "\nbits:64  " in told and "\nxval + bits  " in told, "one is told from the other"
