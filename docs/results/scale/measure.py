"""Measure costs that grow: logs of many jobs, and clusters of many machines, each step in its own process.

    python docs/results/scale/measure.py log 1000000 3000000 10000000
    python docs/results/scale/measure.py sacct 100000 300000 1000000
    python docs/results/scale/measure.py machines 100:10000 1000:100000 10000:1000000

Each writes its rows to a file of its name in this folder, and keeps the rows of other sizes. The processor's seconds
and the highest memory are those of the command as users run it, with its start and all that it imports; the first row
of each kind is of a few jobs, so that this can be taken off.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MIB = 1 << 20
AT_ONCE = 250_000
HEAD = ("what", "machines", "jobs", "processor_s", "wall_s", "mib")
SACCT = (  # as docs/how-to/import-slurm.md asks for them
    *("JobIDRaw", "JobID", "User", "Account", "Partition", "QOS", "Submit", "Eligible", "Start", "End"),
    *("ElapsedRaw", "TimelimitRaw", "State", "ReqTRES", "AllocTRES", "ReqMem", "NNodes", "NodeList"),
)


class Cost(NamedTuple):
    """Cost of a command."""

    processor_s: float
    wall_s: float
    mib: float


def run(folder: Path, *words: str) -> Cost:
    """Run a command of the pipeline as users do."""
    own = {**os.environ, "PIPELINE_TRACKING": "off", "PYTHONPATH": str(ROOT)}
    begun = time.monotonic()
    with (folder / "said").open("w+") as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "pipeline", *words], cwd=folder, env=own, stdout=said, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {child.returncode}\n{(folder / 'said').read_text()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, time.monotonic() - begun, usage.ru_maxrss * 1024 / MIB)


def log(size: str, folder: Path) -> Iterator[tuple[str, int, int, Cost]]:
    """Cut jobsets of a pooled cluster from a log in SWF."""
    jobs = int(size)
    write_log(folder / "log.swf", jobs)
    whole = (ROOT / "params.yaml").read_text()
    own = re.sub(r"(?ms)^workload:\n.*?^$", "workload: {name: swf, path: log.swf, accept: [size, load]}\n", whole)
    (folder / "params.yaml").write_text(own)
    yield "log", 0, jobs, run(folder, "log")
    yield "generate", 0, jobs, run(folder, "generate", "online")


def write_log(path: Path, jobs: int) -> None:
    """Write a made-up log in SWF, a quarter of a million jobs at a time."""
    rng = np.random.default_rng(1)
    with path.open("wb") as stream:
        stream.write(b"; Version: 2.2\n; MaxProcs: 1024\n")
        for first in range(0, jobs, AT_ONCE):
            n = min(AT_ONCE, jobs - first)
            size, run_s = 2 ** rng.integers(0, 8, n), np.minimum(rng.lognormal(7, 2, n), 4e5).astype(int)
            unknown, number = np.full(n, -1), np.arange(first, first + n)
            fields = [number + 1, 30 * number, rng.integers(0, 9000, n), run_s, size, unknown]
            fields += [rng.integers(60, 90_000, n), size, run_s, unknown, *rng.integers(1, 300, (5, n))]
            fields += [unknown] * 3
            stream.write(pd.DataFrame(np.stack(fields, axis=1)).to_csv(sep=" ", header=False, index=False).encode())


def sacct(size: str, folder: Path) -> Iterator[tuple[str, int, int, Cost]]:
    """Import output of `sacct`."""
    jobs = int(size)
    write_sacct(folder / "sacct.txt", jobs)
    (folder / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    yield "import", 0, jobs, run(folder, "import", "slurm", "sacct.txt", "--out", "site")


def write_sacct(path: Path, jobs: int) -> None:
    """Write made-up accounting of one node, a quarter of a million jobs at a time."""
    rng = np.random.default_rng(1)
    with path.open("w") as stream:
        stream.write("|".join(SACCT) + "\n")
        for first in range(0, jobs, AT_ONCE):
            n = min(AT_ONCE, jobs - first)
            number, cpus, user = np.arange(first, first + n), 2 ** rng.integers(0, 8, n), rng.integers(1, 300, n)
            took = np.minimum(rng.lognormal(7, 2, n), 4e5).astype(int)
            submit = np.datetime64("2020-01-01T00:00:00") + (30 * number).astype("m8[s]")
            start = submit + rng.integers(0, 9000, n).astype("m8[s]")
            asked = [f"billing={cpu},cpu={cpu},mem={cpu}G,node=1" for cpu in cpus]
            columns = {
                "JobID": number + 1,
                "JobIDRaw": number + 1,
                "User": [f"u{one}" for one in user],
                "Account": [f"a{one % 20}" for one in user],
                "Partition": "batch",
                "QOS": "normal",
                "Submit": submit,
                "Eligible": submit,
                "Start": start,
                "End": start + took.astype("m8[s]"),
                "ElapsedRaw": took,
                "TimelimitRaw": took // 60 + 60,
                "State": "COMPLETED",
                "ReqTRES": asked,
                "AllocTRES": asked,
                "ReqMem": [f"{cpu}G" for cpu in cpus],
                "NNodes": 1,
                "NodeList": "n1",
            }
            frame = pd.DataFrame({name: columns[name] for name in SACCT})
            frame.to_csv(stream, sep="|", header=False, index=False, date_format="%Y-%m-%dT%H:%M:%S")


def machines(size: str, folder: Path) -> Iterator[tuple[str, int, int, Cost]]:
    """Schedule a table of jobs on a number of machines, at 80 percent load."""
    count, jobs = map(int, size.split(":"))
    text = (ROOT / "params.yaml").read_text()
    (folder / "params.yaml").write_text(text.replace("{count: 5, has: {cpu: 10,", f"{{count: {count}, has: {{cpu: 10,"))
    write_jobs(folder / "jobs.parquet", count, jobs)
    for policy in ("fcfs", "sjf"):
        words = ("schedule", "jobs.parquet", "--scenario", "machines", "--policy", policy, "--out", "out.parquet")
        yield policy, count, jobs, run(folder, *words)


def write_jobs(path: Path, count: int, jobs: int) -> None:
    """Write made-up jobs that use 80 percent of the processors of machines with ten."""
    rng = np.random.default_rng(1)
    duration = np.minimum(rng.lognormal(np.log(40), 1.2, jobs), 1000).round(1)
    cpu = rng.choice([0.5, 1, 2, 4], jobs)
    span = float((duration * cpu).sum()) / (0.8 * 10 * count)
    arrival, memory = np.sort(rng.uniform(0, span, jobs)).round(1), rng.choice([2, 4, 8, 16, 32], jobs)
    ids = {"jobset": np.zeros(jobs, int), "job": np.arange(jobs)}
    pd.DataFrame({**ids, "arrival": arrival, "duration": duration, "cpu": cpu, "memory": memory}).to_parquet(path)


KINDS: dict[str, Callable[[str, Path], Iterator[tuple[str, int, int, Cost]]]] = {
    "log": log,
    "sacct": sacct,
    "machines": machines,
}


def keep(kind: str, rows: list[tuple[str, int, int, Cost]]) -> None:
    """Add rows to a kind's file, replacing those of the same size."""
    path = HERE / f"{kind}.csv"
    old = list(csv.reader(path.read_text().splitlines()))[1:] if path.exists() else []
    new = [[what, str(count), str(jobs), *(f"{value:.1f}" for value in cost)] for what, count, jobs, cost in rows]
    kept = [row for row in old if row[:3] not in [one[:3] for one in new]]
    every = sorted([*kept, *new], key=lambda row: (row[0], int(row[1]), int(row[2])))
    path.write_text("\n".join(map(",".join, [HEAD, *every])) + "\n")


def main(words: Sequence[str] | None = None) -> None:
    """Measure what is named."""
    line = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    line.add_argument("kind", choices=KINDS)
    line.add_argument("sizes", nargs="+", help="numbers of jobs; of machines and jobs, as 100:10000")
    asked = line.parse_args(words)
    for size in asked.sizes:
        with TemporaryDirectory(dir=ROOT.parent) as place:
            for row in KINDS[asked.kind](size, Path(place)):
                what, count, jobs, cost = row
                sys.stderr.write(f"{what}, {count} machines, {jobs} jobs: {cost}\n")
                keep(asked.kind, [row])


if __name__ == "__main__":
    main()
