"""The commands for a site's own log: what params.yaml needs of it, and the stage that advises."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.base import STAGES, SiteName, app, read_params
from pipeline.cli.logs import formats


@app.command()
def site(
    log: Annotated[Path, typer.Argument(help="The site's log, plain or .gz; see docs/logs.md.")],
    name: Annotated[str, typer.Option(help="What its scenario is called.")] = "site",
    machines: Annotated[
        list[str] | None, typer.Option(help="Machines, as '4 cpu=64,memory=256'; again for others. Else the log's.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Its format, where its first line does not tell.", autocompletion=formats)
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Accept a log that looks implausible.")] = False,
) -> None:
    """Say what is in a site's log, and put what advises it into params.yaml; `dvc repro advise@NAME` then does.

    The name of a site that is there updates its rows to the log.

    Example: python -m pipeline site site.swf.gz --name mine
    """
    params = read_params()
    from pipeline.stages.site import run

    run(params, log, name, format, machines or [], yes)


@app.command(rich_help_panel=STAGES)
def advise(site: SiteName) -> None:
    """Replay a site's log under every policy, and say which one to use: reports/advice.html, reports/advice.json.

    Example: python -m pipeline advise site
    """
    params = read_params()
    from pipeline.stages.advise import run

    run(params, site)
