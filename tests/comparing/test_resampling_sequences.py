"""Confidence sequences: what they say holds at all times together, and a late change is seen."""

import numpy as np
import pytest

from pipeline.comparing.resampling import GRID, capital, lower_limits, seen_at, shared
from pipeline.core.config import Params

ALONE = np.ones(1)
STREAMS, LENGTH = 200, 400


def stream(number: int, mean: float, spread: float = 0.1) -> np.ndarray:
    return np.random.default_rng([7, number]).normal(mean, spread, (1, LENGTH))


def test_capital_by_hand() -> None:
    (first, second) = capital(np.array([1.0, -1.0]), np.array([0.0]), bound=1.0)[:, 0]
    parts = np.array([0.8, 0.4, 0.2, 0.1, 0.05, 0.025])
    assert first == pytest.approx(np.mean(0.5 * (1 + parts)) + 0.5)
    assert second == pytest.approx(np.mean((0.5 * (1 + parts) + 1 / 6) * (1 - parts)) + 1 / 3)


def test_capital_falls_with_the_mean_so_that_limits_are_one_number() -> None:
    found = capital(stream(0, 0.05)[0], np.linspace(-0.25, 0.25, GRID)[1:], bound=0.25)
    assert (np.diff(found, axis=1) <= 1e-12).all()


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3])
def test_false_alarms_are_at_most_as_frequent_as_declared(params: Params, spread: float) -> None:
    """Of 200 streams whose mean is the largest that is no alarm, looked at after every value."""
    rules = params.rules.watch
    # Cut values must not have a larger mean: below the bound on both sides they are spread alike around it.
    alarms = 0
    for number in range(STREAMS):
        values = np.clip(stream(number, 0.0, spread), -0.2, 0.2) + rules.tolerance
        alarms += seen_at(values, ALONE, rules.tolerance, rules.level, rules.bound) is not None
    assert alarms / STREAMS <= rules.level


def test_limits_hold_at_all_times_and_come_near(params: Params) -> None:
    rules, wrong = params.rules.watch, 0
    for number in range(40):
        limits = lower_limits(stream(number, 0.1, 0.05), ALONE, rules.level, rules.bound)
        assert (np.diff(limits) >= 0).all()
        wrong += bool((limits > 0.1).any())
        assert limits[-1] > 0.05
    assert wrong <= 2


def test_a_change_that_comes_late_is_seen_nearly_as_soon(params: Params) -> None:
    rules = params.rules.watch
    late = np.concatenate([np.full(300, -0.05), np.full(200, 0.15)])[None] + stream(1, 0.0, 0.05)[:, :1]
    soon = seen_at(late[:, 300:], ALONE, rules.tolerance, rules.level, rules.bound)
    seen = seen_at(late, ALONE, rules.tolerance, rules.level, rules.bound)
    assert soon is not None
    assert seen is not None
    assert 300 < seen < 300 + 4 * soon


def test_streams_share_the_chance_of_a_false_alarm() -> None:
    values, means = np.vstack([stream(1, 0.0), stream(2, 0.1)]), np.array([0.0])
    both = shared(values, np.array([0.5, 0.5]), means, 0.25)
    assert both == pytest.approx(sum(0.5 * capital(one, means, 0.25) for one in values))


def test_nothing_can_be_said_at_first() -> None:
    assert lower_limits(np.array([[0.2]]), ALONE, 0.05, 0.25)[0] < -0.24
