"""The command that says when waiting jobs of a site start."""

import json
from typing import Annotated

import typer
from typer import Argument, Option

from pipeline.cli.base import SiteName, app, read_params
from pipeline.errors import UserError


@app.command()
def when(
    site: SiteName,
    jobs: Annotated[list[int] | None, Argument(help="Jobs by the log's numbers (default: all that wait).")] = None,
    at: Annotated[str | None, Option(help="Time: seconds of the log's clock, or a date (default: its end).")] = None,
    as_json: Annotated[bool, Option("--json", help="Write JSON, in seconds.")] = False,
    serve: Annotated[
        int | None, Option(min=0, max=65_535, help="Port of a page and JSON instead, on this machine; 0: any.")
    ] = None,
    check: Annotated[bool, Option("--check", help="Show how good past answers would have been instead.")] = False,
) -> None:
    """Say when each waiting job of a site is expected to start, with 50 and 80 % intervals from simulated futures.

    Example: python -m pipeline when site 4711 --at 2002-12-24T18:00
    """
    if (check or serve is not None) and (jobs or at or as_json or (check and serve is not None)):
        raise UserError("--check, --serve: expected no jobs and no other option with it")
    params = read_params()
    if serve is not None:
        from pipeline.stages.when_service import serve as listen

        listen(site, serve)
        return
    from pipeline.stages.when import run, scores, table

    if check:
        typer.echo("\n".join(scores(params, site)))
        return
    answer = run(params, site, jobs or [], at)
    if as_json:
        typer.echo(json.dumps(answer))
        return
    for line in table(answer):
        typer.echo(line)
    for key, warning in (
        ("calibrated", "not calibrated: too few jobs waited before"),
        ("own_waits", "the log records no waits: they are those of a replay"),
    ):
        if not answer[key]:
            typer.echo(f"warning: {warning}", err=True)
