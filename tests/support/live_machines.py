"""States of machines for tests: those of a simulator, and generated ones."""

import math
from typing import Any

from hypothesis import strategies as st

from pipeline.core.config import MachinePark
from pipeline.interactive.machines.live.state import MachinesState
from tests.oracles.machines import PlainSimulator

NAMES = ("first", "second", "third")


def park_like(simulator: PlainSimulator) -> MachinePark:
    """The machines of a simulator; their kinds are named by number."""
    machines = simulator.machines
    return MachinePark(
        resources=NAMES[: machines.capacity.shape[1]],
        capacity=tuple(tuple(row) for row in machines.capacity.tolist()),
        kind=tuple(machines.kind.tolist()),
        kind_names=("0", "1", "2"),
        unit=1.0,
    )


def state_of(simulator: PlainSimulator) -> MachinesState:
    """The state that a service would receive in the simulator's current situation."""
    jobs = simulator.jobs

    def demand(job: int) -> dict[str, float]:
        return {name: amount / 1000 for name, amount in zip(NAMES, jobs.demand[job].tolist(), strict=False)}

    waiting = [
        {
            "id": f"job {job}",
            "arrived": float(jobs.arrival[job]),
            "duration": float(jobs.estimate[job]),
            "demand": demand(job),
            "nodes": int(jobs.nodes[job]),
            "kinds": [str(kind) for kind in range(3) if int(jobs.kinds[job]) >> kind & 1],
        }
        for job in simulator.waiting
    ]
    running = [
        {
            "id": f"job {job}",
            "started": simulator.start[job],
            "duration": float(jobs.estimate[job]),
            "demand": demand(job),
            "machines": [str(k) for k in places],
        }
        for job, places in simulator.running.items()
    ]
    last = float(jobs.arrival[simulator.joined - 1])
    return MachinesState.model_validate(
        {"now": simulator.now, "last_arrival": last, "waiting": waiting, "running": running}
    )


AMOUNTS = st.one_of(st.sampled_from([0, 0.5, 1, 4, 10, 1e6]), st.floats(0, 20))
TIMES = st.one_of(st.sampled_from([0, 1, 5, 1e9]), st.floats(0, 100))
DEMANDS = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), AMOUNTS, max_size=3)
TEXTS = st.one_of(st.sampled_from(["a", "b", "c", "0", "1"]), st.text(max_size=5))
WAITING = st.fixed_dictionaries(
    {"id": TEXTS, "arrived": TIMES, "duration": TIMES, "demand": DEMANDS},
    optional={"nodes": st.integers(0, 7), "kinds": st.none() | st.lists(st.sampled_from(["", "a"]), max_size=2)},
)
RUNNING = st.fixed_dictionaries(
    {
        "id": TEXTS,
        "started": TIMES,
        "duration": TIMES,
        "demand": DEMANDS,
        "machines": st.lists(st.sampled_from(["0", "1", "2", "a", "z"]), min_size=1, max_size=3),
    }
)
MACHINES = st.fixed_dictionaries({"name": TEXTS, "has": DEMANDS}, optional={"kind": st.sampled_from(["", "a", "b"])})
ANYTHING = st.fixed_dictionaries(
    {"now": st.sampled_from([100, 1e6]), "waiting": st.lists(WAITING, max_size=12)},
    optional={
        "running": st.lists(RUNNING, max_size=4),
        "machines": st.lists(MACHINES, max_size=4),
        "version": st.sampled_from([1, 1, 1, 2]),
    },
)
# Only one in thirty of the states above is a valid cluster. These mostly are, so that answers are tested often enough.
LIKELY = st.fixed_dictionaries(
    {
        "now": st.just(100),
        "waiting": st.lists(
            st.fixed_dictionaries(
                {
                    "id": st.text(min_size=1, max_size=5),
                    "arrived": st.floats(0, 100),
                    "duration": st.floats(0.1, 100),
                    "demand": st.fixed_dictionaries({"cpu": st.sampled_from([0.5, 1, 4, 10])}),
                }
            ),
            max_size=12,
            unique_by=lambda job: str(job["id"]),
        ),
    }
)
STATES = ANYTHING | LIKELY
NOTHING_LIKE_IT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["now", "waiting", "running", "machines", "id", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def assert_answers(state: dict[str, Any], decision: dict[str, Any]) -> None:
    """Check a decision on this state: each waiting job is ranked once or can never run, and starts are possible."""
    waiting = {job["id"] for job in state["waiting"]}
    ranked = [job["job"] for job in decision["order"]]
    assert sorted([*ranked, *decision["never"]]) == sorted(waiting)
    assert all(job["score"] is None or math.isfinite(job["score"]) for job in decision["order"])
    started = [one["job"] for one in decision["starts"]]
    assert len(started) == len(set(started))
    assert set(started) <= set(ranked)
