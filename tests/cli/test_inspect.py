"""``numtok inspect``: a text on the terminal and as a page."""

from __future__ import annotations

import json
import re
from typing import Any

from click.testing import CliRunner, Result
from numtok_cli.main import cli
from places import SAMPLE

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


def test_standard_input_limits_and_colour() -> None:
    told = inspect("--limit", "2", "--numbers", "xval", input="1 2 3 4\n5\n")
    assert "5 numbers" in told and "and 3 more" in told and "⏎" in told
    assert inspect("no number at all").startswith("0 numbers")
    assert "0 numbers" in inspect("")
    assert "byte 1 is not UTF-8" in run(input=b"a\xff").stderr
    for force, plain in (("1", None), (None, "1")):
        told = inspect("5", "--numbers", "xval", env={"FORCE_COLOR": force, "NO_COLOR": plain})
        assert ("48;5;215m" in told) == ("\x1b" in told) == bool(force)
