"""The commands that make several stages, or several experiments, at the same time."""

from typing import Annotated

import typer

from pipeline.cli.base import app, names_in, read_params

WORKERS = 2


def keys(incomplete: str) -> list[str]:
    """Return what completes a key of params.yaml, up to its equals sign."""
    from pipeline.config import PARAMS_FILE
    from pipeline.errors import UserError
    from pipeline.farming.grid import known_keys

    try:
        return [f"{key}=" for key in known_keys(PARAMS_FILE) if key.startswith(incomplete)]
    except UserError:
        return []


@app.command()
def repro(
    workers: Annotated[
        int, typer.Option(min=1, max=64, envvar="PIPELINE_WORKERS", help="Stages at the same time, at most.")
    ] = WORKERS,
) -> None:
    """Bring everything up to date, as `make repro` does: what is stale, MLflow's view, the report.

    Checks params.yaml, removes what its rows no longer have, makes what is stale as `farm` does, adds to MLflow what it
    misses, and writes the report.

    Example: python -m pipeline repro
    """
    from pipeline.execution.relay import elsewhere

    params = read_params(alone=workers == 1 or elsewhere())
    from pipeline.stages.everything import run

    run(params, workers)


@app.command()
def farm(
    workers: Annotated[
        int,
        typer.Option(min=1, max=64, envvar="PIPELINE_WORKERS", help="Stages, or points, at the same time, at most."),
    ] = WORKERS,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE,VALUE",
            help="A key of params.yaml and its values; repeatable: then each with each.",
            autocompletion=keys,
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="FIRST..LAST", help="Training seeds of each setting, as 1..5 or 1,2,7.")
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            help="Whose training takes the seeds; repeatable. Else those whose rows --set changes.",
            autocompletion=names_in("agents"),
        ),
    ] = None,
) -> None:
    """Run what is stale as `dvc repro` does, to the same bytes, several stages at the same time.

    With --set or --seeds: a grid of experiments, as `dvc exp run` would leave them, several at a time, and at the end
    where each stands against the best heuristic. Run again, it makes the points that are missing.

    Example: python -m pipeline farm --workers 2

    Example: python -m pipeline farm --set recipes.ours.learning_rate=0.001,0.003 --seeds 1..5 --agent deeprm
    """
    from pipeline.execution.relay import elsewhere

    params = read_params(alone=workers == 1 or elsewhere())  # or each stage would say what is wrong with them
    if settings or seeds is not None:
        from pipeline.stages import sweep

        sweep.run(params, settings or [], seeds, agent or [], workers)
        return
    if agent:
        raise typer.BadParameter("it says whose seeds are set: --seeds is missing", param_hint="--agent")
    from pipeline.stages.farm import run

    run(params, workers)
