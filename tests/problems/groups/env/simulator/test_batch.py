"""The compiled simulator of groups: by hand, and decision by decision beside the plain one, whatever is set."""

from itertools import product
from typing import NamedTuple

import numba
import numpy as np
import pytest

from pipeline.problems.groups.env.nouns import (
    Jobs,
    Observation,
    Setting,
    SharedCluster,
    batch,
    equal_shares,
)
from pipeline.problems.groups.env.simulator.batch import GroupsSimulator
from tests.oracles.groups import PlainGroups

NAN = float("nan")
ONLY = np.array([0])
PROBLEMS = 12  # of each size
CLOSE = {"rtol": 1e-12, "atol": 1e-9}  # sums, taken in another order


class Job(NamedTuple):
    arrival: float
    duration: float
    demand: int
    group: int
    queue: int = 0
    estimate: float | None = None


def begin(*rows: Job, borrowing: bool = False, time_limit: float = 100.0) -> GroupsSimulator:
    """Begin one episode: 4 units, two groups of two queues, a decision every 10 time units, waiting costs 1 a unit."""
    arrival, duration, _, group, queue, _ = (list(column) for column in zip(*rows, strict=True))
    estimate = [row.duration if row.estimate is None else row.estimate for row in rows]
    demand = np.array([[row.demand] for row in rows])
    jobs = Jobs(*(np.array(c, dtype=float) for c in (arrival, duration, estimate)), demand, group, queue)
    cluster = SharedCluster(np.array([4]), 2, np.array([[0, 1], [1, 0]]), 10.0, borrowing, time_limit)
    return GroupsSimulator(batch([jobs]), cluster, np.ones(len(rows)))


def give(*shares: int, order: tuple[int, int] = (0, 0)) -> Setting:
    return Setting(np.array(shares).reshape(1, 2, 1), np.array([order]))


def step(groups: GroupsSimulator, *shares: int, order: tuple[int, int] = (0, 0)) -> list[float]:
    return groups.step(ONLY, give(*shares, order=order))[0].tolist()


def starts(groups: GroupsSimulator) -> list[float]:
    return groups.served().start.tolist()


TWO_OF_ONE = (Job(0, 4, 2, group=0), Job(0, 20, 2, group=0), Job(2, 3, 2, group=1))


def test_a_job_starts_as_its_groups_own_and_the_next_waits_for_the_share() -> None:
    groups = begin(*TWO_OF_ONE)
    assert step(groups, 2, 2) == [4, 0]  # the second waits until the first gives its 2 units back at 4
    assert len(groups.rows) == 0  # nobody waits, so that the second runs to its end
    served = groups.served()
    assert served.start.tolist() == [0, 4, 2]
    assert served.finish.tolist() == [4, 24, 5]
    assert served.end.tolist() == [24]
    assert served.busy.tolist() == [(4 + 20 + 3) * 2 / 4]


def test_a_borrowed_unit_is_not_given_back_before_its_job_ends() -> None:
    groups = begin(*TWO_OF_ONE, borrowing=True)
    assert step(groups, 2, 2) == [0, 2]  # the third waits from 2 to 4, though its group has a share of 2
    assert starts(groups) == [0, 0, 4]


def test_own_jobs_start_before_those_that_borrow() -> None:
    jobs = (Job(0, 5, 4, group=0), Job(1, 5, 2, group=0), Job(2, 5, 2, group=0), Job(3, 5, 2, group=1))
    groups = begin(*jobs, borrowing=True)
    assert step(groups, 2, 2) == [4 + 8, 2]  # the first borrows all; at 5 the second and the fourth are own
    assert step(groups, 2, 2) == [0, 0]
    assert starts(groups) == [0, 5, 10, 5]


