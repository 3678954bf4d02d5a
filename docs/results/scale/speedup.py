"""Duration of stages with more workers of each engine, for ../../scale.md; needs an idle machine.

    python docs/results/scale/speedup.py           # about ten minutes; writes speedup.csv
    python docs/results/scale/speedup.py --tiny    # a few minutes, a test run; writes no file

Stages are the real ones on scenario `online`, with one thread, so a worker uses one core. Ray at an address and Slurm
run on loopback, with one core, or one-core node, a worker. Their own start is not counted; all waits of a stage are.
`seeds` are training runs of a short `deeprm3`, one at a time on each worker, each sent as a whole command or run as a
local process. The results are compared with those of one process.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from engines import NO_TOKEN, ROOT, Machines
from ruamel.yaml import YAML

from benchmarks.slurm.configuration import Cluster
from benchmarks.slurm.loopback import own_ports, slurm

HERE = Path(__file__).resolve().parent
HEAD = ("what", "engine", "workers", "tasks", "seconds", "same")
ENGINES = (("serial", 1), ("processes", 2), ("ray", 2), ("ray", 4), ("slurm", 2), ("slurm", 4))
SEEDS = (1, 2, 3)


class Size(NamedTuple):
    """Amount of work."""

    test: int  # jobsets of each load that heuristics are scored on
    solved: int  # jobsets of each load solved by hindsight
    limit: float  # of its solver, in units of its own
    updates: int  # of each training run


class Work(NamedTuple):
    """Commands measured together."""

    commands: tuple[tuple[str, ...], ...]
    written: tuple[str, ...]  # folders of their output
    table: str = ""  # in the first folder, with columns `each` that identify tasks; if empty, each command is a task
    each: tuple[str, ...] = ()


FULL, TINY = Size(test=4000, solved=10, limit=0.2, updates=40), Size(test=5, solved=1, limit=0.01, updates=2)
TABLES = "reports/tables"
WORKS = {  # each uses the output of those before it
    "generate": Work((("generate", "online"),), ("data/jobsets/online",)),
    "heuristics": Work(
        (("evaluate", "heuristics", "online"),), (f"{TABLES}/heuristics/online",), "jobsets.parquet", ("policy",)
    ),
    "hindsight": Work(
        (("hindsight", "online"),), (f"{TABLES}/hindsight/online",), "hindsight.parquet", ("load", "jobset")
    ),
    "seeds": Work(
        tuple(("finetune", f"seed{seed}") for seed in SEEDS), tuple(f"models/seed{seed}/policy" for seed in SEEDS)
    ),
}


def main(size: Size, file: Path | None) -> None:
    """Measure all work, one engine after the other."""
    with tempfile.TemporaryDirectory(prefix="speedup-", dir="/tmp") as name:
        place = Path(name)
        lay_out(place, size)
        wanted: dict[str, dict[str, bytes]] = {}
        rows: list[list[str]] = []
        for engine, workers in ENGINES:
            with at(engine, workers) as variables:
                for title, work in WORKS.items():
                    seconds = took(place, work, workers, variables)
                    found = left(place, work)
                    same = found == wanted.setdefault(title, found)
                    rows.append([title, engine, str(workers), tasks(place, work), f"{seconds:.1f}", str(int(same))])
                    sys.stderr.write(f"{dict(zip(HEAD, rows[-1], strict=True))}\n")
        if file:
            file.write_text(
                "\n".join(map(",".join, [HEAD, *sorted(rows, key=lambda row: list(WORKS).index(row[0]))])) + "\n"
            )


def lay_out(place: Path, size: Size) -> None:
    """Prepare a folder for all stages, and run the stages that are not measured."""
    rows = YAML().load(ROOT / "params.yaml")
    rows["threads"] = 1
    rows["scenarios"]["online"]["jobsets"] |= {"validation": 5, "test": size.test}
    rows["hindsight"] = {"scenarios": ["online"], "jobsets": size.solved, "limit": size.limit}
    row = rows["agents"]["deeprm3"]
    row["pretrain"] = {"name": "none"}
    row["finetune"] |= {"updates": size.updates, "validate_every": size.updates}
    rows["agents"] |= {f"seed{seed}": {**row, "finetune": {**row["finetune"], "seed": seed}} for seed in SEEDS}
    with (place / "params.yaml").open("w") as stream:
        YAML().dump(rows, stream)
    for words in (("log",), ("generate", "online"), *(("pretrain", f"seed{seed}") for seed in SEEDS)):
        run(place, {}, words)


@contextmanager
def at(engine: str, workers: int) -> Iterator[dict[str, str]]:
    """Start an engine; yield the environment variables of its stages."""
    if engine == "ray":
        with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as name, own_ports(1) as (port,):
            here = Machines(Path(name), port, workers)
            try:
                here.begin("head")
                yield {"PIPELINE_EXECUTOR": f"ray:{workers}@{here.address}", **NO_TOKEN}
            finally:
                here.stop()
    elif engine == "slurm":
        with slurm(Cluster(nodes=workers, cpus=1)) as running:
            yield {"PIPELINE_EXECUTOR": f"slurm:{workers}", "SLURM_CONF": str(running.folder / "slurm.conf")}
    else:
        yield {"PIPELINE_EXECUTOR": engine if engine == "serial" else f"{engine}:{workers}"}


def took(place: Path, work: Work, workers: int, variables: Mapping[str, str]) -> float:
    """Return the duration of commands, run in parallel up to the number of workers."""
    for folder in work.written:
        shutil.rmtree(place / folder, ignore_errors=True)
    begun = time.monotonic()
    with ThreadPoolExecutor(workers) as several:
        list(several.map(partial(run, place, variables), work.commands))
    return time.monotonic() - begun


def run(place: Path, variables: Mapping[str, str], words: tuple[str, ...]) -> None:
    """Run a command of the pipeline."""
    own = {"PIPELINE_TRACKING": "off", "PYTHONPATH": str(ROOT), "PIPELINE_EXECUTOR": "serial"}
    line = [sys.executable, "-m", "pipeline", *words]
    done = subprocess.run(
        line, cwd=place, env={**os.environ, **own, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr[-2000:]}")


def left(place: Path, work: Work) -> dict[str, bytes]:
    """Return the files that they wrote."""
    found = [path for folder in work.written for path in (place / folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(place)): path.read_bytes() for path in found}


def tasks(place: Path, work: Work) -> str:
    """Return the number of tasks, by the output."""
    if not work.table:
        return str(len(work.commands))
    table = pd.read_parquet(place / work.written[0] / work.table, columns=list(work.each))
    return str(len(table.drop_duplicates()))


if __name__ == "__main__":
    main(*((TINY, None) if sys.argv[1:] == ["--tiny"] else (FULL, HERE / "speedup.csv")))
