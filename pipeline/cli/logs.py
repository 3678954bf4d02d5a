"""The commands for a log of a real cluster: what is in it, and what advises the site that it is of."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.base import STAGES, SiteName, app, read_params

if TYPE_CHECKING:
    import pandas as pd

OFF_TERMINAL = 160  # columns of a line where no terminal says how many it has
SHOWN = {
    "overview": "What is in it",
    "load": "Load from the first arrival to the last: wanted at a time, and of all that machines offer",
    "distributions": "How jobs differ",
    "users": "Users with most jobs",
    "gaps": "Longest times without an arrival",
    "quarantine": "What was dropped or repaired, and what is doubtful",
}


def formats(incomplete: str) -> list[str]:
    """Return the formats that a shell may complete."""
    from pipeline.logs.registry import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


@app.command()
def trace(
    log: Annotated[Path, typer.Argument(help="Log of a real cluster, plain or .gz; see docs/logs.md.")],
    format: Annotated[
        str | None, typer.Option(help="Its format, where its first line does not tell.", autocompletion=formats)
    ] = None,
    nodes: Annotated[Path | None, typer.Option(help="Its machines, where they stand in a file of their own.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for tables and figures; reports/trace/LOG without it.")
    ] = None,
) -> None:
    """Say what is in a log of a real cluster.

    Example: python -m pipeline trace HPC2N-2002-2.2-cln.swf.gz
    """
    from pipeline.stages.trace import run

    frames = run(log, format, nodes, out)
    for name, title in SHOWN.items():
        if len(frames[name]):
            _show(title, frames[name])


def _show(title: str, frame: "pd.DataFrame") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=OFF_TERMINAL)
    table = Table(box=None, pad_edge=False)
    for column in frame.columns:
        words = frame[column].dtype.kind not in "if"
        table.add_column(column.replace("_", " "), justify="left" if words else "right")
    for row in frame.itertuples(index=False):
        table.add_row(*map(_said, row))
    console.print(title, style="bold")
    console.print(table)
    console.print()


def _said(value: str | float) -> str:
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


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
