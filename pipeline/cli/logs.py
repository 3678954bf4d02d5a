"""Commands for logs of real clusters, and for the sites that they come from."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from pipeline.cli.base import SiteName, app, group, read_params

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 160  # columns of a line that does not go to a terminal
SHOWN = {
    "overview": "What is in it",
    "load": "Load from the first arrival to the last: wanted at a time, and of all that machines offer",
    "distributions": "How jobs differ",
    "users": "Users with most jobs",
    "gaps": "Longest times without an arrival",
    "quarantine": "What was dropped or repaired, and what is doubtful",
}
imports = group("import", "Import what a site's scheduler recorded of its jobs.")


def formats(incomplete: str) -> list[str]:
    """Complete a log format."""
    from pipeline.core.logs.registry import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


Format = Annotated[str | None, Option(help="Format of the log (default: by its first line).", autocompletion=formats)]


@app.command()
def trace(
    log: Annotated[Path, Argument(help="Log of a real cluster, plain or .gz; see docs/logs.md.")],
    format: Format = None,
    nodes: Annotated[Path | None, Option(help="The machines, if they are in a separate file.")] = None,
    out: Annotated[Path | None, Option(help="Folder for tables and figures (default: reports/trace/LOG).")] = None,
) -> None:
    """Show what is in a log of a real cluster.

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
        console = Console(highlight=False, width=WIDTH)
    table = Table(box=None, pad_edge=False)
    for column in frame.columns:
        words = frame[column].dtype.kind not in "if"
        table.add_column(column.replace("_", " "), justify="left" if words else "right")
    for row in frame.itertuples(index=False):
        table.add_row(*map(_cell, row))
    console.print(title, style="bold")
    console.print(table)
    console.print()


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"


@app.command()
def site(
    log: Annotated[Path, Argument(help="The site's log, plain or .gz; see docs/logs.md.")],
    name: Annotated[str, Option(help="Name of its scenario; an existing one is updated.")] = "site",
    machines: Annotated[list[str] | None, Option(help="Machines, as '4 cpu=64,memory=256'; repeatable.")] = None,
    nodes: Annotated[Path | None, Option(help="Output of 'scontrol show node', of a log of 'import slurm'.")] = None,
    config: Annotated[Path | None, Option(help="Output of 'scontrol show config', for the order of today.")] = None,
    partitions: Annotated[
        Path | None, Option(help="Output of 'scontrol show partition', for tiers and factors.")
    ] = None,
    format: Format = None,
    agent: Annotated[bool, Option("--agent", help="Add an agent that is trained on the log.")] = False,
    yes: Annotated[bool, Option("--yes", help="Accept a log that looks implausible.")] = False,
) -> None:
    """Show what is in a site's log, and write the rows for `dvc repro advise@NAME` into params.yaml.

    Example: python -m pipeline site site.swf.gz --name mine
    """
    params = read_params()
    from pipeline.stages.site import run

    run(params, log, name, format, machines or [], yes, agent, nodes, {"config": config, "partitions": partitions})


@app.command("what-if")
def what_if(
    site: SiteName,
    change: Annotated[str, Argument(help="nodes=+10%, load=+20%, limit=24h (a cap), or night=USER.")],
    policy: Annotated[str | None, Option(help="Order of the queue (default: the site's present one).")] = None,
) -> None:
    """Say how waits of a site's log would change with other machines, load or limits.

    Example: python -m pipeline what-if mine nodes=+10%
    """
    params = read_params()
    from pipeline.stages.what_if import run

    typer.echo(run(params, site, change, policy))


@imports.command()
def slurm(
    files: Annotated[list[Path], Argument(help="Dumps of sacct --parsable2 or of jobcomp/filetxt; plain or .gz.")],
    out: Annotated[Path, Option(help="Folder for jobs.csv, log.csv, log.swf and account.csv.")] = Path("imported"),
    key_file: Annotated[Path | None, Option(help="Key of the users' pseudonyms (default: OUT/users.key).")] = None,
    name_users: Annotated[bool, Option(help="Write users.csv, with each user's number.")] = False,
    partial: Annotated[bool, Option(help="Accept a dump of one user, or one that is cut or half unreadable.")] = False,
    cluster: Annotated[str | None, Option(help="The cluster to import, if a dump holds several.")] = None,
) -> None:
    """Convert Slurm's accounting data to a job table and logs, and account for every row.

    See docs/how-to/import-slurm.md for the sacct command that it expects.

    Example: python -m pipeline import slurm sacct.txt --out site
    """
    from pipeline.accounting.slurm_import import SlurmImport, run

    for line in run(SlurmImport(files, out, key_file, name_users, partial, cluster)):
        typer.echo(line)


@imports.command()
def journal(
    folder: Annotated[Path, Argument(help="The --folder of a controller that steers a Slurm.")],
    out: Annotated[Path, Option(help="Folder for jobs.csv, log.csv, log.swf, decisions.csv and account.csv.")] = Path(
        "imported"
    ),
) -> None:
    """Convert the journal of `steer slurm` to a job table, a log in SWF and a table of decisions.

    Example: python -m pipeline import journal steering --out site
    """
    from pipeline.steering.journal_import import run

    for line in run(folder, out):
        typer.echo(line)
