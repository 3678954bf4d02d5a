"""Time from a dump of Slurm's accounting to the files of site advice.

    python -m benchmarks.advice_minutes LOG.swf.gz --nodes 120 --cpus 2
    python -m benchmarks.advice_minutes --jobs 200000 --nodes 500 --cpus 48 [--pool]

The jobs of a log in the Standard Workload Format, or random jobs at 90 % load, become a dump of sacct and files of
nodes, partitions and configuration. The commands of docs/how-to/advise-a-site.md are then timed, each as a process.
With `--pool`, the site is one pool of all processors instead of nodes.
"""

import gzip
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer

from pipeline.core.types import FloatArray, IntArray

BEGIN = 1_600_000_000  # seconds of the Unix clock
DAY_S, LONGEST_DAYS, LOAD, USERS, SEED = 86_400, 5, 0.9, 200, 3
HEAD = (
    "JobIDRaw|JobID|User|Account|Partition|QOS|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|State|ReqTRES|AllocTRES"
    "|ReqMem|NNodes|NodeList\n"
)


class Dumped(NamedTuple):
    """Jobs in order of submission."""

    submit: FloatArray  # [J]  s
    wait: FloatArray  # [J]  s
    run: FloatArray  # [J]  s
    limit: IntArray  # [J]  minutes
    cpus: IntArray  # [J]
    user: IntArray  # [J]


def from_log(path: Path) -> Dumped:
    """Return the jobs of a log that ran and have a limit."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith(";")]
    rows = np.array([[float(row[k]) for k in (1, 2, 3, 4, 8, 11)] for row in lines])
    submit, wait, run, cpus, limit, user = rows[(rows[:, 2:5] > 0).all(axis=1)].T
    whole = (np.maximum(column, 1).astype(np.int64) for column in (limit // 60, cpus, user))
    return Dumped(submit, np.maximum(wait, 0.0), run, *whole)


def drawn(jobs: int, nodes: int, cpus: int) -> Dumped:
    """Return random jobs: four in five on a part of one node, the others on up to 16 whole nodes."""
    rng = np.random.default_rng(SEED)
    run = np.minimum(np.exp(rng.normal(7.5, 1.8, jobs)), LONGEST_DAYS * DAY_S) + 1
    whole = cpus * rng.integers(1, min(nodes, 16) + 1, jobs)
    held = np.where(rng.random(jobs) < 0.8, rng.integers(1, cpus + 1, jobs), whole)
    limit = np.clip(run * np.exp(rng.exponential(1.2, jobs)) // 60 + 1, 1, 7 * DAY_S // 60).astype(np.int64)
    run = np.floor(np.minimum(run, 60 * limit))
    submit = np.sort(rng.random(jobs)) * (run * held).sum() / (nodes * cpus * LOAD)
    return Dumped(submit, rng.exponential(600.0, jobs), run, limit, held, rng.integers(0, USERS, jobs))


def write_site(folder: Path, jobs: Dumped, nodes: int, cpus: int) -> None:
    """Write what a site's Slurm prints."""
    with (folder / "sacct.txt").open("w") as file:
        file.write(HEAD)
        for k, (submit, wait, run, limit, held, user) in enumerate(zip(*jobs, strict=True), start=1):
            on, begun = -(-held // cpus), BEGIN + submit + wait
            tres, times = f"cpu={held},mem={on}G,node={on}", [_date(BEGIN + submit)] * 2
            times += [_date(begun), _date(begun + run)]
            file.write(f"{k}|{k}|u{user}|a|work|normal|{'|'.join(times)}|{run:.0f}|{limit}|COMPLETED|{tres}|{tres}|")
            file.write(f"{on}G|{on}|n[1-{on}]\n")
    name = "NodeName=n{k} CPUTot={cpus} RealMemory=192000 Gres=(null) Partitions=work\n"
    (folder / "nodes.txt").write_text("".join(name.format(k=k, cpus=cpus) for k in range(1, nodes + 1)))
    (folder / "config.txt").write_text("PriorityType = priority/basic\nSchedulerParameters = bf_interval=30\n")
    (folder / "partitions.txt").write_text(
        "PartitionName=work\n   PriorityJobFactor=1 PriorityTier=1 Default=YES MaxTime=UNLIMITED "
        f"Nodes=n[1-{nodes}] TotalCPUs={nodes * cpus}\n"
    )


def _date(second: float) -> str:
    return datetime.fromtimestamp(int(second), UTC).strftime("%Y-%m-%dT%H:%M:%S")


def commands(nodes: int, cpus: int, pool: bool) -> list[list[str]]:
    """Return the commands from the dump to the advice."""
    files = ["--nodes", "nodes.txt", "--config", "config.txt", "--partitions", "partitions.txt"]
    site = ["--machines", f"1 cpu={nodes * cpus}"] if pool else files
    # --yes: the drawn jobs do not wait as long as a real queue would make them.
    add = ["site", "imported/log.csv", "--name", "ours", "--yes", *site]
    return [["import", "slurm", "sacct.txt"], add, ["log"], ["advise", "ours"]]


def main(
    log: Annotated[Path | None, typer.Argument(exists=True, help="Log in SWF (default: random jobs).")] = None,
    jobs: Annotated[int, typer.Option(help="Number of random jobs.")] = 200_000,
    nodes: Annotated[int, typer.Option(help="Nodes of the site.")] = 120,
    cpus: Annotated[int, typer.Option(help="Processors of a node.")] = 2,
    pool: Annotated[bool, typer.Option(help="One pool of processors.")] = False,
) -> None:
    """Time each command, and print the total."""
    total = 0.0
    with tempfile.TemporaryDirectory() as place:
        write_site(Path(place), from_log(log) if log else drawn(jobs, nodes, cpus), nodes, cpus)
        shutil.copy("params.yaml", place)
        for command in commands(nodes, cpus, pool):
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-m", "pipeline", *command], cwd=place, check=True, capture_output=True)
            total += time.perf_counter() - begun
            typer.echo(f"{' '.join(command[:2])}: {time.perf_counter() - begun:.1f} s")
    typer.echo(f"all: {total:.1f} s")


if __name__ == "__main__":
    typer.run(main)
