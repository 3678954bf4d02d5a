"""The command that compares the simulator with a real Slurm cluster."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.fidelity.measuring import cluster_of, run
from pipeline.cli.base import AsJson, answer
from pipeline.cli.ending import main

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def fidelity(
    out: Annotated[Path, typer.Option(help="Table to write (.csv, .csv.gz): a row for each job of each play.")] = Path(
        "fidelity.csv"
    ),
    jobs: Annotated[int, typer.Option(min=10, max=1000, help="Short jobs of a play.")] = 80,
    repeats: Annotated[int, typer.Option(min=2, max=100, help="Plays of each order: Slurm repeats none.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the jobs.")] = 8,
    short: Annotated[int, typer.Option(min=0, max=4, help="Nodes of a second partition, of a higher tier.")] = 0,
    fair_share: Annotated[
        int, typer.Option(min=0, max=9999, help="PriorityWeightFairShare, for five users, with a fast clock.")
    ] = 0,
    scheduler: Annotated[
        str | None, typer.Option(help="SchedulerParameters to add, as 'bf_job_part_count_reserve=1'.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run short jobs on a real Slurm cluster on loopback and in the simulator, and report where the two differ.

    It takes about 80 s for each repeat, needs Slurm's programs and root, and affects no other Slurm on this host.

    Example: python -m pipeline fidelity --repeats 5 --out fidelity.csv
    """
    found, lines = run(out, jobs, repeats, seed, cluster_of(short, fair_share, scheduler))
    answer(lines, found, as_json)


if __name__ == "__main__":
    main(app)
