"""States of groups that share a cluster, for tests: those of a simulator, and generated ones."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from pipeline.core.config import GroupsScenario
from pipeline.interactive.groups.live import GroupMemory, SharesState
from tests.oracles.groups import PlainGroups


def state_of(
    simulator: PlainGroups, row: GroupsScenario, arrived: Sequence[int], memory: Sequence[GroupMemory]
) -> SharesState:
    """The state that a service would receive in the simulator's current situation."""
    jobs = simulator.jobs

    def job_of(job: int) -> dict[str, Any]:
        demand = dict(zip(row.resources, jobs.demand[job].tolist(), strict=True))
        return {"group": int(jobs.group[job]), "duration": float(jobs.estimate[job]), "demand": demand}

    def queued(job: int) -> dict[str, Any]:
        return {**job_of(job), "queue": row.queues[jobs.queue[job]]}

    return SharesState.model_validate(
        {
            "now": simulator.now,
            "waiting": [{**queued(job), "arrived": float(jobs.arrival[job])} for job in simulator.waiting],
            "running": [{**job_of(job), "started": float(simulator.start[job])} for job in simulator.running],
            "arrived": [queued(job) for job in arrived],
            "memory": [one.model_dump() for one in memory],
        }
    )


AMOUNTS = st.one_of(st.sampled_from([0, 1, 64, 65, 10**6]), st.integers(0, 20))
TIMES = st.one_of(st.sampled_from([0, 1, 5, 1e9]), st.floats(0, 100))
DEMANDS = st.dictionaries(st.sampled_from(["cpu", "cpu", "gpu"]), AMOUNTS, max_size=2)
QUEUES = st.sampled_from(["short", "medium", "long", "short", "medium", "long", "none"])
GROUPS = st.integers(0, 4)
ARRIVED = {"group": GROUPS, "queue": QUEUES, "duration": TIMES, "demand": DEMANDS}
STATES = st.fixed_dictionaries(
    {
        "now": st.sampled_from([100, 1e6]),
        "waiting": st.lists(st.fixed_dictionaries({**ARRIVED, "arrived": TIMES}), max_size=6),
    },
    optional={
        "running": st.lists(
            st.fixed_dictionaries({"group": GROUPS, "started": TIMES, "duration": TIMES, "demand": DEMANDS}), max_size=4
        ),
        "arrived": st.lists(st.fixed_dictionaries(ARRIVED), max_size=4),
        "version": st.sampled_from([1, 1, 1, 2]),
    },
)


def assert_answers(state: dict[str, Any], decision: dict[str, Any]) -> None:
    """Check a decision on this state: each group has units that exist, and all of its queues in an order."""
    assert len(decision["shares"]) == len(decision["memory"]) == 4
    for share in decision["shares"]:
        assert 0 <= share["units"]["cpu"] <= 64
        assert sorted(share["order"]) == ["long", "medium", "short"]
    assert decision["until"] > state["now"]
