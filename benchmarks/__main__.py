"""``python -m benchmarks``: check results, time numtok beside its peers, print a table.

Ends with code 1 if a result is wrong, else with 2 if a floor does not hold; with ``--quick``, whose
figures mean nothing, floors are only shown.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.corpus import Corpus
    from benchmarks.timing import Section

NAMES = (
    "scan",
    "encode",
    "awareness",
    "fallback",
    "representations",
    "drop_in",
    "drop_in_kinds",
    "datasets_map",
    "start_up",
    "command_line",
    "jobs",
    "whole_jobs",
    "torch_layers",
    "torch_tokens",
    "torch_feeding",
    "random_rows",
    "next",
)


def sections() -> dict[str, Callable[[Corpus], Section]]:
    """What there is to run, by name; the peers are imported here, once their number of threads is
    set.
    """
    from benchmarks import (
        awareness,
        command_line,
        drop_in,
        drop_in_kinds,
        encode,
        jobs,
        next_tokenizers,
        random_rows,
        representations,
        scan,
        start_up,
        torch_feeding,
        torch_layers,
        torch_tokens,
        whole_jobs,
    )

    runs = (
        scan.run,
        encode.run,
        awareness.run,
        encode.run_fallback,
        representations.run,
        drop_in.run,
        drop_in_kinds.run,
        drop_in.run_map,
        start_up.run,
        command_line.run,
        jobs.run,
        whole_jobs.run,
        torch_layers.run,
        torch_tokens.run,
        torch_feeding.run,
        random_rows.run,
        next_tokenizers.run,
    )
    return dict(zip(NAMES, runs, strict=True))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, and return the exit code."""
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
    parser.add_argument("--only", action="append", choices=NAMES, help="run only this; repeatable")
    parser.add_argument("--memory", action="store_true", help="also run the command line on 2 GB")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write everything to this file"
    )
    options = parser.parse_args(arguments)

    # One thread each, before the libraries that read these are loaded.
    os.environ.update(
        RAYON_NUM_THREADS="1",
        TOKENIZERS_PARALLELISM="false",
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
    )
    from benchmarks import corpus, report
    from benchmarks.timing import Section, WrongResult

    loaded = corpus.load(options.corpus, options.tokenizer, options.quick, options.memory)
    found: dict[str, Section] = {}
    for name, run in sections().items():
        if options.only and name not in options.only:
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            found[name] = run(loaded)
        except WrongResult as error:
            found[name] = Section(name, error=str(error))
    print(report.as_text(loaded, found, options.markdown))
    if options.json:
        options.json.write_text(json.dumps(report.as_dict(loaded, found), indent=2) + "\n", "utf-8")
    if any(section.error for section in found.values()):
        return 1
    return (
        2
        if not options.quick
        and any(not goal.floor_holds for section in found.values() for goal in section.goals)
        else 0
    )


if __name__ == "__main__":
    sys.exit(main())
