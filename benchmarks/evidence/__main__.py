"""``python -m benchmarks.evidence``: run what is missing, and write docs/evidence.md and docs/evidence/.

Every run is kept as one JSON file; what is cut off begins again with the run that it was in.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# models so small are hardly faster with more: --jobs takes the cores
os.environ.setdefault("OMP_NUM_THREADS", "1")

EPILOG = """examples:
  python -m benchmarks.evidence                           # what there is, and how much of it is done
  python -m benchmarks.evidence fone_arithmetic           # what is missing of it
  python -m benchmarks.evidence all --jobs 2              # everything that is missing, two runs at once
  python -m benchmarks.evidence fone_arithmetic --match addition-fone
  python -m benchmarks.evidence mixture --into again      # all of it once more, beside the results there are
  python -m benchmarks.evidence report                    # the pages of the results
  python -m benchmarks.evidence tasks --count 100 --levels 1 3 > questions.jsonl"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, report, and return the exit code."""
    from benchmarks.evidence import questions, report
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
        choices=[*EXPERIMENTS, "all", "report", "tasks", []],
        metavar="NAME",
        help=f"{', '.join(EXPERIMENTS)}; all; report; tasks: questions of arithmetic as JSON lines",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--smoke",
        dest="size",
        action="store_const",
        const="smoke",
        default="small",
        help="a few steps each, to see that it learns",
    )
    size.add_argument(
        "--full",
        dest="size",
        action="store_const",
        const="full",
        help="the paper's settings; hours, and a GPU",
    )
    parser.add_argument(
        "--match", default="", metavar="TEXT", help="only runs whose file name holds this"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="runs at once (default: %(default)s)"
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="FOLDER",
        help="where results lie (default: in the checkout)",
    )
    parser.add_argument(
        "--into",
        type=Path,
        metavar="FOLDER",
        help=(
            "keep there what is made, which is all that FOLDER lacks; what a run rests on comes"
            " from --results"
        ),
    )
    parser.add_argument(
        "--docs",
        type=Path,
        default=report.DOCS,
        metavar="FOLDER",
        help="where report writes evidence.md and evidence/",
    )
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="of tasks: questions")
    parser.add_argument(
        "--levels",
        type=int,
        nargs="+",
        default=[1, 2, 3, 5, 8],
        metavar="N",
        help="of tasks: the most significant digits of a number",
    )
    options = parser.parse_args(arguments)
    if options.names == ["tasks"]:
        questions.write(options.count, options.levels, 0, sys.stdout)
        return 0
    store, into = Store(options.results), Store(options.into or options.results)
    if not options.names:
        print(report.overview(EXPERIMENTS.values(), into, options.size))
    names = (
        list(EXPERIMENTS)
        if "all" in options.names
        else [name for name in options.names if name not in ("report", "tasks")]
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
