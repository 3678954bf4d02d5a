"""The command that decides for a live cluster."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.base import app, names_in, policies, read_params


@app.command()
def serve(
    scenario: Annotated[
        str, typer.Option(help="The scenario whose cluster it decides for.", autocompletion=names_in("scenarios"))
    ],
    policy: Annotated[
        str,
        typer.Option(
            help="'champion': that of champions.yaml, and each that follows it; or a heuristic, or a model directory.",
            autocompletion=policies,
        ),
    ] = "champion",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on; beyond loopback it takes a token.")] = "127.0.0.1",
    token_file: Annotated[Path | None, typer.Option(help="A file with the token that callers must show.")] = None,
    limit: Annotated[
        float, typer.Option(min=1, max=60000, help="Milliseconds of a decision, before the fallback decides.")
    ] = 200.0,
) -> None:
    """Decide for a live cluster over HTTP: what waits and runs goes in, an order and who starts where comes out.

    Example: python -m pipeline serve --scenario machines --policy sjf
    """
    params = read_params()
    from pipeline.stages.serve import run

    run(params, scenario, policy, host, port, token_file, limit)
