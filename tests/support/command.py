"""The command line, in this process or in one of its own."""

import shlex
import subprocess
import sys

from click.testing import CliRunner
from numtok_cli.main import cli

NUMTOK = [sys.executable, "-m", "numtok_cli.main"]


def run(words, *more, **options):
    """What click's runner tells of a command: words of a shell, and more that are taken as they are."""
    return CliRunner().invoke(cli, [*shlex.split(words), *map(str, more)], **options)


def ok(words, *more, **options):
    """The standard output of a command that succeeds."""
    told = run(words, *more, **options)
    assert told.exit_code == 0, told.output
    return told.stdout


def refused(words, *more, **options):
    """The standard error of a command that fails, and is no bug."""
    told = run(words, *more, **options)
    assert told.exit_code in (1, 2) and "bug in numtok" not in told.stderr, told.output
    return told.stderr


def process(words, **options):
    command = [*NUMTOK, *shlex.split(words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
