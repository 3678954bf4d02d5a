"""Commands that make several stages, or several experiments, at the same time."""

from typing import Annotated

import typer
from typer import Option

from pipeline.cli.base import AsJson, answer, app, completed, names_in, read_params
from pipeline.errors import UserError

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
        from pipeline.stages import sweep

        found, error = sweep.run(params, settings or [], seeds, agent or [], workers)
        answer((), found, as_json)
        if error:
            raise UserError(error)
        return
    if agent:
        raise typer.BadParameter("it names the agents of --seeds, which is missing", param_hint="--agent")
    from pipeline.stages.farm import run

    answer((), {"stages": run(params, workers) or {}}, as_json)
