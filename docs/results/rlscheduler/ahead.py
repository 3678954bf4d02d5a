"""Run one policy with look-ahead and five rules by RLScheduler's protocol on non-overlapping sequences.

    PYTHONPATH=. python docs/results/rlscheduler/ahead.py estimates|exact 0|1 COUNT LOG ...

Adds to ahead.csv.gz the first COUNT sequences of each log that it lacks, without (0) or with (1) backfilling, with
users' estimates, as in the protocol, or with known run times; a log without estimates has only `exact`. The sequences
start after the jobs that futures are drawn from. Their order is random, so the first few are a sample. `plan_saf` on
lublin_256 and HPC2N is from ../lookahead/apart.csv.gz, without `idle`; today's planner gives the same digits.
"""

import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.core.types import SHORTEST_BOUNDED, THOUSANDTHS, FloatArray
from pipeline.interactive.machines.benchmark import PAST, Player, apart, play
from pipeline.interactive.machines.rlscheduler_workload import ESTIMATE, SEQUENCE, Protocol, read_protocol
from pipeline.problems.machines.env.nouns import end_to_end
from pipeline.problems.machines.heuristics.rules import HEURISTICS, PEERS
from pipeline.problems.machines.lookahead.futures import arrival_model
from pipeline.problems.machines.lookahead.plans import planned
from pipeline.progress import say

OUT = Path(__file__).resolve().with_name("ahead.csv.gz")
FIVE = ("saf", "f1", "sjf", "wfp3", "unicep")
PICKED = "saf"  # base of the planner, chosen on HPC2N
SEED = 1  # of the order of sequences
COLUMNS = ["trace", "told", "backfill", "seq", "policy", "avg_bounded_slowdown", "idle"]
LOGS = {
    "lublin_256": "lublin_256",
    "lublin_256_new2": "Lublin-2",
    "lublin-aaroh": "lublin_aaroh",
    "KTH-SP2": "KTH SP2",
    "CEA-Curie-sample": "CEA Curie",
    "LLNL-Atlas": "LLNL Atlas",
    "HPC2N-2002-2": "HPC2N",
}


def sequences(log: Protocol) -> list[tuple[int, int]]:
    """Return (number, index of the first job) of sequences, in random order."""
    later = apart(log, after=PAST)
    return [later[k] for k in np.random.default_rng(SEED).permutation(len(later))]


def played(log: Protocol, known: str, backfill: int, seq: int, start: int) -> pd.DataFrame:
    """Return one row per policy."""
    if known == "exact":
        log = log._replace(fields=np.where(np.arange(log.fields.shape[1]) == ESTIMATE, -1, log.fields))
    rules = {name: {**HEURISTICS, **PEERS}[name] for name in FIVE}
    past = arrival_model([log.jobs(0, PAST)])
    who = {**rules, f"plan_{PICKED}": planned(rules[PICKED], PICKED, past)}
    jobs, found = end_to_end([log.jobs(start)]), []
    for name, policy in who.items():
        placed = play(log, jobs, bool(backfill), Player(policy, SEQUENCE))
        wait = placed.start - jobs.arrival
        slowdown = np.maximum(1.0, (wait + jobs.duration) / np.maximum(jobs.duration, SHORTEST_BOUNDED)).mean()
        held = jobs.demand[:, 0] / THOUSANDTHS
        idle = free_though_one_fits(jobs.arrival, placed.start, placed.finish, held, log.processors)
        found.append([known, backfill, seq, name, slowdown, idle])
    return pd.DataFrame(found, columns=COLUMNS[1:])


def free_though_one_fits(
    arrival: FloatArray, start: FloatArray, finish: FloatArray, held: FloatArray, processors: int
) -> float:
    """Return the share of processor time, up to the last start, that is free while a waiting job would fit.

    >>> one, later = np.array([0.0, 0, 0]), np.array([0.0, 4, 4])
    >>> free_though_one_fits(one, later, later + 4, np.array([1.0, 2, 1]), 3)  # 2 of 3 are free until 4
    0.6666666666666666
    """
    times = np.unique(np.concatenate([arrival, start, finish]))
    times = times[times <= start.max()]
    order = {kind: np.argsort(at, kind="stable") for kind, at in (("start", start), ("finish", finish))}
    begun, ended = (
        np.concatenate([[0.0], np.cumsum(held[order[kind]])])[np.searchsorted(at[order[kind]], times, side="right")]
        for kind, at in (("start", start), ("finish", finish))
    )
    busy = begun - ended
    free = processors - busy
    waiting = (arrival[:, None] <= times) & (start[:, None] > times)
    fits = np.where(waiting, held[:, None], np.inf).min(axis=0) <= free
    return float((free * fits)[:-1] @ np.diff(times) / (times[-1] - times[0]) / processors)


def main(known: str, backfill: int, count: int, paths: list[Path]) -> None:
    """Run those of the first sequences of each log that are missing; write after each."""
    for path, k in product(paths, range(count)):
        kept = pd.read_csv(OUT) if OUT.exists() else pd.DataFrame(columns=COLUMNS)
        there = set(kept[COLUMNS[:4]].itertuples(index=False, name=None))
        log, title = read_protocol(path, 1_000_000), LOGS[path.name.split(".")[0]]
        for seq, start in sequences(log)[k : k + 1]:
            if (title, known, backfill, seq) not in there:
                begun = time.process_time()
                rows = played(log, known, backfill, seq, start).assign(trace=title)[COLUMNS]
                kept = pd.concat([kept, rows], ignore_index=True) if len(kept) else rows
                kept.to_csv(OUT, index=False, float_format="%.6g", compression={"method": "gzip", "mtime": 0})
                say(f"{title}, {known}, backfilling {backfill}: {k + 1}, {time.process_time() - begun:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), [Path(name) for name in sys.argv[4:]])
