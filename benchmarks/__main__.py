"""`make bench`: measure, print a table, write reports/bench.json.

Exit code: 0, whether targets hold or not; 1 if a target is missed, with --strict; 2 for a user error.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.names import NAMES
from pipeline.cli.base import read_params
from pipeline.errors import UserError

REPORT = Path("reports/bench.json")
LEAST_RUNS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments name; return the exit code."""
    asked = parser().parse_args(arguments)
    try:
        if asked.runs < 1:
            raise UserError(f"--runs: expected at least 1, got {asked.runs}")
        if not asked.slower > 0:
            raise UserError(f"--slower: expected more than 0, got {asked.slower:g}")
        threads = read_params().threads  # sets the threads of numba and torch, which are not imported before
        from benchmarks.running import run

        return run(asked.only or NAMES, asked.runs, threads, asked.out, asked.strict, asked.quick, asked.slower)
    except UserError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; no file was written\n")
        return 130


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    line = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure how fast the engine is, against baselines measured in the same run.",
    )
    line.add_argument(
        "--only", nargs="+", choices=NAMES, metavar="NAME", help=f"measure only these: {', '.join(NAMES)}"
    )
    line.add_argument("--runs", type=int, default=LEAST_RUNS, help="runs of each figure (default: %(default)s)")
    line.add_argument("--out", type=Path, default=REPORT, help="file to write the figures to (default: %(default)s)")
    line.add_argument("--strict", action="store_true", help="exit with code 1 if a target is missed")
    line.add_argument(
        "--slower", type=float, default=1.0, metavar="TIMES", help="multiply our times by this factor (default: 1)"
    )
    line.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)  # minimal sizes, to test the benchmark
    return line


if __name__ == "__main__":
    raise SystemExit(main())