def test_a_share_that_shrinks_drains() -> None:
    groups = begin(Job(0, 15, 3, group=0), Job(5, 2, 1, group=0), Job(5, 1, 1, group=1), Job(12, 1, 1, group=0))
    assert step(groups, 4, 0) == [0, 5]  # 3 + 1 units fit at 5; the other group has nothing
    assert groups.used.tolist() == [[[3], [0]]]
    view = groups.observe(ONLY)
    assert view.releasing.tolist() == [[[3], [0]]]  # at 15
    assert view.left.tolist() == [[5 * 3 / 4, 0]]
    assert step(groups, 2, 2) == [3, 0]  # 3 units are in use: above the share, until 15
    assert starts(groups) == [0, 5, 10, 15]


def test_of_all_groups_the_job_that_arrived_first_starts() -> None:
    groups = begin(Job(0, 5, 4, group=1), Job(1, 1, 3, group=1), Job(2, 1, 2, group=0))
    assert step(groups, 4, 4) == [4, 4]  # at 5 the second takes 3 of 4 units; the third waits until 6
    assert starts(groups) == [0, 5, 6]


def test_nobody_overtakes_in_a_queue_but_the_next_queue_is_looked_at() -> None:
    jobs = (Job(0, 6, 2, 0), Job(0, 6, 3, 0), Job(0, 1, 2, 0), Job(0, 1, 2, 0, queue=1), Job(0, 2, 2, 0, queue=1))
    groups = begin(*jobs)
    # until 6 the second's 3 units are not free, until 10 the third's 2; of the other queue, 2 are free at 0 and at 1
    assert step(groups, 4, 0) == [6 + 10 + 0 + 1, 0]
    np.testing.assert_array_equal(starts(groups), [0, 6, NAN, 0, 1])


def test_the_order_of_queues_is_the_groups_own() -> None:
    jobs = [Job(0, 3, 2, group, queue) for group in (0, 1) for queue in (0, 1)]
    groups = begin(*jobs)
    assert step(groups, 2, 2, order=(0, 1)) == [3, 3]
    assert starts(groups) == [0, 3, 3, 0]


def test_a_job_that_arrives_at_an_intervals_end_is_seen_and_starts_under_the_next_setting() -> None:
    groups = begin(Job(0, 10, 4, 0), Job(10, 1, 4, 0), Job(21, 1, 4, 0))
    assert step(groups, 4, 0) == [0, 0]
    view = groups.observe(ONLY)
    assert view.waiting[0].tolist() == [[1, 0], [0, 0]]
    assert view.running[0].tolist() == [0, 0]
    assert view.recent_jobs[0, 0, 0] == pytest.approx(0.3 * 1 + 0.7 * 0.3)
    assert view.recent_work[0, 0, 0] == pytest.approx(0.3 * 1 + 0.7 * 0.3 * 10)
    assert step(groups, 0, 4) == [10, 0]
    assert step(groups, 4, 0) == [0, 0]
    assert starts(groups) == [0, 20, 21]


def test_what_if_changes_nothing_and_plays_alone_or_by_estimates() -> None:
    overran = (
        Job(0, 12, 2, 0, estimate=5),
        Job(1, 3, 2, 0),
        Job(3, 4, 2, 1, estimate=8),
        Job(3, 2, 2, 1),
        Job(11, 1, 2, 0),
    )
    groups = begin(*overran)
    for _ in range(2):
        # the third waits from 3 until the second ends at 4, the fourth until the third ends at 8
        assert groups.what_if(ONLY, give(4, 4)).tolist() == [[0, 1 + 5]]
        assert groups.what_if(ONLY, give(4, 4), isolated=True).tolist() == [[0, 0]]
        assert groups.what_if(ONLY, give(4, 2), isolated=True).tolist() == [[0, 4]]  # the fourth waits for the third
        assert groups.what_if(ONLY, give(0, 0), by_estimate=True).tolist() == [[10, 0]]  # of the first only
    assert step(groups, 2, 2) == [9, 4]
    assert groups.what_if(ONLY, give(2, 2), by_estimate=True).tolist() == [[0, 0]]  # the first should have ended at 5
    assert groups.what_if(ONLY, give(2, 2), isolated=True).tolist() == [[2 + 4, 0]]  # it ends at 12, the second at 15
    assert groups.interval.tolist() == [1]
    assert groups.now.tolist() == [10]
    assert step(groups, 2, 2) == [2 + 4, 0]


