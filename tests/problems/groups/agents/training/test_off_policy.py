"""Off-policy evaluation: costs that logs alone foretell, by hand and beside what the simulator says."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from group_builders import CLUSTER, RECIPE, REPLAY, Job, built, drawn_jobs, give, jobset, tiny_task

from pipeline.core.config import QNetworkConfig
from pipeline.core.types import FloatArray
from pipeline.problems.groups.agents.networks.features import States, shape_of
from pipeline.problems.groups.agents.training import off_policy
from pipeline.problems.groups.agents.training.off_policy import Fit, estimated, fitted
from pipeline.problems.groups.agents.training.off_policy import off_policy as examined
from pipeline.problems.groups.agents.training.task import Transitions
from pipeline.problems.groups.env.nouns import Jobs, Observation, Setting
from pipeline.problems.groups.env.tables import OFF_POLICY
from pipeline.problems.groups.env.teachers import equal, proportional

NETWORK = QNetworkConfig(name="q_network", hidden=(16, 8), weights="shared")
HOW = Fit(gamma=0.5, steps=300, batch=32, learning_rate=0.02, target=10, clip=1.0)


def states(*numbers: int) -> States:
    """States that are told apart by one feature."""
    shape = shape_of(CLUSTER)
    told = np.zeros((len(numbers), 2, shape.features), dtype=np.float32)
    told[:, :, :3] = np.array(numbers)[:, None, None] == np.arange(3)
    return States(told, np.zeros((len(numbers), 2, shape.amounts), dtype=np.float32))


def meant(*units: int) -> Setting:
    """The same units for both groups, in some states."""
    share = np.array(units)[:, None, None].repeat(2, axis=1)
    return Setting(share, np.zeros((len(units), 2), dtype=np.int64))


def logged(*rows: tuple[int, int, float, int | None]) -> Transitions:
    """A log of (state, units that both groups were given, cost of each group, next state or None where it was over)."""
    seen, units, cost, then = zip(*rows, strict=True)
    share, order = meant(*units)
    reward = -np.array(cost, dtype=np.float32)[:, None].repeat(2, axis=1)
    over = np.array([state is None for state in then])
    after = states(*[state or 0 for state in then])
    return Transitions(states(*seen), share.astype(np.float32), order, reward, after, over)


def foretold(
    log: Transitions, then: Sequence[int], now: Sequence[int], units: Sequence[int], how: Fit = HOW
) -> FloatArray:
    """The estimated cost of giving `units` in states `now`, where `then` is what is meant in the log's next states."""
    network = built("shared", 2, CLUSTER, np.zeros((2, shape_of(CLUSTER).past), dtype=np.float32))
    fitted(network, log, meant(*then), how, seed=4)
    return estimated(network, states(*now), meant(*units))


def test_a_cost_behind_which_an_episode_is_over_is_all_that_it_costs() -> None:
    log = logged((0, 2, 3.0, None), (1, 2, 1.0, None))
    assert foretold(log, [2, 2], [0, 1], [2, 2]) == pytest.approx([6, 2], rel=0.05)  # of two groups


def test_a_cost_that_never_ends_is_discounted() -> None:
    log = logged((0, 2, 3.0, 0))
    assert foretold(log, [2], [0], [2]) == pytest.approx([2 * 3 / (1 - 0.5)], rel=0.05)
    assert foretold(log, [2], [0], [2], HOW._replace(gamma=0.0)) == pytest.approx([2 * 3], rel=0.05)


def test_costs_to_come_are_those_of_the_next_states() -> None:
    # From 0 to 1 to the end: 1 + 4 / 2, and 4.
    log = logged((0, 2, 1.0, 1), (1, 2, 4.0, None))
    assert foretold(log, [2, 0], [0, 1], [2, 2]) == pytest.approx([6, 8], rel=0.05)


@pytest.mark.parametrize(("units", "later"), [(0, 8.0), (4, 1.0)])
def test_what_counts_is_what_would_be_set_and_not_what_the_log_did(units: int, later: float) -> None:
    # In state 1 the log gave nothing at a cost of 8, and all at a cost of 1.
    log = logged((0, 2, 0.0, 1), (1, 0, 8.0, None), (1, 4, 1.0, None))
    assert foretold(log, [units, 0, 0], [0], [2]) == pytest.approx([2 * later / 2], rel=0.1)


def test_a_rare_high_cost_has_its_weight_in_the_mean() -> None:
    log = logged(*[(0, 2, 0.0, None)] * 9, (0, 2, 10.0, None))
    assert foretold(log, [2] * 10, [0], [2]) == pytest.approx([2 * 10 / 10], rel=0.3)


def estimates(
    held_out: Sequence[Jobs], monkeypatch: pytest.MonkeyPatch, gamma: float = 0.5, **controllers: object
) -> pd.DataFrame:
    """Hand over after the first interval; fits are of a few steps only, because the truth does not depend on them."""
    monkeypatch.setattr(off_policy, "FIT", Fit(gamma, 20, 64, 5e-3, 10, 1.0))
    monkeypatch.setattr(off_policy, "EARLIEST", 1)
    monkeypatch.setattr(off_policy, "LATEST", 2)
    task = tiny_task(RECIPE)._replace(cluster=CLUSTER._replace(time_limit=60.0))
    return examined(task, NETWORK, REPLAY, controllers, held_out)


