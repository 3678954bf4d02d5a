"""Value of look-ahead on non-overlapping sequences of real logs, by RLScheduler's protocol.

    PYTHONPATH=. python docs/results/lookahead/machines.py apart ../shared/traces/LOG ...
    PYTHONPATH=. python docs/results/lookahead/machines.py choose ../shared/traces/HPC2N-2002-2.2-cln.first15000.swf.gz

`apart` writes apart.csv.gz: mean bounded slowdown of each heuristic, with and without look-ahead and backfilling, on
every sequence of a log after the jobs that futures are drawn from. `choose` writes chosen.csv: the same for the first
five of these sequences, with several numbers of futures and margins.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pipeline.interactive.machines.benchmark import PAST, Player, apart, rows
from pipeline.interactive.machines.rlscheduler_workload import SEQUENCE, read_protocol
from pipeline.lookahead.planner import SearchBudget
from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.lookahead.futures import arrival_model
from pipeline.problems.machines.lookahead.plans import USUAL, planned
from pipeline.progress import say

HERE = Path(__file__).resolve().parent
BASES = ("saf", "f1", "sjf")
MOST = 1_000_000  # jobs of a log
FIRST = 5  # sequences that settings were chosen on
TRIED = {
    (futures, sure): USUAL._replace(futures=futures, sure=sure) for futures in (16, 64) for sure in (0.0, 1.0, 2.0)
}
KEPT = ["trace", "backfill", "seq", "policy", "avg_bounded_slowdown", "p99_wait_s"]


def played(trace: Path, budgets: Sequence[SearchBudget], most: int | None = None) -> pd.DataFrame:
    """Return one row per sequence and policy of one log; `most`: limit of sequences."""
    log = read_protocol(trace, MOST)
    past, parts = arrival_model([log.jobs(0, PAST)]), []
    who = {name: Player(HEURISTICS[name], SEQUENCE) for name in BASES}
    for budget in budgets:
        end = "" if len(budgets) == 1 else f" {budget.futures} {budget.sure:g}"
        who |= {f"plan_{name}{end}": Player(planned(HEURISTICS[name], name, past, budget), SEQUENCE) for name in BASES}
    title = trace.name.split(".")[0].split("-")[0]
    for backfill in (False, True):
        parts.append(rows(log, title, backfill, who, apart(log, after=PAST)[:most], lambda share: None))
        say(f"{title}, backfilling {backfill}")
    return pd.concat(parts)[KEPT]


if __name__ == "__main__":
    if sys.argv[1] == "choose":
        table = played(Path(sys.argv[2]), list(TRIED.values()), FIRST)
        table.round(4).to_csv(HERE / "chosen.csv", index=False)
    else:
        table = pd.concat([played(Path(name), [USUAL]) for name in sys.argv[2:]])
        packed = {"method": "gzip", "mtime": 0}
        table.to_csv(HERE / "apart.csv.gz", index=False, float_format="%.6g", compression=packed)
