"""Commands that keep results in order: outputs of removed rows, champions, MLflow."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from pipeline.cli.base import AsJson, ScenarioName, answer, app, read_params, scenarios


@app.command()
def prune(as_json: AsJson = False) -> None:
    """Remove outputs of rows that params.yaml no longer has: curves, models, tables, stages of dvc.lock.

    DVC's cache keeps them: if a row returns, dvc repro restores its outputs. Outputs changed by hand stay.

    Example: python -m pipeline prune
    """
    from pipeline.stages.everything import prune as pruned

    answer((), pruned(), as_json)


@app.command()
def promote(
    scenario: Annotated[
        str | None, Argument(help="A scenario (default: all that the gate judged).", autocompletion=scenarios)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the candidate that passed the gate the champion of its scenario, in champions.yaml.

    Example: python -m pipeline promote online
    """
    params = read_params()
    from pipeline.stages.champions import promote as apply

    found = apply(params, scenario)
    data = {name: verdict.model_dump(mode="json") for name, verdict in found.items()}
    answer([f"{name}: {verdict.line}" for name, verdict in found.items()], data, as_json)


@app.command()
def rollback(scenario: ScenarioName, as_json: AsJson = False) -> None:
    """Restore a scenario's previous champion in champions.yaml.

    Example: python -m pipeline rollback online
    """
    params = read_params()
    from pipeline.stages.champions import rollback as restore

    found, line = restore(params, scenario)
    answer([line], found, as_json)


@app.command()
def watch(
    log: Annotated[Path, Argument(help="The scenario's log, with jobs that are newer than the champion's judgement.")],
    scenario: Annotated[
        str | None, Option(help="A scenario cut from a log, if there are several.", autocompletion=scenarios)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a champion with the best heuristic on the new jobs of a log, and raise an alarm if it does worse.

    Exit code: 0 no alarm, 3 alarm, 4 too few windows to tell; 2, as for every command, a mistake.

    Example: python -m pipeline watch site.swf.gz --scenario site
    """
    params = read_params()
    from pipeline.stages.champions import watch as watched

    code, found, lines = watched(params, log, scenario)
    answer(lines, found, as_json)
    raise typer.Exit(code)


@app.command()
def publish(
    rev: Annotated[list[str] | None, Option(help="A commit, tag, branch or experiment; repeatable.")] = None,
    everything: Annotated[bool, Option("--all", help="All experiments, commits with a dvc.lock, workspace.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add to MLflow what is missing there: skipped, restored and spooled stages.

    Example: python -m pipeline publish --all
    """
    from pipeline.tracking.publish import publish as published

    rows = list[dict[str, object]]()
    try:
        for line, row in published(rev or [], everything):
            rows.append(row)
            answer([] if as_json else [line])
    finally:
        if as_json and rows:  # also if some were skipped, which is an error
            answer((), rows, as_json)


@app.command()
def ui(
    port: Annotated[int, Option(min=1, max=65535, help="Port on this machine.")] = 5000,
    browser: Annotated[bool, Option(help="Open the link in a browser.")] = True,
) -> None:
    """Open MLflow on this pipeline's runs.

    Example: python -m pipeline ui --port 5001
    """
    from pipeline.tracking.ui import serve

    for link in serve(port, browser):
        typer.echo(link)
