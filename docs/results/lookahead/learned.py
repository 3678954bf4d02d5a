"""Value of look-ahead for the learned agents of RLScheduler's protocol, on its ten sequences and on others.

    PYTHONPATH=. python docs/results/lookahead/learned.py WEIGHTS ../shared/traces/lublin_256.swf.gz \
        ../shared/traces/HPC2N-2002-2.2-cln.first15000.swf.gz

WEIGHTS holds the model directories of docs/results/rlscheduler/params.yaml by name. Writes learned.csv.gz: mean bounded
slowdown of each sequence by each agent, without look-ahead and with the default.
"""

import sys
from pathlib import Path

import pandas as pd

from pipeline.core import storage
from pipeline.core.config import MachinesCard
from pipeline.interactive.machines.benchmark import PAST, Player, apart, fitting, rows
from pipeline.interactive.machines.rlscheduler_workload import Protocol, read_protocol
from pipeline.problems.machines.agents.networks.loading import restore
from pipeline.problems.machines.lookahead.futures import arrival_model
from pipeline.problems.machines.lookahead.plans import LEARNED, network_base, planned
from pipeline.progress import say

HERE = Path(__file__).resolve().parent
MOST = 1_000_000  # jobs of a log
LOGS = {"lublin": "lublin_256", "hpc2n": "HPC2N"}  # by the prefix of agents' names
KEPT = ["trace", "backfill", "seq", "policy", "avg_bounded_slowdown"]


def players(log: Protocol, folder: Path) -> dict[str, Player]:
    """Return an agent with and without look-ahead."""
    model, past = storage.read_model(folder, MachinesCard), arrival_model([log.jobs(0, PAST)])
    base, slots, name = network_base(model.card, model.weights), model.card.slots, folder.name
    return {
        name: Player(restore(model.card, model.weights).policy, slots),
        f"plan_{name}": Player(planned(base, name, past, LEARNED), slots),
    }


def played(log: Protocol, title: str, folder: Path) -> pd.DataFrame:
    """Return one row per sequence and policy of one agent; `set`: ten (published) or apart (separate)."""
    backfill, parts = "backfilled" in folder.name, []
    for kind, starts in (("ten", fitting(log)), ("apart", apart(log, after=PAST))):
        who = players(log, folder)
        parts.append(rows(log, title, backfill, who, starts, lambda share: None)[KEPT].assign(set=kind))
    say(f"{folder.name}: " + ", ".join(f"{k} {v:.1f}" for k, v in _means(parts[0]).items()))
    return pd.concat(parts)


def _means(found: pd.DataFrame) -> "pd.Series[float]":
    return found.groupby("policy", sort=False)["avg_bounded_slowdown"].mean()


if __name__ == "__main__":
    logs = {title: read_protocol(Path(name), MOST) for name in sys.argv[2:] for title in LOGS.values() if title in name}
    agents = sorted(Path(sys.argv[1]).iterdir(), key=lambda folder: folder.name[::-1])
    table = pd.concat([played(logs[LOGS[one.name.split("_")[0]]], LOGS[one.name.split("_")[0]], one) for one in agents])
    packed = {"method": "gzip", "mtime": 0}
    table.to_csv(HERE / "learned.csv.gz", index=False, float_format="%.6g", compression=packed)
