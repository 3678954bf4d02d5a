"""What an episode's rewards add up to, told from its schedule."""

import numpy as np
import pytest
from builders import random_jobset, wander

from pipeline.core.types import keys
from pipeline.learning.returns import discounted
from pipeline.problems.pool.env.nouns import Cluster, JobBatch, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.env.simulator.rewards import OBJECTIVES, REWARDS
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation.rollout import play

CLUSTERS = [
    Cluster((10, 10), 20, 10, 60, False),
    Cluster((7, 3, 5), 6, 3, 2, True),
    Cluster((4,), 5, 1, 0, True),
]
POLICIES = {"wander": wander, "sjf": HEURISTICS["sjf"], "random": HEURISTICS["random"]}
EPISODES = 20


def played(of: Cluster, policy: str, objective: str) -> Batched:
    """Jobsets of 30 random jobs each, played to the end."""
    rng = np.random.default_rng(11)
    jobs = batch([random_jobset(rng, of, 30, 40) for _ in range(EPISODES)])
    simulator = Batched(jobs, of, 2000, objective)
    play(simulator, POLICIES[policy], keys(1, np.arange(EPISODES), np.zeros(EPISODES, dtype=np.int64)))
    assert (simulator.schedule().finish >= 0).all()
    return simulator


def total(jobs: JobBatch, values: np.ndarray) -> np.ndarray:
    return np.bincount(jobs.episode, weights=values)


def returns(simulator: Batched) -> np.ndarray:
    """Undiscounted return of each episode from its first step."""
    return discounted(simulator.rewards, gamma=1.0)[:, 0]


@pytest.mark.parametrize("of", CLUSTERS, ids=["deeprm", "three resources", "one slot"])
@pytest.mark.parametrize("policy", list(POLICIES))
class TestReturn:
    def test_of_slowdown_is_minus_the_sum_of_slowdowns(self, of: Cluster, policy: str) -> None:
        simulator = played(of, policy, "slowdown")
        jobs, schedule = simulator.jobs, simulator.schedule()
        slowdown = (schedule.finish - jobs.arrival) / jobs.duration
        assert returns(simulator) == pytest.approx(-total(jobs, slowdown), abs=1e-9, rel=0)

    def test_of_completion_time_is_minus_the_sum_of_completion_times(self, of: Cluster, policy: str) -> None:
        simulator = played(of, policy, "completion_time")
        time = simulator.schedule().finish - simulator.jobs.arrival
        assert returns(simulator).tolist() == (-total(simulator.jobs, time)).tolist()

    def test_of_makespan_is_minus_the_makespan(self, of: Cluster, policy: str) -> None:
        simulator = played(of, policy, "makespan")
        first, finish = simulator.jobs.first, simulator.schedule().finish
        assert returns(simulator).tolist() == [-finish[first[b] : first[b + 1]].max() for b in range(EPISODES)]

    def test_of_utilisation_is_the_sum_of_shares_in_use(self, of: Cluster, policy: str) -> None:
        simulator = played(of, policy, "utilisation")
        jobs, used = simulator.jobs, simulator.schedule().used
        work = jobs.duration[:, None] * jobs.demand / np.array(of.capacity)  # every job ran to its end
        assert returns(simulator) == pytest.approx(total(jobs, work.sum(axis=1)), abs=1e-9, rel=0)
        assert used == pytest.approx(returns(simulator), abs=1e-9, rel=0)


@pytest.mark.parametrize(
    ("objective", "expected"),
    [("slowdown", -0.75), ("completion_time", -2.0), ("makespan", -1.0), ("utilisation", 1.5)],
)
def test_reward_of_a_step_with_two_jobs(objective: str, expected: float) -> None:
    assert REWARDS[objective](0.75, 2, 1.5) == expected


def test_every_objective_has_a_code() -> None:
    assert OBJECTIVES == ("slowdown", "completion_time", "makespan", "utilisation")  # as the compiled reward has it
