"""``python -m benchmarks``: check results, time numtok beside its peers, print a table.

Ends with code 1 if a result is wrong, else with 2 if a floor does not hold. The figures of
``--quick`` mean nothing, so its floors are only shown.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.corpus import Corpus
    from benchmarks.timing import Section

NAMES = (
    "scan",
    "encode",
    "awareness",
    "drop_in_kinds",
    "start_up",
    "command_line",
    "jobs",
    "whole_jobs",
    "torch_feeding",
    "random_rows",
    "next",
)


def sections() -> dict[str, Callable[[Corpus], Section]]:
    """Return the benchmarks by name. They import the peers, whose number of threads must be set
    before.
    """
    modules = {"next": "next_tokenizers"}
    return {name: import_module(f"benchmarks.{modules.get(name, name)}").run for name in NAMES}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks, print their tables, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        help="a JSON lines file with the field text; default: the shared one, else the sample",
    )
    parser.add_argument(
        "--tokenizer",
        type=Path,
        help="a tokenizer.json; default: the shared GPT-NeoX one, else numtok's own",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a little text and few turns, to see that everything runs",
    )
    parser.add_argument(
        "--only", action="append", choices=NAMES, help="run this benchmark alone; repeatable"
    )
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write everything to this file"
    )
    options = parser.parse_args(arguments)

    # one thread each; libraries read these when they are imported
    os.environ.update(
        RAYON_NUM_THREADS="1",
        TOKENIZERS_PARALLELISM="false",
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
    )
    from benchmarks import corpus, report
    from benchmarks.timing import Section, WrongResult

    loaded = corpus.load(options.corpus, options.tokenizer, options.quick)
    results: dict[str, Section] = {}
    for name, run in sections().items():
        if options.only and name not in options.only:
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            results[name] = run(loaded)
        except WrongResult as error:
            results[name] = Section(name, error=str(error))
    print(report.as_text(loaded, results, options.markdown))
    if options.json:
        options.json.write_text(
            json.dumps(report.as_dict(loaded, results), indent=2) + "\n", "utf-8"
        )
    if any(section.error for section in results.values()):
        return 1
    goals = [goal for section in results.values() for goal in section.goals]
    return 0 if options.quick or all(goal.floor_holds for goal in goals) else 2


if __name__ == "__main__":
    sys.exit(main())
