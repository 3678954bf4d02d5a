"""Scores put jobs in the order in which heuristics choose them."""

import numpy as np
import pytest
from builders import cluster, viewed

from pipeline.problems.pool.heuristics.scores import HEURISTICS
from pipeline.problems.pool.heuristics.tuning import WITH_KNOBS, heuristics_with
from pipeline.problems.pool.live.asked import scores_with

TUNED = {"tetris": 0.3, "hold": 4.0, "hold_until_long": 3.0, "hold_until": 6.0}


def test_every_heuristic_has_a_score() -> None:
    assert set(scores_with({})) == set(HEURISTICS)


@pytest.mark.parametrize("name", sorted(set(HEURISTICS) - {"random"}))
@pytest.mark.parametrize("tuned", [{}, TUNED])
def test_the_best_scored_job_is_the_one_that_is_chosen(name: str, tuned: dict[str, float]) -> None:
    view = viewed(cluster(6, 4, horizon=6, slots=4), HEURISTICS["sjf"])
    action = heuristics_with(tuned)[name](view, np.zeros(len(view.now)))
    scores = np.where(view.legal[:, :, 0], scores_with(tuned)[name](view), -np.inf)
    chosen = np.flatnonzero(action < 4)
    assert len(chosen) > 5
    assert (scores[chosen, action[chosen]] == scores[chosen].max(axis=1)).all()
    assert np.isneginf(scores[action == 4]).all()


def test_knobs_are_known() -> None:
    assert {*TUNED} - {"hold_until_long"} | {"linear"} == {*WITH_KNOBS}
