"""Commands that make several stages or experiments, or compare with published results and a real Slurm cluster."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from pipeline.cli.base import AsJson, answer, app, completed, group, names_in, policies, read_params
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
    """Run short jobs on a real Slurm cluster on loopback and in the simulator, and report the differences (in a clone).

    'python -m benchmarks.fidelity --help' explains its options.

    Example: python -m pipeline fidelity --repeats 5 --out fidelity.csv
    """
    try:
        command = import_module("benchmarks.fidelity.__main__")
    except ModuleNotFoundError as error:
        raise UserError(f"fidelity: expected the root of a clone as the working directory ({error})") from error
    command.app(args=context.args, standalone_mode=False)


WORKERS = 2


def keys(incomplete: str) -> list[str]:
    """Complete a key of params.yaml, up to its equals sign."""
    from pipeline.core.config import PARAMS_FILE
    from pipeline.farming.grid import known_keys

    return [f"{key}=" for key in completed(lambda: known_keys(PARAMS_FILE), incomplete)]


Workers = Annotated[
    int, Option(min=1, max=64, envvar="PIPELINE_WORKERS", help="Maximum number of stages or points at the same time.")
]


@app.command()
def repro(workers: Workers = WORKERS) -> None:
    """Bring everything up to date, as `make repro` does: stale stages, MLflow's view, the report.

    Checks params.yaml, removes the outputs of rows that are gone, makes stale stages as `farm` does, completes MLflow's
    view, and writes the report.

    Example: python -m pipeline repro
    """
    from pipeline.execution.relay import elsewhere

    params = read_params(exclusive=workers == 1 or elsewhere())
    from pipeline.stages.everything import run

    run(params, workers)


@app.command()
def farm(
    workers: Workers = WORKERS,
    settings: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="KEY=VALUE,VALUE",
            help="A key of params.yaml and its values; repeat for all combinations.",
            autocompletion=keys,
        ),
    ] = None,
    seeds: Annotated[str | None, Option(metavar="FIRST..LAST", help="Training seeds, as 1..5 or 1,2,7.")] = None,
    agent: Annotated[
        list[str] | None,
        Option(
            help="Agents whose training takes the seeds; repeatable (default: those that --set changes).",
            autocompletion=names_in("agents"),
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make stale stages, byte for byte as `dvc repro` does, several at the same time.

    With --set or --seeds: make a grid of experiments, as `dvc exp run` does, several at a time, and compare each point
    with the best heuristic. A second run makes only missing points.

    Example: python -m pipeline farm --workers 2

    Example: python -m pipeline farm --set recipes.ours.learning_rate=0.001,0.003 --seeds 1..5 --agent deeprm
    """
    from pipeline.execution.relay import elsewhere

    params = read_params(exclusive=workers == 1 or elsewhere())  # check here, or each stage would report the mistakes
    if settings or seeds is not None:
        from pipeline.stages.farm import sweep

        found, error = sweep(params, settings or [], seeds, agent or [], workers)
        answer((), found, as_json)
        if error:
            raise UserError(error)
        return
    if agent:
        raise typer.BadParameter("it names the agents of --seeds, which is missing", param_hint="--agent")
    from pipeline.stages.farm import run

    answer((), {"stages": run(params, workers) or {}}, as_json)