def starving(view: Observation, draws: FloatArray) -> Setting:
    """Give group 0 nothing."""
    return give(0, 4, episodes=len(draws))


def lone(arrival: float) -> Jobs:
    return jobset(Job(arrival, 5, 4, group=0))


def test_the_truth_is_the_discounted_cost_from_the_hand_over_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # Handed over at 10; the job arrives at 25 or 35 and is starved until the cut at 60. Intervals from 10 on:
    # 0 + 5 / 2 + 10 / 4 + 10 / 8 + 10 / 16 = 6.875, and 0 + 0 + 5 / 4 + 10 / 8 + 10 / 16 = 3.125. The other jobset is
    # over before it is handed over.
    found = estimates([lone(25), lone(0), lone(35)], monkeypatch, starving=starving)
    row = found.iloc[0]
    assert (row["policy"], row["n"]) == ("starving", 2)
    assert row["truth"] == pytest.approx(5)
    half = 1.96 * 1.875  # two truths, each 1.875 from their mean: a standard error of 1.875
    assert (row["truth_low"], row["truth_high"]) == pytest.approx((5 - half, 5 + half))
    assert row["error"] == pytest.approx(row["estimate"] / 5 - 1)
    assert row["low"] == row["estimate"] == row["high"]  # nothing has happened yet: the states are the same


def test_until_the_hand_over_demand_is_shared_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of group 0, 4 units from 0 to 25: were it starved from the beginning, it would cost 10 an interval. The other job
    # of 4 units waits for these from 12 to 25, though all is its group's: 8 + 5 / 2, whatever is given later.
    jobs = jobset(Job(0, 25, 4, group=0), Job(12, 1, 4, group=1))
    found = estimates([jobs, jobs], monkeypatch, starving=starving)
    assert found["truth"].tolist() == pytest.approx([8 + 5 / 2])
    assert found["n"].tolist() == [2]


def test_the_interval_of_the_hand_over_is_the_controllers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    # The job arrives at 5, when both groups have 2 units, and would start at 10 by its demand: starved from there on,
    # it costs 10 + 5 + 10 / 4 + 10 / 8 + 10 / 16.
    found = estimates([lone(5), lone(5)], monkeypatch, starving=starving)
    assert found["truth"].tolist() == pytest.approx([19.375])


def counting(view: Observation, draws: FloatArray) -> Setting:
    """Give group 0 a unit for each job that waits in its queue 0, up to 4."""
    share = np.zeros_like(view.share)
    share[:, 0, 0] = np.minimum(view.waiting[:, 0, 0], 4)
    return Setting(share, np.zeros_like(view.order))


def test_the_log_says_what_followed_and_what_would_be_set_there(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Transitions, Setting]] = []
    monkeypatch.setattr(off_policy, "fitted", lambda network, log, then, how, seed: given.append((log, then)))
    estimates([lone(25), lone(35)], monkeypatch, counting=counting)
    ((log, then),) = given
    assert log.over.sum() == 4  # jobsets
    told = [state.tobytes() for state in log.state.features]
    after = [state.tobytes() for state in log.then.features]
    assert all(a == b for a, b, over in zip(after, told, log.over, strict=True) if over)
    goes_on = ~log.over
    assert {a for a, on in zip(after, goes_on, strict=True) if on} <= set(told)
    assert (log.then.features[goes_on] != log.state.features[goes_on]).any(axis=(1, 2)).mean() > 0.9
    waiting = np.expm1(log.then.features[:, 0, 0]).round()
    assert waiting.max() > 1
    assert then.share[:, 0, 0].tolist() == np.minimum(waiting, 4).tolist()
    assert not then.share[:, 1].any()


def test_the_table_has_a_row_a_controller_and_passes_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {"equal": equal(CLUSTER, 0), "starving": starving}
    found = estimates([lone(25), lone(35)], monkeypatch, **rules)
    assert found["policy"].tolist() == ["equal", "starving"]
    pd.testing.assert_frame_equal(OFF_POLICY.validate(found), found)
    assert found["decisions"].nunique() == 1


def test_the_estimate_is_near_the_truth_where_the_log_is_the_rules_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = CLUSTER._replace(time_limit=1e6)
    rule = proportional(cluster, 0)
    monkeypatch.setattr(off_policy, "mixed", lambda task, log: lambda rows, view: rule(view, np.zeros(len(rows))))
    monkeypatch.setattr(off_policy, "FIT", Fit(0.8, 600, 64, 1e-2, 25, 1.0))
    monkeypatch.setattr(off_policy, "EARLIEST", 2)
    monkeypatch.setattr(off_policy, "LATEST", 20)
    jobsets = [drawn_jobs(140, k, count=80) for k in range(40)]
    task = tiny_task(RECIPE)._replace(cluster=cluster, train={100: jobsets})
    row = examined(task, NETWORK, REPLAY.model_copy(update={"jobsets": 40}), {"proportional": rule}, jobsets).iloc[0]
    assert row["n"] == 40
    assert row["decisions"] > 1000
    assert row["truth"] > 10  # it is a cost worth foretelling
    assert abs(row["error"]) < 0.2
