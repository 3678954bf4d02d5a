"""Estimate the duration of independent training runs on many nodes, by a list schedule with the cost of each start.

Writes nodes.csv to this folder.
"""

import csv
import heapq
from pathlib import Path

HERE = Path(__file__).resolve().parent
AGENTS, SEEDS = 1000, 5
# Processor seconds of one core, of the default run on two busy cores (23 November 2026): pretrain of deeprm_off,
# deeprm2, deepk8s_ppo, the controller. A kind each for a quarter of the agents.
TRAINING_S = (563.0, 238.0, 112.0, 66.0)
START_S = 3.5  # a stage's start there: imports, kernels from the cache, tracking
DVC_S = 1.4  # DVC writes dvc.lock, one stage at a time


def makespan(slots: int, start_s: float, serial_s: float, longest_first: bool) -> tuple[float, float]:
    """Return the end of the last training, and the share of the slots' time spent on training."""
    every = [TRAINING_S[agent % len(TRAINING_S)] for agent in range(AGENTS) for _ in range(SEEDS)]
    if longest_first:
        every.sort(reverse=True)
    free = [0.0] * slots
    for training_s in every:
        heapq.heappush(free, heapq.heappop(free) + start_s + training_s)
    last = max(*free, len(every) * serial_s)  # dvc.lock is written once a run, in sequence
    return last, sum(every) / (slots * last)


def main() -> None:
    """Write the table."""
    rows = [("slots", "what", "hours", "efficiency")]
    for slots in (2, 100, 800):
        for counted, start_s, serial_s, longest in (
            ("no start costs anything", 0.0, 0.0, True),
            ("each start costs", START_S, 0.0, True),
            ("each start costs, in the order of params.yaml", START_S, 0.0, False),
            ("and one dvc.lock for all", START_S, DVC_S, True),
        ):
            last, used = makespan(slots, start_s, serial_s, longest)
            rows.append((str(slots), counted, f"{last / 3600:.2f}", f"{used:.3f}"))
    with (HERE / "nodes.csv").open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
