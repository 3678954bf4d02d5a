"""Run the learned agents by RLScheduler's protocol, and write the rows of ../rlscheduler.md.

    PYTHONPATH=. python docs/results/rlscheduler/gather.py WEIGHTS ../shared/traces/lublin_256.swf.gz \
        ../shared/traces/HPC2N-2002-2.2-cln.first15000.swf.gz

WEIGHTS holds the model directories of params.yaml by the agents' names. Writes sequences.csv, waits.csv and paired.csv.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from pipeline.interactive.machines.benchmark import run

HERE = Path(__file__).resolve().parent
CELLS = {"HPC2N": "hpc2n", "lublin_256": "lublin"}  # log: prefix of its agents' names
RULES = ("sjf", "saf", "f1")
KINDS = {"sequences": "", "waits": "_waits", "paired": "_paired"}


def cell(trace: Path, weights: Path, name: str, backfill: bool) -> dict[str, pd.DataFrame]:
    """Return the tables of the agents on one log, with or without backfilling."""
    agents = [f"{name}_{'backfilled' if backfill else 'alone'}_{seed}" for seed in (1, 2, 3)]
    with TemporaryDirectory() as place:
        out = Path(place) / "found.csv"
        run(trace, 0, backfill, [*(str(weights / agent) for agent in agents), *RULES], out)
        found = {kind: pd.read_csv(out.with_name(f"found{end}.csv")) for kind, end in KINDS.items()}
    columns = {"trace": found["sequences"]["trace"].iloc[0], "backfill": int(backfill)}
    found["paired"] = found["paired"].assign(**columns)
    return {kind: table[table["policy"].isin(agents)] for kind, table in found.items()}


if __name__ == "__main__":
    weights, *logs = (Path(word) for word in sys.argv[1:])
    cells = [
        cell(next(log for log in logs if title in log.name), weights, name, backfill)
        for title, name in CELLS.items()
        for backfill in (False, True)
    ]
    for kind in KINDS:
        pd.concat([found[kind] for found in cells]).to_csv(HERE / f"{kind}.csv", index=False)
