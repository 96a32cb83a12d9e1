"""``python -m benchmarks.evidence``: make the missing runs, and write docs/evidence.md and
docs/evidence/.

Each run is stored as one JSON file. An interrupted command goes on with the run that it stopped in.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# the models are too small to profit from more threads: --jobs uses further cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

EPILOG = """examples:
  python -m benchmarks.evidence                           # list the experiments, and how many runs are done
  python -m benchmarks.evidence fone_arithmetic           # make its missing runs
  python -m benchmarks.evidence all --jobs 2              # make all missing runs, two at once
  python -m benchmarks.evidence fone_arithmetic --match addition-fone
  python -m benchmarks.evidence mixture --into again      # repeat all runs, and store them beside the present results
  python -m benchmarks.evidence report                    # write the pages"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the missing runs, write the pages, and return the exit code."""
    from benchmarks.evidence import report
    from benchmarks.evidence.experiments import EXPERIMENTS
    from benchmarks.evidence.running import run_missing
    from benchmarks.evidence.store import RESULTS, Store, slug

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.evidence", description=__doc__.splitlines()[0] if __doc__ else None, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "names",
        nargs="*",
        choices=[*EXPERIMENTS, "all", "report", []],
        metavar="NAME",
        help=f"{', '.join(EXPERIMENTS)}; all; report",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--smoke",
        dest="size",
        action="store_const",
        const="smoke",
        default="small",
        help="a few steps each, to see that the models learn",
    )
    size.add_argument(
        "--full",
        dest="size",
        action="store_const",
        const="full",
        help="the paper's settings; hours, and a GPU",
    )
    parser.add_argument(
        "--match", default="", metavar="TEXT", help="make only runs whose file name contains this"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="runs at once (default: %(default)s)"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="FOLDER",
        help="the folder of the results (default: in the checkout)",
    )
    parser.add_argument(
        "--into",
        type=Path,
        metavar="FOLDER",
        help=(
            "make all runs that FOLDER lacks, and store them there; results that a run depends on are"
            " read from --results"
        ),
    )
    parser.add_argument(
        "--docs",
        type=Path,
        default=report.DOCS,
        metavar="FOLDER",
        help="the folder in which report writes evidence.md and evidence/",
    )
    options = parser.parse_args(arguments)
    store, into = Store(options.results), Store(options.into or options.results)
    if not options.names:
        print(report.overview(EXPERIMENTS.values(), into, options.size))
    names = (
        list(EXPERIMENTS)
        if "all" in options.names
        else [name for name in options.names if name != "report"]
    )
    if names and not any(
        options.match in slug(run)
        for name in names
        for phase in EXPERIMENTS[name].phases(options.size)
        for run in phase
    ):
        parser.error(f"no run of {', '.join(names)} is named so: --match {options.match}")
    failed = sum(
        run_missing(name, options.size, options.match, options.jobs, store, into) for name in names
    )
    if "report" in options.names or "all" in options.names:
        print(*report.write(EXPERIMENTS.values(), into, options.docs), sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
