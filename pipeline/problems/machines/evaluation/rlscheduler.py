"""RLScheduler's protocol: policies on ten published sequences, and on sequences that do not overlap.

The ten overlap, so that no interval can be had from them; the other ones are consecutive, from the log's first job on.
Bounded slowdown is max(1, (wait + run) / max(run, 10 s)). The peer's utilisation is work over processors times the
time from the first submission to the last *start*.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from pipeline.comparing.resampling import gap_interval, resample
from pipeline.core import SHORTEST_BOUNDED, THOUSANDTHS, KeyArray, Policy
from pipeline.external.guard import PolicyError
from pipeline.problems.machines.evaluation.play import play_on
from pipeline.problems.machines.nouns import BLOCKING, EASY_WITHIN, JobsBatch, Machines, Placed, end_to_end
from pipeline.problems.machines.simulator.compiled.batch import Simulator, bounded_slowdown
from pipeline.problems.machines.workload.rlscheduler import SEQUENCE, STARTS, Protocol
from pipeline.simulation.rollout import Insider

FOREVER = 1e15  # s: no episode is cut
RESAMPLES, CONFIDENCE = 4000, 0.95
REFERENCES = ("sjf", "saf", "f1")


class Player(NamedTuple):
    """A policy, and how many waiting jobs it is shown."""

    policy: Policy | Insider
    slots: int


def fitting(log: Protocol) -> list[tuple[int, int]]:
    """Return (number, start) of the published sequences that a log is long enough for."""
    return [(k, start) for k, start in enumerate(STARTS) if start + SEQUENCE <= len(log.fields)]


def apart(log: Protocol, behind: int = 0) -> list[tuple[int, int]]:
    """Return (number, start) of sequences that do not overlap, of those that begin behind the log's first jobs."""
    return [(k, k * SEQUENCE) for k in range(len(log.fields) // SEQUENCE) if k * SEQUENCE >= behind]


def rows(
    log: Protocol,
    title: str,
    backfill: bool,
    who: Mapping[str, Player],
    starts: Sequence[tuple[int, int]],
    on_progress: Callable[[float], None],
    failed: dict[str, PolicyError],
) -> pd.DataFrame:
    """Return one row for each sequence and policy.

    Args:
        log: as the protocol takes it.
        title: the log's name in the table.
        backfill: are others started behind a job that waits for room?
        who: policies by name.
        starts: (number, index of the first job) of each sequence.
        on_progress: told the share of the policies that have played.
        failed: external policies that failed are added; they have no rows.

    Raises:
        PolicyError: all failed.
    """
    jobs = end_to_end([log.jobs(start) for _, start in starts])
    frames = []
    for done, (name, player) in enumerate(who.items()):
        try:
            placed = play(log, jobs, backfill, player)
        except PolicyError as error:
            failed[name] = error
            continue
        frame = _measured(jobs, placed, log.processors)
        frame.insert(0, "policy", name)
        frame.insert(0, "backfill", int(backfill))
        frame.insert(0, "start_index", [start for _, start in starts])
        frame.insert(0, "seq", [number for number, _ in starts])
        frame.insert(0, "trace", title)
        frames.append(frame)
        on_progress((done + 1) / len(who))
    if not frames:
        raise next(iter(failed.values()))
    return pd.concat(frames, ignore_index=True)


def play(log: Protocol, jobs: JobsBatch, backfill: bool, player: Player) -> Placed:
    """Return where and when a policy starts the jobs of sequences, each on an empty machine."""
    capacity, kind = np.array([[log.processors * THOUSANDTHS]]), np.zeros(1, dtype=np.int64)
    dispatch = EASY_WITHIN if backfill else BLOCKING
    machines = Machines(capacity, kind, player.slots, dispatch, FOREVER, FOREVER)
    simulator = Simulator(jobs, machines, bounded_slowdown(jobs))
    key: KeyArray = np.arange(jobs.episodes, dtype=np.uint64)
    for _ in play_on(simulator, player.policy, key):
        pass
    return simulator.placed()


def _measured(jobs: JobsBatch, placed: Placed, processors: int) -> pd.DataFrame:
    wait = placed.start - jobs.arrival
    slowdown = np.maximum(1.0, (wait + jobs.duration) / np.maximum(jobs.duration, SHORTEST_BOUNDED))
    held = jobs.demand[:, 0] / THOUSANDTHS
    area = held * jobs.duration
    found = []
    for first, last in zip(jobs.first[:-1], jobs.first[1:], strict=True):
        mine = slice(first, last)
        begin, work = jobs.arrival[first], area[mine].sum()
        found.append(
            {
                "avg_bounded_slowdown": slowdown[mine].mean(),
                "avg_wait_s": wait[mine].mean(),
                "utilization_peer": work / ((placed.start[mine].max() - begin) * processors),
                "makespan_s": placed.finish[mine].max() - begin,
                "p99_wait_s": np.quantile(wait[mine], 0.99),
                "longest_wait_s": wait[mine].max(),
                "area_weighted_response_s": (area[mine] * (wait[mine] + jobs.duration[mine])).sum() / work,
            }
        )
    return pd.DataFrame(found)


def paired(found: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return every policy against each reference on the same sequences, which must not overlap.

    The difference is relative: mean of the policy's bounded slowdowns over the mean of the reference's, less 1, with a
    paired bootstrap over sequences.
    """
    value = found.pivot(index="seq", columns="policy", values="avg_bounded_slowdown")
    counts = resample(len(value), RESAMPLES, np.random.default_rng(seed))
    means = pd.DataFrame(counts @ value.to_numpy() / len(value), columns=value.columns)
    table = []
    for reference in (name for name in REFERENCES if name in value):
        for policy in (name for name in found["policy"].unique() if name != reference):
            gap = means[policy] / means[reference] - 1
            low, high = gap_interval(gap[1:].to_numpy(), CONFIDENCE, len(value))
            numbers = {"n": len(value), "mean": means[policy][0], "mean_against": means[reference][0]}
            row = {"policy": policy, "against": reference, **numbers, "difference": gap[0]}
            table.append({**row, "difference_low": float(low), "difference_high": float(high)})
    return pd.DataFrame(table)
