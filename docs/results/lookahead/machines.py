"""Value of look-ahead on non-overlapping sequences of real logs, by RLScheduler's protocol.

    PYTHONPATH=. python docs/results/lookahead/machines.py ../shared/traces/LOG ...

Writes apart.csv.gz: mean bounded slowdown of each heuristic, with and without look-ahead and backfilling, on every
sequence of a log after the jobs that futures are drawn from.
"""

import sys
from pathlib import Path

import pandas as pd

from pipeline.interactive.machines.benchmark import PAST, Player, apart, rows
from pipeline.interactive.machines.rlscheduler_workload import SEQUENCE, read_protocol
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead.futures import arrival_model
from pipeline.problems.machines.lookahead.plans import USUAL, planned
from pipeline.progress import say

HERE = Path(__file__).resolve().parent
BASES = ("saf", "f1", "sjf")
MOST = 1_000_000  # jobs of a log
KEPT = ["trace", "backfill", "seq", "policy", "avg_bounded_slowdown", "p99_wait_s"]


def played(trace: Path) -> pd.DataFrame:
    """Return one row per sequence and policy of one log."""
    log = read_protocol(trace, MOST)
    past, parts = arrival_model([log.jobs(0, PAST)]), []
    who = {name: Player(HEURISTICS[name], SEQUENCE) for name in BASES}
    who |= {f"plan_{name}": Player(planned(HEURISTICS[name], name, past, USUAL), SEQUENCE) for name in BASES}
    title = trace.name.split(".")[0].split("-")[0]
    for backfill in (False, True):
        parts.append(rows(log, title, backfill, who, apart(log, after=PAST), lambda share: None))
        say(f"{title}, backfilling {backfill}")
    return pd.concat(parts)[KEPT]


if __name__ == "__main__":
    table, packed = pd.concat([played(Path(name)) for name in sys.argv[1:]]), {"method": "gzip", "mtime": 0}
    table.to_csv(HERE / "apart.csv.gz", index=False, float_format="%.6g", compression=packed)
