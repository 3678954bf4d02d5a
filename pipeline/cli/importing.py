"""The command that imports what a site's own scheduler wrote of its jobs."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.base import app

imports = typer.Typer(help="Import what a site's scheduler wrote of its jobs.")
app.add_typer(imports, name="import", no_args_is_help=True)


@imports.callback()
def scheduler() -> None:
    """Import what a site's scheduler wrote of its jobs."""  # a command alone would lose its name


@imports.command()
def slurm(
    files: Annotated[
        list[Path], typer.Argument(help="Dumps of sacct --parsable2, or files of jobcomp/filetxt; plain or .gz.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for jobs.csv, log.swf and account.csv.")] = Path("imported"),
    key_file: Annotated[
        Path | None, typer.Option(help="Key of the users' pseudonyms; without it, OUT/users.key, made if need be.")
    ] = None,
    name_users: Annotated[bool, typer.Option(help="Write users.csv: which number is which user's.")] = False,
    partial: Annotated[
        bool, typer.Option(help="Take a dump of one user, with a cut last line, or of which up to half cannot be read.")
    ] = False,
    cluster: Annotated[
        str | None, typer.Option(help="Cluster whose jobs are wanted, where a dump holds those of several.")
    ] = None,
) -> None:
    """Make a job table and a log in SWF of Slurm's accounting, and say what became of every row.

    See docs/how-to/import-slurm.md for the sacct command that it expects.

    Example: python -m pipeline import slurm sacct.txt --out site
    """
    from pipeline.accounting.slurm_import import SlurmImport, run

    for line in run(SlurmImport(files, out, key_file, name_users, partial, cluster)):
        typer.echo(line)


@imports.command()
def journal(
    folder: Annotated[Path, typer.Argument(help="The --folder of a controller that steers a Slurm.")],
    out: Annotated[Path, typer.Option(help="Folder for jobs.csv, log.swf, decisions.csv and account.csv.")] = Path(
        "imported"
    ),
) -> None:
    """Make a job table, a log in SWF and a table of decisions of what `steer slurm` wrote down.

    Example: python -m pipeline import journal steering --out site
    """
    from pipeline.steering.journal_import import run

    for line in run(folder, out):
        typer.echo(line)
