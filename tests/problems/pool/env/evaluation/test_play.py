"""All policies side by side: as each by itself, in groups of any size, with a compiled rule or without one."""

import numpy as np
import pandas as pd
import pytest
from builders import tiny_jobset

from pipeline.core.config import PoolKnobs
from pipeline.core.types import Observation, Policy, keys
from pipeline.problems.pool.env.evaluation import play as module
from pipeline.problems.pool.env.evaluation.metrics import job_results, jobset_results
from pipeline.problems.pool.env.evaluation.play import score
from pipeline.problems.pool.env.nouns import Cluster, JobBatch, JobSet, batch
from pipeline.problems.pool.env.simulator.batch import Batched
from pipeline.problems.pool.heuristics.scores import HEURISTICS, heuristics_with, tuned
from pipeline.simulation.results import MOST_JOBSETS, Results, mean_cost
from pipeline.simulation.rollout import heuristic, play, random, sjf
from tests.oracles.pool_heuristics import hold, tetris

CLUSTER = Cluster((4, 4), 6, 3, 6, False)
LIMIT, SEED = 60, 5
JOBSETS: dict[int, list[JobSet]] = {
    load: [tiny_jobset(load, 0, number) for number in range(3)] for load in (80, 200)
}  # six episodes under each policy
POLICIES: dict[str, Policy] = {
    "asked": heuristic(sjf),
    **HEURISTICS,
    "asked, too": random,
}


@pytest.fixture(scope="module", params=[True, False], ids=["masked", "unmasked"])
def by_themselves(request: pytest.FixtureRequest) -> tuple[bool, dict[str, Results]]:
    """Are actions masked; and the results of every policy by itself."""
    return request.param, {name: alone(name, policy, request.param) for name, policy in POLICIES.items()}


def alone(name: str, policy: Policy, masked: bool) -> Results:
    """A policy by itself, asked move by move."""
    load, number = np.repeat([80, 200], 3), np.tile(np.arange(3), 2)
    jobs = batch([jobs for group in JOBSETS.values() for jobs in group])
    simulator = Batched(jobs, CLUSTER, LIMIT, skip_forced=masked)
    play(simulator, policy, keys(SEED, load * MOST_JOBSETS + number, np.zeros(6, dtype=np.int64)))
    end = simulator.schedule()
    tables = (results(name, load, number, jobs, end, LIMIT) for results in (job_results, jobset_results))
    return Results(*tables)


@pytest.mark.parametrize("abreast", [1, 7, 12, 10_000])
def test_policies_fare_together_as_alone(
    monkeypatch: pytest.MonkeyPatch, abreast: int, by_themselves: tuple[bool, dict[str, Results]]
) -> None:
    masked, expected = by_themselves
    monkeypatch.setattr(module, "MOST_ABREAST", abreast)
    together = score(POLICIES, JOBSETS, CLUSTER, LIMIT, SEED, masked)
    assert list(together) == list(POLICIES)
    for name in POLICIES:
        for one, other in zip(together[name][:2], expected[name][:2], strict=True):
            pd.testing.assert_frame_equal(one, other, check_exact=True)


def test_no_more_episodes_go_side_by_side_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    observed: list[int] = []

    class Counted(Batched):
        def __init__(self, jobs: JobBatch, *more: object, **named: object) -> None:
            observed.append(jobs.episodes)
            super().__init__(jobs, *more, **named)

    monkeypatch.setattr(module, "Batched", Counted)
    score(POLICIES, JOBSETS, CLUSTER, LIMIT, SEED)
    assert observed == [14 * 6, 2 * 6]
    observed.clear()
    monkeypatch.setattr(module, "STEPS_ABREAST", 5 * CLUSTER.horizon)
    score({"sjf": HEURISTICS["sjf"]}, JOBSETS, CLUSTER, LIMIT, SEED)
    assert observed == [5, 1]


def test_a_policy_is_asked_for_its_own_episodes_only() -> None:
    asked: list[int] = []

    def counts(view: Observation, draws: np.ndarray) -> np.ndarray:
        asked.append(len(draws))
        assert len(draws) == len(view.now)
        return random(view, draws)

    score({"asked": heuristic(sjf), "counts": counts}, JOBSETS, CLUSTER, LIMIT, SEED)
    assert max(asked) <= 6
    assert asked == sorted(asked, reverse=True)


@pytest.mark.parametrize("masked", [True, False])
def test_play_tells_how_far_it_is(masked: bool) -> None:
    shares: list[float] = []
    score(POLICIES, JOBSETS, CLUSTER, LIMIT, SEED, masked, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares.index(1) == len(shares) - 1 > 0


def test_one_episode_in_lock_step_tells_how_many_of_its_jobs_have_started() -> None:
    shares: list[float] = []
    jobs = tiny_jobset(80, 0, 0)
    score({"random": random}, {80: [jobs]}, CLUSTER, LIMIT, SEED, on_progress=shares.append)
    count = len(jobs.arrival)
    assert set(shares) <= {started / count for started in range(count + 1)}
    assert len(set(shares)) > count / 2


def test_what_is_cut_is_done_too() -> None:
    shares: list[float] = []
    score({"random": random}, JOBSETS, CLUSTER, 1, SEED, on_progress=shares.append)
    assert shares[-2] < shares[-1] == 1


def test_a_knob_is_the_best_of_its_candidates() -> None:
    knobs = PoolKnobs(tetris_weights=(0.9, 0.0, 0.2), hold_quantiles=(0.5, 1.0))

    def on_validation(policies: dict[str, Policy]) -> dict[str, Results]:
        return score(policies, JOBSETS, CLUSTER, LIMIT, SEED)

    def cost(policy: Policy) -> float:
        return mean_cost(alone("", policy, masked=True), "slowdown")

    chosen = tuned(on_validation, knobs, JOBSETS)
    duration = np.concatenate([jobs.duration for group in JOBSETS.values() for jobs in group])
    long = sorted({10.0, float(np.quantile(duration, 0.5, method="higher")), float(duration.max())})
    assert chosen["tetris"] == min((0.9, 0.0, 0.2), key=lambda weight: cost(heuristic(tetris(weight))))
    assert chosen["hold"] == min(long, key=lambda steps: cost(heuristic(hold(int(steps)))))
    named = score(heuristics_with(chosen), JOBSETS, CLUSTER, LIMIT, SEED)
    assert list(named) == list(HEURISTICS)
    assert mean_cost(named["tetris"], "slowdown") == cost(heuristic(tetris(chosen["tetris"])))
    assert mean_cost(named["hold"], "slowdown") == cost(heuristic(hold(int(chosen["hold"]))))
