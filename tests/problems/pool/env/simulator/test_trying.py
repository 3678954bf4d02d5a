"""What an action is said to cost is what it does cost, where the future is known: played on by the simulator itself."""

import numpy as np
from builders import clusters, jobsets
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.types import IntArray, legal_actions
from pipeline.problems.pool.env.nouns import Cluster, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rules import players
from pipeline.problems.pool.env.simulator.state import Rules
from pipeline.problems.pool.env.simulator.trying import Futures, Limits, Tried, buffer, seen, try_actions
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.rollout import Heuristic

LIMIT, ROOM = 400, 40


def tried_by_kernel(simulator: Batched, of: Cluster, jobs: JobSet, policy: Heuristic, ahead: int) -> Tried:
    """What all actions of the decision that one episode waits for cost, the jobset itself being the only future."""
    view = simulator.observe(np.array([0]))
    actions = np.arange(of.slots + 1)[None]
    tried = Tried(*(np.zeros((1, of.slots + 1, 1)) for _ in range(3)), np.zeros(1, dtype=np.int64))
    rules = Rules(of.place_ahead, 10**6, 0, False, False, of.stalled_after, -1)
    columns = (np.ascontiguousarray(one) for one in jobs[:3])  # as look-ahead has them, or all is compiled twice
    futures = Futures(np.array([0, len(jobs.arrival)]), *columns)
    state, who = buffer(1, ROOM, of), players([policy.rule], np.zeros(1, dtype=np.uint64))
    chosen, limits = np.zeros((1, 1), dtype=np.int64), Limits(False, ahead, 10**6)
    try_actions(state, rules, seen(view, actions), who, futures, chosen, limits, tried)
    assert tried.futures.tolist() == [1]
    return tried


def cost_when_played(simulator: Batched, jobs: JobSet, policy: Heuristic, action: int, now: int) -> float:
    """Steps waited from now on over steps run, of all jobs, when an action is taken and the heuristic plays on."""
    copy = simulator.fork(np.array([0]))
    copy.step(np.array([0]), np.array([action]))
    while len(copy.rows):
        copy.play(copy.rows, players([policy.rule], np.zeros(1, dtype=np.uint64)), 50)
    start = copy.schedule().start
    still = (start < 0) | (start >= now)
    begun = np.where(start < 0, LIMIT, start)
    return float(((begun - np.maximum(jobs.arrival, now)) / jobs.duration)[still].sum())


@st.composite
def decisions(draw: st.DrawFn) -> tuple[Cluster, JobSet, int]:
    of = draw(clusters())._replace(place_ahead=False, stall=3, arrivals_end=None, slots=12, measured=None)
    return of, draw(jobsets(of)), draw(st.integers(0, 8))


@settings(max_examples=60)
@given(problem=decisions(), name=st.sampled_from(["sjf", "hold", "saf", "easy"]))
def test_the_cost_of_an_action_is_what_the_simulator_makes_of_it(
    problem: tuple[Cluster, JobSet, int], name: str
) -> None:
    of, jobs, before = problem
    policy = HEURISTICS[name]
    assert isinstance(policy, Heuristic)
    simulator = Batched(batch([jobs]), of, LIMIT, skip_forced=True)
    simulator.play(simulator.rows, players([policy.rule], np.zeros(1, dtype=np.uint64)), before)
    view = simulator.observe(np.array([0]))
    if not len(simulator.rows) or view.backlog[0]:  # nothing to decide, or jobs that nobody sees
        return
    now = int(view.now[0])
    costs = tried_by_kernel(simulator, of, jobs, policy, LIMIT - now).waiting[0, :, 0]
    for action in np.flatnonzero(legal_actions(view)[0]):
        assert np.isclose(costs[action], cost_when_played(simulator, jobs, policy, int(action), now)), action


def test_what_is_left_at_the_end_of_the_sight_is_counted() -> None:
    of = Cluster((2,), 20, 4, 4, False, stall=0)
    jobs = JobSet(np.array([0, 0]), np.array([4, 6]), np.array([[2], [2]]))
    simulator = Batched(batch([jobs]), of, LIMIT, skip_forced=True)
    policy = HEURISTICS["sjf"]
    assert isinstance(policy, Heuristic)
    tried = tried_by_kernel(simulator, of, jobs, policy, ahead=3)

    def at(part: np.ndarray, action: int) -> float:
        return float(part[0, action, 0])

    short, long = 0, 1  # begin the job of 4 steps, or that of 6: the other waits for all of the 3 steps in sight
    assert [at(tried.waiting, short), at(tried.waiting, long)] == [3 / 6, 3 / 4]
    assert [at(tried.jobs, short), at(tried.jobs, long)] == [1, 1]
    assert [at(tried.work, short), at(tried.work, long)] == [1 + 6, 3 + 4]


def test_the_limit_of_decisions_ends_between_two_futures() -> None:
    of = Cluster((2,), 20, 4, 4, False, stall=0)
    jobs = JobSet(np.array([0, 0]), np.array([4, 6]), np.array([[2], [2]]))
    view = Batched(batch([jobs]), of, LIMIT, skip_forced=True).observe(np.array([0]))
    futures = Futures(np.array([0, 2]), jobs.arrival, jobs.duration, jobs.demand)
    rules = Rules(False, 10**6, 0, False, False, 0, -1)

    def played(most: int) -> tuple[int, IntArray]:
        tried = Tried(*(np.zeros((1, 2, 5)) for _ in range(3)), np.zeros(1, dtype=np.int64))
        who = players([HEURISTICS["sjf"].rule], np.zeros(1, dtype=np.uint64))  # type: ignore[attr-defined]
        chosen = np.zeros((1, 5), dtype=np.int64)
        limits = Limits(False, 50, most)
        try_actions(buffer(1, ROOM, of), rules, seen(view, np.array([[0, 1]])), who, futures, chosen, limits, tried)
        return int(tried.futures[0]), (tried.waiting[0] > 0).sum(axis=1)

    assert played(10**6)[0] == 5
    count, there = played(15)
    assert 1 <= count < 5
    assert there.tolist() == [count, count]
