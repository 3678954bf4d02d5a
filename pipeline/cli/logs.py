"""Commands for logs of real clusters, and for the sites that they come from."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from pipeline.cli.base import AsJson, SiteName, answer, app, group, read_params
from pipeline.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

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
    as_json: AsJson = False,
) -> None:
    """Show what is in a log of a real cluster.

    Example: python -m pipeline trace HPC2N-2002-2.2-cln.swf.gz
    """
    from pipeline.stages.tasks import trace as traced

    frames = traced(log, format, nodes, out)
    answer((), frames, as_json)
    for name, title in SHOWN.items():
        if len(frames[name]) and not as_json:
            _show(title, frames[name])


def _show(title: str, frame: "pd.DataFrame") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
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
    nodes: Annotated[Path | None, Option(help="Output of 'scontrol show node', for a log from 'import slurm'.")] = None,
    config: Annotated[Path | None, Option(help="Output of 'scontrol show config', for today's order.")] = None,
    partitions: Annotated[
        Path | None, Option(help="Output of 'scontrol show partition', for tiers and factors.")
    ] = None,
    outages: Annotated[
        list[Path] | None, Option(help="Output of 'sacctmgr -P show event' or 'reservation'; repeatable.")
    ] = None,
    quotas: Annotated[
        list[Path] | None, Option(help="Output of 'sacctmgr -P show qos' or 'assoc'; repeatable.")
    ] = None,
    key_file: Annotated[Path | None, Option(help="Key of --quotas' accounts (default: users.key next to LOG).")] = None,
    format: Format = None,
    agent: Annotated[bool, Option("--agent", help="Add an agent that is trained on the log.")] = False,
    yes: Annotated[bool, Option("--yes", help="Accept a log that looks implausible.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what is in a site's log, and write the rows for `dvc repro advise@NAME` into params.yaml.

    Example: python -m pipeline site site.swf.gz --name mine
    """
    params = read_params()
    from pipeline.stages.site import run

    texts, more = {"config": config, "partitions": partitions}, (outages or [], quotas or [], key_file)
    found, lines = run(params, log, name, format, machines or [], yes, agent, nodes, texts, *more)
    answer(lines, found, as_json)


@app.command("what-if")
def what_if(
    site: SiteName,
    change: Annotated[str, Argument(help="nodes=+10%, load=+20%, limit=24h (a cap), or night=USER.")],
    policy: Annotated[str | None, Option(help="Order of the queue (default: the site's present one).")] = None,
    as_json: AsJson = False,
) -> None:
    """Say how waits of a site's log would change with other machines, load or limits.

    Example: python -m pipeline what-if mine nodes=+10%
    """
    params = read_params()
    from pipeline.stages.when import answer_what_if

    found, line = answer_what_if(params, site, change, policy)
    answer([line], found, as_json)


@app.command()
def when(
    site: SiteName,
    jobs: Annotated[list[int] | None, Argument(help="Jobs by the log's numbers (default: all that wait).")] = None,
    at: Annotated[str | None, Option(help="Time: seconds of the log's clock, or a date (default: its end).")] = None,
    serve: Annotated[
        int | None, Option(min=0, max=65_535, help="Port of a page and JSON instead, on this machine; 0: any.")
    ] = None,
    check: Annotated[bool, Option("--check", help="Show how good past answers would have been instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say when each waiting job of a site is expected to start, with 50 and 80 % intervals from simulated futures.

    Example: python -m pipeline when site 4711 --at 2002-12-24T18:00
    """
    if (check or serve is not None) and (jobs or at or (serve is not None and (check or as_json))):
        raise UserError("--check, --serve: expected no jobs and no other option with it, but --json with --check")
    params = read_params()
    if serve is not None:
        from pipeline.stages.when_service import serve as listen

        listen(site, serve)
        return
    from pipeline.stages.when import run, score_table, scores, table

    if check:
        scored = scores(params, site)
        answer(score_table(scored), {name: one._asdict() for name, one in scored.items()}, as_json)
        return
    found = run(params, site, jobs or [], at)
    answer(table(found), found, as_json)
    for key, warning in (
        ("calibrated", "not calibrated: too few jobs waited before"),
        ("own_waits", "the log records no waits: they are those of a replay"),
    ):
        if not found[key]:
            typer.echo(f"warning: {warning}", err=True)


@app.command()
def why(
    site: SiteName,
    job: Annotated[int | None, Argument(help="Job by the log's number (default: the one that waits longest).")] = None,
    policy: Annotated[str | None, Option(help="Order of the queue (default: the site's present one).")] = None,
    as_json: AsJson = False,
) -> None:
    """Say why a job of a site's log starts when it does in a replay, and what would have made it start sooner.

    Example: python -m pipeline why mine 4711 --policy limit_8h
    """
    params = read_params()
    from pipeline.stages.when import explain_start

    found, lines = explain_start(params, site, job, policy)
    answer(lines, found, as_json)


@imports.command()
def slurm(
    files: Annotated[list[Path], Argument(help="Dumps of sacct --parsable2 or of jobcomp/filetxt; plain or .gz.")],
    out: Annotated[Path, Option(help="Folder for jobs.csv, log.csv, log.swf and account.csv.")] = Path("imported"),
    key_file: Annotated[Path | None, Option(help="Key of the users' pseudonyms (default: OUT/users.key).")] = None,
    name_users: Annotated[bool, Option(help="Write users.csv, with each user's number.")] = False,
    partial: Annotated[bool, Option(help="Accept a dump of one user, or one that is cut or half unreadable.")] = False,
    cluster: Annotated[str | None, Option(help="The cluster to import, if a dump holds several.")] = None,
    as_json: AsJson = False,
) -> None:
    """Convert Slurm's accounting data to a job table and logs, and account for every row.

    See docs/how-to/import-slurm.md for the sacct command that it expects.

    Example: python -m pipeline import slurm sacct.txt --out site
    """
    from pipeline.accounting.slurm_import import run

    found, lines = run(files, out, key_file, name_users, partial, cluster)
    answer(lines, found, as_json)


@imports.command()
def journal(
    folder: Annotated[Path, Argument(help="The --folder of a controller that steers Slurm.")],
    out: Annotated[Path, Option(help="Folder for jobs.csv, log.csv, log.swf, decisions.csv and account.csv.")] = Path(
        "imported"
    ),
    as_json: AsJson = False,
) -> None:
    """Convert the journal of `steer slurm` to a job table, a log in SWF and a table of decisions.

    Example: python -m pipeline import journal steering --out site
    """
    from pipeline.steering.journal_import import run

    found, lines = run(folder, out)
    answer(lines, found, as_json)