def test_what_starts_in_an_interval_by_estimate_ends_by_its_estimate() -> None:
    groups = begin(Job(0, 9, 2, 0, estimate=4), Job(0, 1, 2, 0))
    assert groups.what_if(ONLY, give(2, 2), by_estimate=True).tolist() == [[4, 0]]
    assert step(groups, 2, 2) == [9, 0]


def test_an_episode_is_cut_at_the_first_decision_behind_the_limit() -> None:
    groups = begin(Job(0, 30, 4, 0), Job(0, 1, 4, 0), time_limit=15)
    assert [step(groups, 4, 0), step(groups, 4, 0)] == [[10, 0], [10, 0]]
    assert len(groups.rows) == 0
    served = groups.served()
    np.testing.assert_array_equal(served.start, [0, NAN])
    np.testing.assert_array_equal(served.finish, [NAN, NAN])
    assert (served.end[0], served.busy[0]) == (20, 20)


def test_what_runs_when_nobody_waits_runs_to_its_end_behind_the_limit() -> None:
    groups = begin(Job(0, 30, 2, 0), time_limit=15)
    step(groups, 4, 0)
    assert len(groups.rows) == 0
    served = groups.served()
    assert (served.finish[0], served.end[0], served.busy[0]) == (30, 30, 15)


def test_a_setting_of_another_shape_or_an_unknown_order_is_refused() -> None:
    groups = begin(Job(0, 1, 1, 0))
    with pytest.raises(ValueError, match=r"share \(1, 1, 1\).* expected \(1, 2, 1\)"):
        groups.step(ONLY, Setting(np.ones((1, 1, 1), dtype=int), np.zeros((1, 2), dtype=int)))
    with pytest.raises(ValueError, match="order 2; expected 0 to 1"):
        groups.what_if(ONLY, give(1, 1, order=(0, 2)))


class Problem(NamedTuple):
    episodes: list[Jobs]
    cluster: SharedCluster
    weights: list[np.ndarray]

    def compiled(self, *chosen: int) -> GroupsSimulator:
        jobs = batch([self.episodes[b] for b in chosen])
        return GroupsSimulator(jobs, self.cluster, np.concatenate([self.weights[b] for b in chosen]))

    def plain(self) -> list[PlainGroups]:
        return [PlainGroups(jobs, self.cluster, w) for jobs, w in zip(self.episodes, self.weights, strict=True)]


