"""The command that makes several stages at the same time."""

from typing import Annotated

import typer

from pipeline.cli.base import app, read_params

WORKERS = 2


@app.command()
def farm(
    workers: Annotated[
        int, typer.Option(min=1, max=64, envvar="PIPELINE_WORKERS", help="Stages at the same time, at most.")
    ] = WORKERS,
) -> None:
    """Run what is stale as `dvc repro` does, to the same bytes, several stages at the same time.

    Example: python -m pipeline farm --workers 2
    """
    read_params()  # or each stage would say what is wrong with them
    from pipeline.stages.farm import run

    run(workers)
