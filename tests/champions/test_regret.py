"""Regret of a champion: by hand, and what it takes for an alarm."""

import numpy as np
import pandas as pd
import pytest

from pipeline.champions.regret import ALARM, BEST, CANNOT_TELL, QUIET, Rival, regrets, watched, windows_needed
from pipeline.core.config import Params

BESIDE = {BEST: Rival({50: "sjf"}, 0.5), "sjf": Rival({50: "sjf"}, 0.5)}


def test_regret_by_hand() -> None:
    rows = [("mine", 50, 0, 2.0), ("sjf", 50, 0, 1.0), ("mine", 90, 0, 3.0), ("fcfs", 90, 0, 4.0)]
    rows += [("mine", 50, 1, 2.0), ("sjf", 50, 1, 2.0), ("mine", 90, 1, 0.0), ("fcfs", 90, 1, 0.0)]
    frame = pd.DataFrame(rows, columns=["policy", "load", "jobset", "cost"])
    found = regrets(frame, "mine", Rival({50: "sjf", 90: "fcfs"}, 1.0), "cost")
    assert found.tolist() == [(0.5 - 0.25) / 2, 0.0]


def test_regret_of_loads_with_several_jobsets_in_a_window_is_of_the_window() -> None:
    rows = [(name, 50, k, cost) for k in range(4) for name, cost in (("mine", 2.0), ("sjf", 1.0 + (k > 1)))]
    rows += [(name, 90, k, 1.0) for k in range(2) for name in ("mine", "sjf")]
    frame = pd.DataFrame(rows, columns=["policy", "load", "jobset", "cost"])
    assert regrets(frame, "mine", Rival({50: "sjf", 90: "sjf"}, 1.0), "cost").tolist() == [0.25, 0.0]


@pytest.mark.parametrize(
    ("mean", "count", "code"), [(0.0, 5, CANNOT_TELL), (0.0, 150, QUIET), (0.12, 150, ALARM), (-0.1, 150, QUIET)]
)
def test_what_is_said(params: Params, mean: float, count: int, code: int) -> None:
    rng, rules = np.random.default_rng(3), params.rules.watch
    judged = dict.fromkeys(BESIDE, rng.normal(-0.05, 0.05, 40))
    found = watched(dict.fromkeys(BESIDE, rng.normal(mean, 0.05, count)), judged, BESIDE, rules, seed=1)
    assert found.code == code
    assert found.windows == count
    assert (found.seen is not None) == (code == ALARM)
    assert found.low <= max(mean, rules.tolerance)


def test_exit_codes_are_those_of_the_guide() -> None:
    assert (QUIET, ALARM, CANNOT_TELL) == (0, 3, 4)


def test_without_a_window_nothing_can_be_told(params: Params) -> None:
    judged = dict.fromkeys(BESIDE, np.zeros(10))
    found = watched(dict.fromkeys(BESIDE, np.empty(0)), judged, BESIDE, params.rules.watch, seed=1)
    assert (found.code, found.windows) == (CANNOT_TELL, 0)
    assert found.needed > 10


def test_the_more_regret_is_planned_for_the_fewer_windows_are_needed(params: Params) -> None:
    rules, judged = params.rules.watch, np.random.default_rng(3).normal(0, 0.05, 40)
    large = rules.model_copy(update={"plan": 0.2})
    assert windows_needed(judged, large, 1) < windows_needed(judged, rules, 1) < 150
