"""Tables of ../../scale.md, from the data that the other scripts here wrote."""

from pathlib import Path

import pandas as pd
from layout import number, table

HERE = Path(__file__).resolve().parent
WORDS = {"log": "`log`", "generate": "`generate online`"}
TASKS = {"`hindsight`": "kills.csv", "training": "trainings.csv"}
ENGINES = {
    "processes": "processes",
    "ray": "Ray at an address",
    "raynode": "Ray at an address",
    "rayown": "Ray of the stage's own",
    "slurm": "Slurm",
}


def logs() -> str:
    """Return a command's cost for each job of a log, less its cost for a thousand jobs."""
    rows = []
    for what, found in pd.read_csv(HERE / "log.csv").groupby("what"):
        first, *others = found.sort_values("jobs").itertuples()
        for one in (others[0], others[-1]) if what == "generate" else others[-1:]:
            jobs = one.jobs - first.jobs
            each = 1e6 * (one.processor_s - first.processor_s) / jobs
            cells = (number(one.processor_s), f"{each:.1f}", f"{one.mib:,.0f}")
            rows.append([WORDS[str(what)], f"{one.jobs:,}", *cells])
    return table(["command", "jobs", "processor, s", "per job, µs", "memory, MiB"], rows)


def machines() -> str:
    """Return the cost of a schedule on many machines."""
    rows = [
        [one.what, f"{one.machines:,}", f"{one.jobs:,}", number(one.processor_s), f"{one.mib:,.0f}"]
        for one in pd.read_csv(HERE / "machines.csv").query("what == 'sjf' and machines > 100").itertuples()
    ]
    return table(["policy", "machines", "jobs", "processor, s", "memory, MiB"], rows)


def kills() -> str:
    """Return the outcome of stages and training runs after kills, a row for each engine."""
    rows = []
    for what, file in TASKS.items():
        found = pd.read_csv(HERE / file)
        for engine, some in found.groupby(found["engine"].map(ENGINES), sort=False):
            once = int((some["runs"] == 1).sum())
            cells = (len(some), once, len(some) - once, int(some["hung"].sum()), int(some["same"].sum()))
            rows.append([what, str(engine), *map(str, cells)])
    head = ["task", "engine", "kills", "continued", "run again", "hung", "same bytes"]
    return table(head, rows, words=2)


def speedup() -> str:
    """Return the duration of stages with more workers of each engine, and the speed-up."""
    found, rows = pd.read_csv(HERE / "speedup.csv"), []
    for what, part in found[found["what"] != "generate"].groupby("what", sort=False):  # `generate` has one task
        serial = float(part.loc[part["engine"] == "serial", "seconds"].iloc[0])
        others = [f"{one.seconds:.0f} ({serial / one.seconds:.2f} x)" for one in part.itertuples() if one.workers > 1]
        rows.append([str(what), f"{serial:.0f}", *others])
    said = [f"{one.engine}, {one.workers}" for one in found.drop_duplicates(["engine", "workers"]).itertuples()][1:]
    return table(["what", "one process, s", *said], rows)


TABLES = {
    "speed-up": speedup,
    "logs": logs,
    "kills": kills,
    "machines": machines,
}
