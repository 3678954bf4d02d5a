"""Scores put jobs in the order in which heuristics choose them."""

import numpy as np
import pytest
from live_machines import park_like, state_of
from machine_builders import random_problem

from pipeline.problems.machines.heuristics.rules import HEURISTICS
from pipeline.problems.machines.live.cluster import cluster_now, observed
from pipeline.problems.machines.live.scores import SCORES, of_jobs, score_of
from pipeline.problems.machines.nouns import EASY_ANEW


def test_every_heuristic_has_a_score() -> None:
    assert set(SCORES) == set(HEURISTICS)


@pytest.mark.parametrize("name", sorted(set(HEURISTICS) - {"random"}))
def test_the_best_scored_job_is_the_one_that_is_chosen(name: str) -> None:
    rng, looked = np.random.default_rng(3), 0
    for simulator in random_problem(rng, EASY_ANEW, 1, whole_times=False).plain():
        while not simulator.done:
            now, _ = cluster_now(state_of(simulator), park_like(simulator))
            view = observed(now, simulator.machines.slots, EASY_ANEW, simulator.machines.stall, ahead=False)
            action = HEURISTICS[name](view, np.zeros(1))
            scores = of_jobs(score_of(name, {})(view), view)[: len(now.waits)]
            assert scores[action[0]] == pytest.approx(scores.max())
            looked += 1
            simulator.step(simulator.rows, action)
    assert looked
