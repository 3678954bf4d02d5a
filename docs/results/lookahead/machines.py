"""What looking ahead is worth on sequences of real logs that do not overlap, by RLScheduler's protocol.

    PYTHONPATH=. python docs/results/lookahead/machines.py ../shared/traces/LOG ...

Writes apart.csv.gz: mean bounded slowdown of each heuristic, alone and looking ahead, on every sequence of each log
behind the jobs that futures are taken from, with and without backfilling.
"""

import sys
from pathlib import Path

import pandas as pd

from pipeline.problems.machines.benchmark import PAST
from pipeline.problems.machines.evaluation.rlscheduler import Player, apart, rows
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead.futures import outlook
from pipeline.problems.machines.lookahead.naming import planned
from pipeline.problems.machines.lookahead.planner import Reach
from pipeline.problems.machines.workload.rlscheduler import SEQUENCE, read_protocol
from pipeline.progress import say

HERE = Path(__file__).resolve().parent
BASES = ("saf", "f1", "sjf")
MOST = 1_000_000  # jobs of a log
KEPT = ["trace", "backfill", "seq", "policy", "avg_bounded_slowdown", "p99_wait_s"]


def played(trace: Path) -> pd.DataFrame:
    """Return a row a sequence and policy of one log."""
    log = read_protocol(trace, MOST)
    past = outlook([log.jobs(0, PAST)])
    who = {name: Player(HEURISTICS[name], SEQUENCE) for name in BASES}
    who |= {f"plan_{name}": Player(planned(HEURISTICS[name], name, past, Reach()), SEQUENCE) for name in BASES}
    title, parts = trace.name.split(".")[0].split("-")[0], []
    for backfill in (False, True):
        parts.append(rows(log, title, backfill, who, apart(log, behind=PAST), lambda share: None))
        say(f"{title}, backfilling {backfill}")
    return pd.concat(parts)


if __name__ == "__main__":
    found = pd.concat([played(Path(name)) for name in sys.argv[1:]])
    packed = {"method": "gzip", "mtime": 0}
    found[KEPT].to_csv(HERE / "apart.csv.gz", index=False, float_format="%.6g", compression=packed)
