"""A user's jobs under a policy: compiled or asked move by move, the starts are the same and progress is told."""

import numpy as np
import pyarrow as pa
import pytest
from builders import jobset, random_jobset

from pipeline.core.types import Observation, Policy
from pipeline.errors import UserError
from pipeline.interactive.pool.scheduling import PATIENCE, schedule
from pipeline.interactive.scheduling import schedule as scheduling
from pipeline.interactive.scheduling.user_jobs import UserJobs
from pipeline.problems.pool.env.nouns import Cluster, JobSet
from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.simulation import rollout
from pipeline.simulation.rollout import Heuristic

CLUSTER = Cluster((5, 4), 8, 4, 4, False)


def table(jobsets: int, jobs: int, steps: int) -> UserJobs[JobSet]:
    """Some streams, their rows mixed."""
    rng = np.random.default_rng(2)
    several = [random_jobset(rng, CLUSTER, jobs, steps) for _ in range(jobsets)]
    mixed = rng.permutation(jobsets * jobs)
    columns = (np.concatenate([jobset[k] for jobset in several])[mixed] for k in range(3))
    return UserJobs(pa.table({}), np.repeat(np.arange(jobsets), jobs)[mixed], JobSet(*columns))


def asked(policy: Policy) -> Policy:
    """The same policy without its rule."""
    return Heuristic(policy)


def starts(jobs: UserJobs[JobSet], policy: Policy, at_once: int) -> list[int]:
    return [int(step) for step in schedule(jobs, CLUSTER, policy, True, 3, lambda percent, note: None, at_once)]


@pytest.mark.parametrize(("jobsets", "jobs"), [(1, 200), (30, 20)])
@pytest.mark.parametrize("name", list(HEURISTICS))
def test_a_compiled_schedule_is_that_of_the_heuristic(
    monkeypatch: pytest.MonkeyPatch, name: str, jobsets: int, jobs: int
) -> None:
    monkeypatch.setattr(rollout.play_compiled, "__defaults__", (50,))
    mine = table(jobsets, jobs, 2 * jobs)
    compiled = starts(mine, HEURISTICS[name], at_once=10**6)
    assert compiled == starts(mine, asked(HEURISTICS[name]), at_once=10**6)
    assert compiled == starts(mine, HEURISTICS[name], at_once=70)


@pytest.mark.parametrize("policy", [HEURISTICS["sjf"], asked(HEURISTICS["sjf"])])
def test_progress_counts_the_jobs_that_have_been_placed(monkeypatch: pytest.MonkeyPatch, policy: Policy) -> None:
    monkeypatch.setattr(scheduling, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(rollout.play_compiled, "__defaults__", (3,))
    told: list[tuple[float, str]] = []
    schedule(table(3, 40, 80), CLUSTER, policy, True, 3, lambda percent, note: told.append((percent, note)), 50)
    percents = [percent for percent, _ in told]
    assert len(told) > 20
    assert percents == sorted(percents)
    assert [note for percent, note in told if percent == 100 * 40 / 120] == ["40 jobs"]  # the first part ends
    assert told[-1] == (100, "120 jobs")


def test_a_policy_that_stands_still_is_given_up() -> None:
    def void(view: Observation, draws: np.ndarray) -> np.ndarray:
        return np.full(len(draws), view.duration.shape[1])

    jobs = UserJobs(pa.table({}), np.zeros(2, int), jobset((0, 2, 1, 1), (3, 1, 1, 1)))
    limit = 3 + PATIENCE * 3 + CLUSTER.horizon
    with pytest.raises(UserError, match=f"leaves 2 of 2 jobs undone after {limit} steps"):
        schedule(jobs, CLUSTER, void, False, 1, lambda percent, note: None)