def random_problem(rng: np.random.Generator, groups: int, borrowing: bool) -> Problem:
    """Draw three episodes on a coarse grid of time, so that much happens at once and at intervals' ends."""
    queues, resources = rng.integers(1, 5), rng.integers(1, 3)
    capacity = rng.integers(4, 12, resources)
    orders = np.array([rng.permutation(queues) for _ in range(3)])
    interval, limit = rng.choice([2.0, 5.0, 3.3]), rng.choice([20.0, 1000.0])
    cluster = SharedCluster(capacity, groups, orders, interval, borrowing, limit)
    episodes = []
    for count in rng.integers(0, 40, 3):
        arrival = np.sort(rng.integers(0, 60, count) / 2)
        duration, estimate = rng.integers(1, 25, (2, count)) / 2
        demand = rng.integers(0, np.maximum(capacity // rng.integers(1, 4), 1) + 1, (count, resources))
        places = rng.integers(0, groups, count), rng.integers(0, queues, count)
        episodes.append(Jobs(arrival, duration, estimate, demand, *places))
    return Problem(episodes, cluster, [rng.choice([0.25, 1.0, 3.0], len(jobs.arrival)) for jobs in episodes])


def random_setting(rng: np.random.Generator, cluster: SharedCluster, rows: int) -> Setting:
    """Set anything from nothing to more than there is, or else equal shares."""
    shape = (rows, cluster.groups, len(cluster.capacity))
    share = rng.integers(0, cluster.capacity * 3 // 2 + 1, shape)
    equal = np.broadcast_to(equal_shares(cluster), shape)
    order = rng.integers(0, len(cluster.orders), shape[:2])
    return Setting(np.where(rng.random((rows, 1, 1)) < 0.5, share, equal), order)


def row_of(setting: Setting, i: int) -> Setting:
    return Setting(setting.share[i : i + 1], setting.order[i : i + 1])


def assert_close(found: np.ndarray, expected: np.ndarray, name: str = "") -> None:
    if not np.array_equal(found, expected):  # faster than numpy's assertions
        np.testing.assert_allclose(found, expected, err_msg=name, **CLOSE)


def assert_same_view(expected: Observation, view: Observation, i: int) -> None:
    for name, one, other in zip(Observation._fields, expected, view, strict=True):
        assert one.shape == other[i : i + 1].shape, name
        assert_close(other[i : i + 1], one, name)


def assert_same_end(plain: PlainGroups, compiled: GroupsSimulator, jobs: slice, b: int) -> None:
    expected, served = plain.served(), compiled.served()
    np.testing.assert_array_equal(served.start[jobs], expected.start)
    np.testing.assert_array_equal(served.finish[jobs], expected.finish)
    assert served.end[b] == expected.end[0]
    assert served.busy[b] == pytest.approx(expected.busy[0], rel=1e-12)


@pytest.mark.parametrize("borrowing", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_compiled_simulator_agrees_with_the_plain_one(groups: int, borrowing: bool) -> None:
    for seed in range(PROBLEMS):
        rng = np.random.default_rng([seed, groups, borrowing])
        problem = random_problem(rng, groups, borrowing)
        plain, compiled = problem.plain(), problem.compiled(0, 1, 2)
        while len(rows := compiled.rows):
            assert rows.tolist() == [b for b, one in enumerate(plain) if not one.over]
            view, setting = compiled.observe(rows), random_setting(rng, problem.cluster, len(rows))
            for alone, by_estimate in product((False, True), repeat=2):
                costs = compiled.what_if(rows, setting, alone, by_estimate)
                expected = [plain[b].what_if(row_of(setting, i), alone, by_estimate) for i, b in enumerate(rows)]
                assert_close(costs, np.array(expected))
            costs = compiled.step(rows, setting)
            for i, b in enumerate(rows):
                assert_same_view(plain[b].observe(), view, i)
                assert_close(costs[i], plain[b].step(row_of(setting, i)))
        assert all(one.over for one in plain)
        for b, one in enumerate(plain):
            assert_same_end(one, compiled, slice(*compiled.jobs.first[b : b + 2]), b)


def test_neither_threads_nor_neighbours_change_a_bit(two_threads: None) -> None:
    rng = np.random.default_rng(7)
    problem, threads = random_problem(rng, 3, True), numba.get_num_threads()
    together = problem.compiled(0, 1, 2)
    numba.set_num_threads(1)
    lonely = [problem.compiled(b) for b in range(3)]
    numba.set_num_threads(threads)
    while len(rows := together.rows):
        often = np.repeat(rows, 5)
        settings = random_setting(rng, problem.cluster, len(often))
        ifs = together.what_if(often, settings)
        for i, b in enumerate(often):
            assert ifs[i].tolist() == lonely[b].what_if(ONLY, row_of(settings, i))[0].tolist()
        setting = Setting(settings.share[::5], settings.order[::5])
        costs = together.step(rows, setting)
        np.testing.assert_array_equal(costs, ifs[::5])
        for i, b in enumerate(rows):
            assert costs[i].tolist() == lonely[b].step(ONLY, row_of(setting, i))[0].tolist()
