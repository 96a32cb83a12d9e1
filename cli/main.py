"""The ``numtok`` command.

Only click is imported until a command runs, so that ``--help`` is instant.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Any

import click

from .console import discard, flush_or_discard, print_error, print_warning, shown
from .convert import decode, export
from .encode import encode, finish, status
from .inspect import inspect
from .playground import playground
from .prepare import train, warm_up
from .score import score
from .stats import stats

FAILURES_TOLD = 20
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
EXAMPLES = """\b
Examples:
  numtok inspect "Water boils at 99.61 °C under 1,000 hPa"
  numtok encode --help
"""


class _Group(click.Group):
    """Turns every failure into one line on stderr and an exit code, unless ``--debug``."""

    def main(self, *args: Any, **more: Any) -> Any:
        try:
            return super().main(*args, **more)
        except OSError as error:
            if not _is_of_stdout(error):
                raise
            discard(1)
            print_error(
                f"cannot write to standard output: {error.strerror}; send it elsewhere, or print"
                " nothing with --quiet (what was to be written to files is complete)"
            )
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        import warnings

        said = set()

        def say_once(message: Warning | str, *_: Any, **__: Any) -> None:
            if str(message) not in said:
                said.add(str(message))
                print_warning(str(message))

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default", UserWarning)  # they are for who runs the command
                warnings.showwarning = say_once
                return super().invoke(ctx)
        except click.UsageError as error:
            error.message = shown(error.message)  # type: ignore[misc]  # it quotes arguments, which may be names of files
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:  # whoever reads, such as head, has seen enough
            discard(1)
            ctx.exit(0)
        except KeyboardInterrupt:
            print_error("interrupted; nothing half-written is left")
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if ctx.meta.get("numtok.debug") or _is_of_stdout(error):
                raise
            for message in (*_other_failures(error), _told(error)):
                print_error(message)
            flush_or_discard()
            ctx.exit(1)


def _is_of_stdout(error: Exception) -> bool:
    """Whether the system said it of a print; of files it is an error of numtok's own, or of Arrow."""
    plain = type(error) is OSError and error.filename is None and error.errno is not None
    return plain and error.strerror == os.strerror(error.errno)  # type: ignore[attr-defined]


def _told(error: Exception) -> str:
    """Return the message for people."""
    from numtok import NumtokError

    if isinstance(error, NumtokError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory; use fewer --workers"
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return (
        f"this is a bug in numtok: {type(error).__name__}: {error}{notes}; run again with --debug"
        " and report what it prints"
    )


def _other_failures(error: Exception) -> list[str]:
    """Return the errors of the job's failed shards, without the first, which is reported in full."""
    failures: dict[int, str] = getattr(error, "failures", {})
    return [f"shard {shard}: {failures[shard]}" for shard in sorted(failures)[1:FAILURES_TOLD]]


@click.group(
    cls=_Group,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="numtok", prog_name="numtok", message="%(prog)s %(version)s")
def cli() -> None:
    """Exact numbers for language models.

    numtok finds every number in a text, writes it as tokens and Arrow columns in the representation
    that you choose, and gives the text back.
    """


for _command in (
    encode, finish, status, decode, export, inspect, playground, score, stats, train, warm_up,
):  # fmt: skip
    cli.add_command(_command)


def open_streams() -> None:
    """Open the standard streams that are closed, so that a file opened later does not become one of
    them. A closed stream is opened in the wrong direction: reading from it, or writing to it, stays
    an error.
    """
    wrong = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_RDONLY}
    for descriptor, name in enumerate(wrong):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, wrong[name])  # takes the lowest free number, which is this one
            setattr(sys, name, open(descriptor, "w" if descriptor else "r", closefd=False))  # noqa: SIM115


def replace_unprintable() -> None:
    """Let standard output print ``?`` for a character that its encoding lacks. On Windows, pipes and
    files get cp1252 or the like, which has no ``█``.
    """
    if getattr(sys.stdout, "errors", None) == "strict":
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # what has errors is a TextIOWrapper


# Windows knows no hangup
ENDING = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))


def _end(number: int, _: Any) -> None:
    """Clean up, as a signal's default action does not, and as a second signal would keep it from."""
    for sent in ENDING:
        signal.signal(sent, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def main() -> None:
    """Run the console script."""
    open_streams()
    replace_unprintable()
    for sent in ENDING:
        with contextlib.suppress(ValueError):  # not in the main thread
            if signal.getsignal(sent) is not signal.SIG_IGN:  # as under nohup
                signal.signal(sent, _end)
    cli(prog_name="numtok")


if __name__ == "__main__":
    main()
