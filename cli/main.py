"""The ``numtok`` command.

Only click is imported until a command runs, so that ``--help`` is instant.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import Any

import click

from .console import print_error, print_warning
from .decode import decode
from .encode import encode
from .export import export
from .inspect import inspect
from .jobs import finish, status
from .options import in_options
from .stats import stats
from .streams import discard_output, open_streams, shown
from .train import train
from .warm_up import warm_up

FAILURES_TOLD = 20
INTERRUPTED = 130  # 128 + SIGINT, as shells have it


class _Group(click.Group):
    """Turns every failure into one line on stderr and an exit code; ``--debug`` lets tracebacks
    through.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _warnings_on_one_line():
                return super().invoke(ctx)
        except click.UsageError as error:
            error.message = shown(error.message)  # type: ignore[misc]  # it quotes arguments, which may be names of files
            raise
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:  # whoever reads, such as head, has seen enough
            discard_output()
            ctx.exit(0)
        except KeyboardInterrupt:
            signal.signal(
                signal.SIGINT, signal.SIG_IGN
            )  # a second one would only spoil the tidy end
            print_error("interrupted; nothing half-written is left")
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if ctx.meta.get("numtok.debug"):
                raise
            command = self.commands.get(ctx.invoked_subcommand or "")
            params = command.params if command else []
            for message in (*_other_failures(error), _told(error)):
                print_error(in_options(message, params))
            ctx.exit(1)


def _told(error: Exception) -> str:
    """The message for people."""
    from numtok import NumtokError

    if isinstance(error, NumtokError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory; use fewer workers=..."
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return (
        f"this is a bug in numtok: {type(error).__name__}: {error}{notes}; run again with --debug"
        " and report what it prints"
    )


def _other_failures(error: Exception) -> list[str]:
    """Of a job, what is wrong with shards other than the first that failed, which the message
    itself tells.
    """
    failures: dict[int, str] = getattr(error, "failures", {})
    return [f"shard {shard}: {failures[shard]}" for shard in sorted(failures)[1:FAILURES_TOLD]]


@contextlib.contextmanager
def _warnings_on_one_line() -> Iterator[None]:
    import warnings

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: print_warning(str(message))
        yield


def _version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        click.echo(f"numtok {version('numtok')}")
        ctx.exit()


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Exact numbers for language models.

    numtok finds every number in text, writes it as tokens and Arrow tensors in the representation
    you choose, and gives the text back.
    """


for _command in (encode, finish, status, decode, export, inspect, stats, train, warm_up):
    cli.add_command(_command)


def main() -> None:
    """The console script."""
    open_streams()
    for sent in (signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(ValueError):  # not in the main thread
            if signal.getsignal(sent) is not signal.SIG_IGN:  # as under nohup
                signal.signal(
                    sent, lambda number, _: sys.exit(128 + number)
                )  # an exit cleans up, a signal's default action does not
    cli(prog_name="numtok")


if __name__ == "__main__":
    main()
