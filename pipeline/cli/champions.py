"""The commands that move the champion of a scenario, and that watch over it."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.base import ScenarioName, app, names_in, read_params


@app.command()
def promote(
    scenario: Annotated[
        str | None,
        typer.Argument(help="A scenario; without one, all that the gate judged.", autocompletion=names_in("scenarios")),
    ] = None,
) -> None:
    """Make whoever passed the gate the champion of its scenario: moves a line of champions.yaml.

    Example: python -m pipeline promote online
    """
    params = read_params()
    from pipeline.stages.promoting import promote as lines

    for line in lines(params, scenario):
        typer.echo(line)


@app.command()
def rollback(scenario: ScenarioName) -> None:
    """Give a scenario back the champion before: takes back a line of champions.yaml.

    Example: python -m pipeline rollback online
    """
    params = read_params()
    from pipeline.stages.promoting import rollback as line

    typer.echo(line(params, scenario))


@app.command()
def watch(
    log: Annotated[Path, typer.Argument(help="The log of the scenario, grown since its champion was judged on it.")],
    scenario: Annotated[
        str | None,
        typer.Option(
            help="A scenario that is cut from a log, if there are several.", autocompletion=names_in("scenarios")
        ),
    ] = None,
) -> None:
    """Replay a champion beside the best heuristic on the new jobs of a log, and raise an alarm if it does worse.

    Exit code: 0 no alarm, 3 alarm, 4 too few windows to tell; 2, as everywhere, a mistake.

    Example: python -m pipeline watch site.swf.gz --scenario site
    """
    params = read_params()
    from pipeline.stages.watch import run

    code, lines = run(params, log, scenario)
    for line in lines:
        typer.echo(line)
    raise typer.Exit(code)
