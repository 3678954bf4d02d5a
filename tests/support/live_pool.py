"""States of a pooled cluster for tests: those of a simulator, and generated ones."""

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pipeline.interactive.pool.live.state import PoolState
from pipeline.problems.pool.env.nouns import Cluster
from tests.oracles.pool import Timestep

NAMES = ("first", "second", "third")


def units_of(cluster: Cluster) -> dict[str, int]:
    """Units of a test's cluster, by resource name."""
    return dict(zip(NAMES, cluster.capacity, strict=False))


def in_order(simulator: Timestep) -> None:
    """Put a simulator's waiting jobs into its slots in order of arrival, the order in a state."""
    jobs = sorted(job for job in simulator.slots if job is not None)
    simulator.slots = [*jobs, *[None] * (len(simulator.slots) - len(jobs))]


def state_of(simulator: Timestep) -> PoolState:
    """The state that a service would receive in the simulator's current situation."""
    jobs, now = simulator.jobs, simulator.now

    def job_of(job: int) -> dict[str, Any]:
        demand = {name: int(units) for name, units in zip(NAMES, jobs.demand[job], strict=False)}
        return {"id": f"job {job}", "duration": int(simulator.requested[job]), "demand": demand}

    waits = [job for job in simulator.slots if job is not None] + list(simulator.backlog)
    runs = [job for job, start in enumerate(simulator.start) if start >= 0 and not simulator._finished(job)]
    came = len(simulator.start) - len(simulator.to_come)
    steps = simulator.requested[:came]
    work = (steps[:, None] * jobs.demand[:came]).sum(axis=0)
    return PoolState.model_validate(
        {
            "now": now,
            "last_arrival": simulator.last_arrival,
            "waiting": [{**job_of(job), "arrived": int(jobs.arrival[job])} for job in waits],
            "running": [{**job_of(job), "started": simulator.start[job]} for job in runs],
            "so_far": {
                "jobs": came,
                "duration": int(np.sum(steps)),
                "work": {name: int(total) for name, total in zip(NAMES, work, strict=False)},
            },
        }
    )


AMOUNTS = st.one_of(st.sampled_from([0, 1, 5, 10, 11, 10_000]), st.integers(0, 12))
STEPS = st.one_of(st.sampled_from([0, 1, 20, 21, 10**9]), st.integers(0, 25))
DEMANDS = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), AMOUNTS, max_size=3)
TEXTS = st.one_of(st.sampled_from(["a", "b", "c"]), st.text(max_size=5))
WAITING = st.fixed_dictionaries({"id": TEXTS, "arrived": STEPS, "duration": STEPS, "demand": DEMANDS})
RUNNING = st.fixed_dictionaries({"id": TEXTS, "started": STEPS, "duration": STEPS, "demand": DEMANDS})
STATES = st.fixed_dictionaries(
    {"now": st.sampled_from([25, 1000, 10**9]), "waiting": st.lists(WAITING, max_size=15)},
    optional={
        "running": st.lists(RUNNING, max_size=4),
        "resources": st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), AMOUNTS, max_size=3),
        "version": st.sampled_from([1, 1, 1, 2]),
    },
)


def assert_answers(state: dict[str, Any], decision: dict[str, Any]) -> None:
    """Check a decision on this state: each waiting job is ranked once or can never run, and starts are possible."""
    ranked = [job["job"] for job in decision["order"]]
    assert sorted([*ranked, *decision["never"]]) == sorted(job["id"] for job in state["waiting"])
    assert all(job["score"] is None or math.isfinite(job["score"]) for job in decision["order"])
    started = [one["job"] for one in decision["starts"]]
    assert len(started) == len(set(started))
    assert set(started) <= set(ranked)
