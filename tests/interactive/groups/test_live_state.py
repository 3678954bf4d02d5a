"""A state is seen as the simulator shows it, when what an answer remembers is handed back."""

from typing import Any

import numpy as np
import pytest
from group_models import drawn
from group_rows import shared
from live_shares import state_of

from pipeline.errors import UserError
from pipeline.interactive.groups.live import GroupMemory, SharesState, decider, episode_of, seen
from pipeline.interactive.live.deciding import ONLY
from pipeline.problems.groups.env.nouns import Setting
from pipeline.problems.groups.env.workload.source import cluster_of
from tests.oracles.groups import PlainGroups

PARAMS = shared()
ROW = PARAMS.groups_scenario("shared")
CLUSTER = cluster_of(ROW)


@pytest.mark.parametrize("rule", ["drf", "shortest_first", "fixed"])
def test_a_state_shows_what_the_simulator_shows(rule: str) -> None:
    decide, looked = decider(PARAMS, "shared", rule, {f"{rule}_order": 1.0}), 0
    for jobs in drawn(PARAMS, 120, 2):
        simulator = PlainGroups(jobs, CLUSTER, np.ones(len(jobs.arrival)))
        memory: tuple[GroupMemory, ...] = ()
        before = list(range(len(jobs.arrival)))
        while not simulator.over:
            arrived = before[: len(before) - len(simulator.coming)]
            before = list(simulator.coming)
            state = state_of(simulator, ROW, arrived, memory)
            shown = simulator.observe()
            for name, mine, its in zip(shown._fields, seen(episode_of(state, ROW, CLUSTER), state), shown, strict=True):
                np.testing.assert_allclose(mine, its, err_msg=name, atol=1e-9)
            found = decide(state)
            units = [[share.units[name] for name in ROW.resources] for share in found.shares]
            order = [ROW.orders.index(share.order) for share in found.shares]
            mine_set = decide.act(episode_of(state, ROW, CLUSTER), ONLY, shown, np.zeros(1))
            assert (units, order) == (mine_set.share[0].tolist(), mine_set.order[0].tolist())
            assert set(order) == {1}
            memory, looked = found.memory, looked + 1
            simulator.step(Setting(np.array([units]), np.array([order])))
    assert looked > 10


def state(**changes: Any) -> SharesState:
    return SharesState.model_validate({"now": 10.0, "waiting": []} | changes)


JOB = {"group": 0, "queue": "short", "duration": 2.0, "demand": {"cpu": 1}}
RUNS = {"group": 0, "started": 9.0, "duration": 2.0, "demand": {"cpu": 1}}
MEMORY = {"units": {"cpu": 4}, "order": ["short", "long"], "recent_jobs": {}, "recent_work": {}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"waiting": [JOB | {"arrived": 9.0, "group": 2}]}, "waiting job 0: there is no group 2; expected 0 to 1"),
        (
            {"arrived": [JOB, JOB | {"queue": "night"}]},
            "arrived job 1: there is no queue 'night'; expected short, long",
        ),
        ({"running": [RUNS | {"demand": {"gpu": 1}}]}, "running job 0: there is no 'gpu'; expected cpu, memory"),
        ({"running": [RUNS | {"demand": {"cpu": 9}}]}, "running job 0 wants [9, 0] units; there are [8, 6]"),
        ({"running": [RUNS | {"demand": {"cpu": 5}}] * 2}, "running jobs hold 10 of cpu; there are 8"),
        (
            {"waiting": [JOB | {"arrived": 9.0, "demand": {"cpu": 9}}]},
            "waiting job 0 wants [9, 0] units; there are [8, 6]",
        ),
        ({"memory": [MEMORY]}, "memory is of 1 groups; expected 2"),
        ({"memory": [MEMORY, MEMORY | {"order": ["long"]}]}, "memory of group 1: order long is none of the scenario's"),
    ],
)
def test_a_state_that_speaks_of_what_is_not_there_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as refused:
        episode_of(state(**changes), ROW, CLUSTER)
    assert str(refused.value) == said


def test_a_state_goes_on_as_the_simulator_does() -> None:
    """The only group's unit comes back at 13, when the first of two jobs that wait for it starts."""
    waits = [JOB | {"arrived": 9.0 + k, "demand": {"cpu": 8}} for k in range(2)]
    episode = episode_of(state(waiting=waits, running=[RUNS | {"duration": 4.0}]), ROW, CLUSTER)
    episode.step(np.zeros(1, dtype=np.int64), Setting(np.full((1, 2, 2), 8), np.zeros((1, 2), dtype=np.int64)))
    assert (episode.served().start + 10.0).tolist()[:2] == [9.0, 13.0]
    assert (episode.now + 10.0).tolist() == [15.0]
