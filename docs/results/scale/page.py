"""Tables of ../../scale.md, from the data that the other scripts here wrote."""

from functools import partial
from pathlib import Path

import pandas as pd
from layout import number, table

HERE = Path(__file__).resolve().parent
WORDS = {"log": "`log`", "generate": "`generate online`", "import": "`import slurm`"}
ENGINES = {
    "processes": "processes",
    "ray": "Ray at an address",
    "raynode": "Ray at an address",
    "rayown": "Ray of the stage's own",
    "slurm": "Slurm",
}
MIB = 1 << 20


def logs() -> str:
    """Return a command's cost for each job of a log, less its cost for a thousand jobs."""
    rows = []
    for kind in ("log", "sacct"):
        path = HERE / f"{kind}.csv"
        for what, found in pd.read_csv(path).groupby("what") if path.exists() else ():
            first, *others = found.sort_values("jobs").itertuples()
            for one in others:
                jobs = one.jobs - first.jobs
                each = (1e6 * (one.processor_s - first.processor_s) / jobs, MIB * (one.mib - first.mib) / jobs)
                cells = (number(one.processor_s), f"{each[0]:.1f}", f"{one.mib:,.0f}", f"{each[1]:.0f}")
                rows.append([WORDS[str(what)], f"{one.jobs:,}", *cells])
    return table(["command", "jobs", "processor, s", "per job, µs", "memory, MiB", "per job, bytes"], rows)


def machines() -> str:
    """Return the cost of a schedule on many machines."""
    rows = [
        [one.what, f"{one.machines:,}", f"{one.jobs:,}", number(one.processor_s), f"{one.mib:,.0f}"]
        for one in pd.read_csv(HERE / "machines.csv").itertuples()
    ]
    return table(["policy", "machines", "jobs", "processor, s", "memory, MiB"], rows)


def nodes() -> str:
    """Return the duration of trainings on many slots, by list schedules."""
    rows = [
        [one.what, str(one.slots), f"{one.hours:.2f}", f"{100 * one.efficiency:.1f} %"]
        for one in pd.read_csv(HERE / "nodes.csv").itertuples()
    ]
    return table(["what is counted", "trainings at once", "hours", "of the time spent on training"], rows)


def kills(file: str) -> str:
    """Return the outcome of stages after kills, a row for each engine and kind of kill."""
    rows = []
    for (engine, killed), found in pd.read_csv(HERE / file).groupby(["engine", "killed"], sort=False):
        once = int((found["runs"] == 1).sum())
        cells = (len(found), once, len(found) - once, int(found["hung"].sum()), int(found["same"].sum()))
        rows.append([ENGINES[str(engine)], str(killed), *map(str, cells), number(found["wall_s"].median())])
    head = ["engine", "killed", "kills", "continued", "run again", "runs that hung", "same bytes", "seconds, median"]
    return table(head, rows, words=2)


def speedup() -> str:
    """Return the duration of stages with more workers of each engine, and the speed-up."""
    found, rows = pd.read_csv(HERE / "speedup.csv"), []
    for what, part in found.groupby("what", sort=False):
        serial = float(part.loc[part["engine"] == "serial", "seconds"].iloc[0])
        others = [f"{one.seconds:.0f} ({serial / one.seconds:.2f} x)" for one in part.itertuples() if one.workers > 1]
        same = f"{100 * part['same'].mean():.0f} %"
        rows.append([str(what), str(part["tasks"].iloc[0]), f"{serial:.0f}", *others, same])
    said = [f"{one.engine}, {one.workers}" for one in found.drop_duplicates(["engine", "workers"]).itertuples()][1:]
    return table(["what", "tasks", "one process, s", *said, "same bytes"], rows)


TABLES = {
    "speed-up": speedup,
    "logs": logs,
    "nodes": nodes,
    "kills": partial(kills, "kills.csv"),
    "trainings": partial(kills, "trainings.csv"),
    "machines": machines,
}
