"""Commands that compare policies with published results, and the simulator with a real Slurm."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from pipeline.cli.base import AsJson, answer, app, group, policies
from pipeline.errors import UserError

benchmarks = group("benchmark", "Run policies under a published protocol.")


@benchmarks.command()
def rlscheduler(
    out: Annotated[Path, Option(help="Table to write (.csv): a row for each sequence and policy.")],
    log: Annotated[Path | None, Argument(help="Log in the Standard Workload Format (.swf, .swf.gz).")] = None,
    slice: Annotated[int, Option(min=0, help="Use only the first N job lines of the log; 0: all.")] = 0,
    backfill: Annotated[bool, Option(help="Start other jobs while a job waits for room.")] = False,
    policy: Annotated[
        list[str] | None, Option(help="A heuristic or a model directory; repeatable.", autocompletion=policies)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run policies on RLScheduler's ten sequences of 1,024 jobs (Zhang et al., SC 2020).

    Example: python -m pipeline benchmark rlscheduler lublin_256.swf.gz --backfill --out lublin.csv
    """
    from pipeline.problems import protocol

    if log is None:
        raise UserError("LOG: expected a log in the Standard Workload Format, got none")
    means = protocol("rlscheduler")(log, slice, backfill, policy or [], out)
    lines = (
        f"{row.policy:>12} mean bounded slowdown {row.avg_bounded_slowdown:10.2f}, "
        f"p99 wait {row.p99_wait_s:,.0f} s, longest {row.longest_wait_s:,.0f} s"
        for row in means.itertuples(index=False)
    )
    answer(lines, means, as_json)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def fidelity(context: typer.Context) -> None:
    """Run short jobs on a real Slurm on loopback and in the simulator, and report the differences (in a clone).

    'python -m benchmarks.fidelity --help' explains its options.

    Example: python -m pipeline fidelity --repeats 5 --out fidelity.csv
    """
    try:
        command = import_module("benchmarks.fidelity.__main__")
    except ModuleNotFoundError as error:
        raise UserError(f"fidelity: expected the root of a clone as the working directory ({error})") from error
    command.app(args=context.args, standalone_mode=False)
